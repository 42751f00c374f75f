"""Attention and its derivatives, computed by hand with small numbers, and the posts' formulas against autograd."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks import masks
from firstlight.networks.attention import MultiHeadAttention, attention_weights
from firstlight.networks.block import FeedForward, build_norm
from firstlight.networks.config import TransformerConfig
from firstlight.networks.variants import Activation
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

LN2, LN3 = math.log(2), math.log(3)


def with_weights_of(attention: MultiHeadAttention, *arguments: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Return the output of an attention that is watched, and its weights."""
    with attention_weights(attention) as weights:
        output = attention(*arguments, **options)
    return output, weights[""]


def tensor(rows: object) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def random_tensor(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def identity_attention(dim: int, num_heads: int, **options: bool) -> MultiHeadAttention:
    """Return attention whose queries, keys and values are the tokens, and whose output is the heads (as in post 4)."""
    attention = MultiHeadAttention(dim, num_heads, dim // num_heads, output_projection=False, **options).double()
    for layer in (attention.query, attention.key, attention.value):
        nn.init.eye_(layer.weight)
    return attention


# --- attention: two orthogonal tokens, one head of width 4 ---

SIDE = math.sqrt(2 * LN3)  # a token times itself is 2 ln 3, and divided by √4 it is ln 3; times the other token it is 0
TWO_TOKENS = tensor([[[SIDE, 0, 0, 0], [0, SIDE, 0, 0]]])


# the scores / √4 are (ln 3, 0) and (0, ln 3); exp: (3, 1) and (1, 3); divided by their sum: quarters
@pytest.mark.parametrize(
    ("scale_scores", "options", "expected"),
    [
        (True, {}, [[3 / 4, 1 / 4], [1 / 4, 3 / 4]]),
        (False, {}, [[9 / 10, 1 / 10], [1 / 10, 9 / 10]]),  # as in post 3: scores (2 ln 3, 0); exp: (9, 1)
        (True, {"is_causal": True}, [[1, 0], [1 / 4, 3 / 4]]),
        (True, {"mask": masks.causal(torch.arange(2), torch.arange(2))}, [[1, 0], [1 / 4, 3 / 4]]),
        (True, {"mask": masks.padding(torch.tensor([[True, False]]))}, [[1, 0], [1, 0]]),
    ],
    ids=["scaled", "not scaled", "causal", "causal mask", "padding"],
)
def test_two_tokens_weigh_themselves_three_to_one(
    scale_scores: bool, options: dict[str, Any], expected: list[list[float]]
) -> None:
    attention = identity_attention(4, 1, scale_scores=scale_scores)
    attended, weights = with_weights_of(attention, TWO_TOKENS, **options)
    assert_close(weights, tensor([[expected]]))
    assert_close(attended, tensor(expected) @ TWO_TOKENS)
    assert_close(attention(TWO_TOKENS, **options), attended)


def test_two_heads_each_look_with_a_coordinate_of_their_own() -> None:
    """Two heads of width 1, so the scale is 1, and the output (x, y) -> (x + 2y + 1, y - 1)."""
    one, two = math.sqrt(LN3), math.sqrt(LN2)
    tokens = tensor([[[0, two], [one, 0]]])
    attention = MultiHeadAttention(2, 2, 1).double()
    with torch.no_grad():
        for layer in (attention.query, attention.key, attention.value):
            nn.init.eye_(layer.weight)
        attention.output.weight.copy_(tensor([[1, 2], [0, 1]]))
        attention.output.bias.copy_(tensor([1, -1]))
    # head 1, coordinates (0, one): the first token has the scores 0, 0 (halves), the second 0, ln 3 (1 to 3)
    first_head = [one / 2, one * 3 / 4]
    # head 2, coordinates (two, 0): the first token has the scores ln 2, 0 (2 to 1), the second 0, 0 (halves)
    second_head = [two * 2 / 3, two / 2]
    expected = [[x + 2 * y + 1, y - 1] for x, y in zip(first_head, second_head, strict=True)]
    assert_close(attention(tokens), tensor([expected]))


@pytest.mark.parametrize("num_heads", [1, 3])
def test_keys_of_zeros_make_causal_attention_the_running_average(num_heads: int) -> None:
    """Post 4 starts from uniform weights below the diagonal: row t is 1 / t for the first t tokens."""
    attention = identity_attention(6, num_heads)
    nn.init.zeros_(attention.key.weight)
    tokens = random_tensor(2, 4, 6, seed=1)
    attended, weights = with_weights_of(attention, tokens, is_causal=True)
    triangle = tensor([[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4] * 4])
    assert_close(weights, triangle.expand(2, num_heads, 4, 4))
    averages = torch.stack([tokens[:, : count + 1].mean(dim=1) for count in range(4)], dim=1)
    assert_close(attended, averages)
    assert_close(attention(tokens, is_causal=True), averages)


# --- derivatives (posts 1 and 3) ---


@pytest.mark.parametrize(
    "mask",
    [None, [True] * 7, [True, True, False, True, False, True, True], [False] * 5 + [True, False], [False] * 7],
    ids=["no mask", "all", "some", "one", "none"],
)
def test_the_derivative_of_a_softmax_is_that_of_post_3_where_the_mask_allows_and_zero_elsewhere(
    mask: list[bool] | None,
) -> None:
    scores, mask = random_tensor(7, seed=1), None if mask is None else torch.tensor(mask)
    powers = scores.exp() * (1 if mask is None else mask)
    weights = powers / powers.sum().clamp(min=1e-9)
    expected = torch.diag(weights) - torch.outer(weights, weights)
    assert_close(jacobian(lambda each: masks.masked_softmax(each, mask), scores), expected)


def bare_norm(dim: int) -> nn.LayerNorm:
    norm = build_norm(TransformerConfig(dim=dim, num_heads=1, norm_affine=False))
    assert isinstance(norm, nn.LayerNorm)
    assert not list(norm.parameters())
    return norm


@pytest.mark.parametrize("size", [0.01, 1, 1_000])
def test_the_derivative_of_a_norm_is_that_of_post_3(size: float) -> None:
    """The Jacobian is (N·I - 1)/(Nσ) - (x - μ)(x - μ)ᵀ/(Nσ³) with σ = √(variance + ε), and ε is negligible."""
    norm, hidden = bare_norm(7), size * random_tensor(7, seed=1) + 3
    count, centred = 7, hidden - hidden.mean()

    def formula(deviation: Tensor) -> Tensor:
        numerator = count * torch.eye(count) - torch.ones(count, count)
        return numerator / (count * deviation) - torch.outer(centred, centred) / (count * deviation**3)

    variance = hidden.var(unbiased=False)
    found = jacobian(norm, hidden)
    assert_close(found, formula((variance + norm.eps).sqrt()))
    assert torch.allclose(found, formula(variance.sqrt()), atol=0, rtol=1e-6) is (size == 1_000)


@pytest.mark.parametrize("causal", [True, False])
def test_the_errors_of_attention_flow_back_as_those_of_two_products_and_a_softmax(causal: bool) -> None:
    """If Z = AB, dA = dZ·Bᵀ and dB = Aᵀ·dZ, for each head of each text. The dW of a layer is summed over the texts."""
    dim, num_heads, head_dim, texts, length = 10, 3, 5, 2, 7
    torch.manual_seed(0)
    attention = MultiHeadAttention(dim, num_heads, head_dim).double()
    hidden, error = random_tensor(texts, length, dim, seed=1), random_tensor(texts, length, dim, seed=2)
    tokens = hidden.clone().requires_grad_()
    attention(tokens, is_causal=causal).backward(error)

    weights_of = {
        name: getattr(attention, name).weight.detach().clone() for name in ("query", "key", "value", "output")
    }
    rows = [slice(head * head_dim, (head + 1) * head_dim) for head in range(num_heads)]
    expected = {name: torch.zeros_like(weight) for name, weight in weights_of.items()}
    expected_tokens = torch.zeros_like(hidden)
    for text in range(texts):
        x, d_out = hidden[text], error[text]
        for part in rows:
            query, key, value = (x @ weights_of[name][part].T for name in ("query", "key", "value"))
            scores = query @ key.T / math.sqrt(head_dim)
            if causal:
                scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
            weights = scores.softmax(dim=1)
            head = weights @ value
            expected["output"][:, part] += d_out.T @ head
            d_head = d_out @ weights_of["output"][:, part]
            d_weights = d_head @ value.T  # for weights · value: dA = dZ·Bᵀ
            errors = {"value": weights.T @ d_head}  # and dB = Aᵀ·dZ
            d_scores = weights * (d_weights - (d_weights * weights).sum(dim=1, keepdim=True))  # for the softmax
            d_product = d_scores / math.sqrt(head_dim)
            errors |= {"query": d_product @ key, "key": d_product.T @ query}  # for query · keyᵀ
            for name, d_projected in errors.items():
                expected[name][part] += d_projected.T @ x
                expected_tokens[text] += d_projected @ weights_of[name][part]
    for name, gradient in expected.items():
        assert_close(getattr(attention, name).weight.grad, gradient)
    assert_close(attention.output.bias.grad, error.sum(dim=(0, 1)))
    assert_close(tokens.grad, expected_tokens)


def test_the_errors_of_a_feed_forward_layer_flow_back_as_those_of_its_two_products() -> None:
    torch.manual_seed(0)
    layer = FeedForward(3, 11, Activation.relu).double()
    hidden, error = random_tensor(2, 5, 3, seed=1), random_tensor(2, 5, 3, seed=2)
    tokens = hidden.clone().requires_grad_()
    layer(tokens).backward(error)
    x, d_out = hidden.flatten(0, 1), error.flatten(0, 1)  # all tokens of all texts
    before = x @ layer.expand.weight.T + layer.expand.bias
    d_before = (d_out @ layer.contract.weight) * (before > 0)
    assert_close(layer.contract.weight.grad, d_out.T @ before.clamp(min=0))
    assert_close(layer.contract.bias.grad, d_out.sum(dim=0))
    assert_close(layer.expand.weight.grad, d_before.T @ x)
    assert_close(layer.expand.bias.grad, d_before.sum(dim=0))
    assert_close(tokens.grad, (d_before @ layer.expand.weight).unflatten(0, (2, 5)))


def watch(module: nn.Module) -> list[Tensor]:
    """Return a list that collects the outputs of a module. Their gradients are kept."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, __: object, output: Tensor) -> None:
        output.retain_grad()
        seen.append(output)

    module.register_forward_hook(keep)
    return seen


TWICE = [[2, 5, 2, 3], [5, 7, 5, 5]]  # 2 and 5 are used more than once, 3 and 7 once, the others never


def scattered(errors: Tensor, vocab_size: int) -> Tensor:
    """Return the sum of the errors of each token id."""
    total = torch.zeros(vocab_size, errors.shape[-1], dtype=errors.dtype)
    for text, row in enumerate(TWICE):
        for place, token in enumerate(row):
            total[token] += errors[text, place]
    return total


def test_a_word_used_twice_gets_both_errors() -> None:
    torch.manual_seed(0)
    classifier = Classifier(ClassifierConfig(dim=6, num_heads=2, context_length=5), 11, 5).double().eval()
    seen = watch(classifier.embedding)
    classifier(torch.tensor(TWICE)).square().sum().backward()
    found = classifier.embedding.weight.grad
    assert_close(found, scattered(seen[0].grad, 11))
    assert found.any(dim=1).nonzero().flatten().tolist() == [2, 3, 5, 7]


def test_an_embedding_tied_to_the_head_gets_the_errors_of_both() -> None:
    """The gradient has two parts: the scattered errors of the look-up, and dB = Aᵀ·dZ of the head's matrix."""
    torch.manual_seed(0)
    config = GeneratorConfig(dim=6, num_heads=2, context_length=5, tie_embeddings=True)
    generator = Generator(config, 11).double().eval()
    looked_up, read = watch(generator.embedding), watch(generator.blocks[-1])
    logits = generator(torch.tensor(TWICE))
    logits.retain_grad()
    logits.square().sum().backward()
    of_the_head = torch.einsum("blv,bld->vd", logits.grad, read[0])
    assert_close(generator.embedding.weight.grad, scattered(looked_up[0].grad, 11) + of_the_head)


# --- the sinusoid of post 5 (post 1's is in test_post_settings.py) ---


def test_a_sinusoid_counts_from_zero_on_both_sides_of_post_5() -> None:
    """Width 4 has the frequencies 1 and 1/100. Position 0 is sin 0, cos 0."""
    network = EncoderDecoder(EncoderDecoderConfig(dim=4, num_heads=2, context_length=3), 13, 11)
    expected = tensor(
        [
            [0.0, 1.0, 0.0, 1.0],
            [0.841471, 0.540302, 0.010000, 0.999950],  # angles 1 and 0.01
            [0.909297, -0.416147, 0.019999, 0.999800],  # angles 2 and 0.02
        ]
    )
    for positions in (network.source_positions, network.positions):
        assert_close(positions(torch.zeros(1, 3, 4))[0].double(), expected, atol=1e-6, rtol=0)
