"""Interventions on networks whose parts are known: an induction head whose weights are set by hand, and linear ones."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.networks.instrument import run_with_cache
from firstlight.networks.interventions import (
    activation_patching,
    direct_logit_attribution,
    head_scores,
    logit_lens,
    mean_ablation,
    occlusion,
)
from firstlight.networks.variants import PoolingKind
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig
from stand_ins import SIZES, randomized

WORDS, COUNT = 11, 8  # of the induction head: the vocabulary, and the tokens of each half of a text
LENGTH, CERTAIN = 2 * COUNT, 30.0


def induction_network() -> Generator:
    """Return two blocks of attention whose weights are set by hand.

    The coordinates of a vector are its token, its position, the token before it, and the predicted token. Head 0 of the
    first block copies the token before; head 1 of the second block finds the token before that equals this token, and
    predicts the token there. The other heads do nothing. The first token of a text has none before it and copies
    itself, so that its second occurrence attends to both the first and the second token.
    """
    dim = 3 * WORDS + LENGTH
    token, position, before, answer = (
        slice(start, start + size)
        for start, size in ((0, WORDS), (WORDS, LENGTH), (WORDS + LENGTH, WORDS), (dim - WORDS, WORDS))
    )
    config = GeneratorConfig(
        dim=dim, num_heads=2, head_dim=LENGTH, num_layers=2, context_length=LENGTH, positions="learned",
        norm="none", feed_forward="none", output_bias=False, head_bias=False, scale_scores=False,
    )  # fmt: skip
    network = Generator(config, WORDS).double().eval()
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    eye = torch.eye(WORDS, dtype=torch.float64)
    with torch.no_grad():
        network.embedding.weight[:, token] = eye
        network.positions.table.weight[:, position] = torch.eye(LENGTH, dtype=torch.float64)
        network.head.weight[:, answer] = eye
        first, second = (block.self_attention for block in network.blocks)
        first.query.weight[:LENGTH, position] = CERTAIN * torch.eye(LENGTH, dtype=torch.float64)
        first.key.weight[:LENGTH, position] = torch.eye(LENGTH, dtype=torch.float64).roll(1, 0)  # p answers p + 1
        first.value.weight[:WORDS, token] = eye
        first.output.weight[before, :WORDS] = eye
        second.query.weight[LENGTH : LENGTH + WORDS, token] = CERTAIN * eye
        second.key.weight[LENGTH : LENGTH + WORDS, before] = eye
        second.value.weight[LENGTH : LENGTH + WORDS, token] = eye
        second.output.weight[answer, LENGTH : LENGTH + WORDS] = CERTAIN * eye
    return network


def repeated(texts: int = 16) -> Tensor:
    """Return texts whose second half repeats the first half, which has each token at most once."""
    generator = torch.Generator().manual_seed(1)
    halves = [torch.randperm(WORDS, generator=generator)[:COUNT] for _ in range(texts)]
    return torch.stack(halves).repeat(1, 2)


def next_token_losses(token_ids: Tensor) -> Any:
    """Return a function from logits to the mean loss of each text in its second half, where the answer is known."""
    targets = token_ids[:, COUNT + 1 :]
    return lambda logits: F.cross_entropy(logits[:, COUNT:-1].transpose(1, 2), targets, reduction="none").mean(dim=1)


def test_the_scores_of_heads_find_the_induction_head_and_the_head_of_the_previous_token() -> None:
    scores = head_scores(induction_network(), repeated())
    assert_close(scores["induction"][1, 1], torch.tensor(1 - 0.5 / COUNT, dtype=torch.float64))
    assert scores["previous_token"][0, 0] > 0.9  # the first token has none before it
    others = scores["induction"].clone()
    others[1, 1] = 0
    assert others.max() < 0.2
    assert scores["duplicate_token"].max() < 0.2
    with pytest.raises(ValueError, match="must repeat the first half"):
        head_scores(induction_network(), torch.arange(6)[None])


def test_ablation_finds_the_two_heads_that_the_answer_requires_and_no_other() -> None:
    token_ids = repeated()
    changes = mean_ablation(induction_network(), token_ids, losses=next_token_losses(token_ids))
    heads = {f"blocks.{layer}.attn.{head}" for layer in range(2) for head in range(2)}
    assert set(changes) == {*heads, "blocks.0", "blocks.1"}
    for part in ("blocks.0.attn.0", "blocks.1.attn.1", "blocks.0", "blocks.1"):
        assert changes[part].shape == (16,)
        assert changes[part].min() > 1, part
    for part in ("blocks.0.attn.1", "blocks.1.attn.0"):
        assert changes[part].abs().max() < 1e-9, part


def test_the_mean_of_an_ablation_does_not_count_padding() -> None:
    network = randomized(Classifier(ClassifierConfig(**SIZES), 23, 5))
    token_ids = torch.tensor([[4, 7, 9, 0, 0], [3, 8, 1, 5, 2]])
    mask = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    changes = mean_ablation(network, token_ids, mask, losses=lambda logits: logits[:, 2])
    other = torch.where(mask, token_ids, 21)
    again = mean_ablation(network, other, mask, losses=lambda logits: logits[:, 2])
    for part, change in changes.items():
        assert_close(again[part], change)
        assert change.abs().max() > 1e-6


def test_patching_follows_the_answer_from_the_token_to_the_last_position() -> None:
    network, clean = induction_network(), repeated(1)[:, : COUNT + 2]  # the last token is the second one again
    corrupted = clean.clone()
    corrupted[0, 2] = next(word for word in range(WORDS) if word not in clean)  # another token followed it
    answer = int(clean[0, 2])
    options = {"score": lambda logits: logits[:, -1, answer]}
    shares = activation_patching(network, [clean], [corrupted], **options)
    assert_close(shares["blocks.0.hook_resid_pre"], torch.eye(COUNT + 2, dtype=torch.float64)[2])
    assert_close(shares["blocks.1.hook_resid_pre"], torch.eye(COUNT + 2, dtype=torch.float64)[2])
    after = activation_patching(network, [clean], [corrupted], **options, step="hook_resid_post")
    assert_close(after["blocks.1.hook_resid_post"], torch.eye(COUNT + 2, dtype=torch.float64)[COUNT + 1])
    heads = activation_patching(network, [clean], [corrupted], **options, step="hook_z")
    assert_close(heads["blocks.1.attn.hook_z"], torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert heads["blocks.0.attn.hook_z"].abs().max() < 1e-6
    with pytest.raises(ValueError, match="the texts have 10 and 9 tokens"):
        activation_patching(network, [clean], [corrupted[:, 1:]], **options)
    with pytest.raises(ValueError, match="both texts have the score"):
        activation_patching(network, [clean], [clean], **options)


def test_the_answer_of_the_induction_network_comes_from_its_last_head_only() -> None:
    token_ids = repeated(1)[:, : COUNT + 2]
    answer = int(token_ids[0, 2])
    found = direct_logit_attribution(induction_network(), token_ids, score=lambda logits: logits[0, -1, answer])
    assert found.pop("blocks.1.attn.1") == pytest.approx(CERTAIN, abs=1e-3)
    assert all(abs(value) < 1e-6 for value in found.values())


def test_the_lens_sees_the_answer_after_the_last_block_only() -> None:
    network, token_ids = induction_network(), repeated(1)[:, : COUNT + 2]
    lens = logit_lens(network, token_ids)
    assert list(lens) == ["blocks.0.hook_resid_pre", "blocks.0.hook_resid_post", "blocks.1.hook_resid_post"]
    answers = [logits[0, -1].softmax(dim=-1)[token_ids[0, 2]] for logits in lens.values()]
    assert_close(torch.stack(answers), torch.tensor([1 / WORDS, 1 / WORDS, 1.0], dtype=torch.float64))
    assert_close(lens["blocks.1.hook_resid_post"], network(token_ids))


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "pre", "final_norm": True},
        {"norm": "post"},
        {"norm": "post", "norm_kind": "rms", "final_norm": True},
        {"norm": "pre", "num_loops": 2, "causal_convolution": 3},
        {"norm": "none", "output_projection": False, "feed_forward": "none"},
    ],
    ids=str,
)
def test_the_contributions_to_a_logit_sum_to_it(options: dict[str, Any]) -> None:
    network = randomized(Generator(GeneratorConfig(**SIZES, **options, head_bias=False, output_bias=False), 23))
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    token_ids = torch.tensor([[4, 7, 9, 4]])
    found = direct_logit_attribution(network, token_ids, score=lambda logits: logits[0, -1, 5])
    assert abs(found["biases"]) < 1e-9  # there are none, so the parts are the logit
    assert sum(found.values()) == pytest.approx(float(network(token_ids)[0, -1, 5]))
    heads = SIZES["num_heads"] * SIZES["num_layers"] * options.get("num_loops", 1)
    assert sum(".attn." in part for part in found) == heads
    assert all(abs(value) > 1e-9 for part, value in found.items() if part != "biases")


def test_a_contribution_is_the_product_with_the_output_layer_in_a_network_without_norms() -> None:
    network = randomized(Generator(GeneratorConfig(**SIZES, norm="none"), 23))
    token_ids = torch.tensor([[4, 7, 9, 4]])
    found = direct_logit_attribution(network, token_ids, score=lambda logits: logits[0, -1, 5])
    _, cache = run_with_cache(network, token_ids)
    row = network.head.weight[5].detach()
    assert found["embedding"] == pytest.approx(float(cache["resid_pre", 0][0, -1] @ row))
    for layer, block in enumerate(network.blocks):
        assert found[f"blocks.{layer}.mlp"] == pytest.approx(float(cache["mlp_out", layer][0, -1] @ row))
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            result = cache["z", layer][0, -1, head] @ block.self_attention.output.weight[:, part].T
            assert found[f"blocks.{layer}.attn.{head}"] == pytest.approx(float(result.detach() @ row))
    biases = sum(float(block.self_attention.output.bias.detach() @ row) for block in network.blocks)
    assert found["biases"] == pytest.approx(biases + float(network.head.bias[5]))


@pytest.mark.parametrize("pooling", [kind for kind in PoolingKind if kind is not PoolingKind.bert])
def test_the_contributions_of_a_classifier_sum_to_the_logit_for_every_pooling(pooling: PoolingKind) -> None:
    network = randomized(Classifier(ClassifierConfig(**SIZES, pooling=pooling, norm="pre", output_bias=False), 23, 5))
    nn.init.zeros_(network.head.outputs.bias)
    if pooling is PoolingKind.per_token:
        nn.init.zeros_(network.head.score.bias)
    token_ids = torch.tensor([[4, 7, 9, 4]])
    found = direct_logit_attribution(network, token_ids, score=lambda logits: logits[0, 2])
    expected = sum(float(block.feed_forward.contract.bias.sum()) for block in network.blocks)
    assert expected != 0  # the feed-forward layers keep their biases, which belong to their parts
    assert abs(found["biases"]) < 1e-9
    assert sum(found.values()) == pytest.approx(float(network(token_ids)[0, 2]))


def test_the_parts_of_a_translator_are_those_of_its_decoder() -> None:
    config = EncoderDecoderConfig(**SIZES, norm="pre", final_norm=True)
    network = randomized(EncoderDecoder(config, 23, 23))
    inputs = torch.tensor([[4, 7, 9]]), torch.tensor([[2, 8, 6, 1]])
    found = direct_logit_attribution(network, *inputs, score=lambda logits: logits[0, -1, 5])
    assert {part.rpartition(".")[0] for part in found} >= {"decoder.0.attn", "decoder.1.cross_attn"}
    assert sum(found.values()) == pytest.approx(float(network(*inputs)[0, -1, 5]))
    lens = logit_lens(network, *inputs)
    assert next(iter(lens)) == "decoder.0.hook_resid_pre"
    assert_close(lens["decoder.1.hook_resid_post"], network(*inputs))
    clean, corrupted = inputs, (torch.tensor([[4, 3, 9]]), inputs[1])
    shares = activation_patching(network, clean, corrupted, score=lambda logits: logits[:, -1, 5])
    assert_close(shares["encoder.0.hook_resid_pre"], torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64))
    assert_close(shares["decoder.0.hook_resid_pre"], torch.zeros(4, dtype=torch.float64))


@pytest.mark.parametrize(
    "network",
    [
        Classifier(ClassifierConfig(norm_kind="over_words"), 23, 5),
        Classifier(ClassifierConfig(pooling="bert"), 23, 5),
        MaskedLanguageModel(MaskedConfig(head_layer=True), 23),
    ],
    ids=lambda network: type(network).__name__,
)
def test_a_logit_that_is_no_sum_of_parts_is_refused(network: Any) -> None:
    with pytest.raises(ValueError, match="with which logits are no sum of the parts"):
        direct_logit_attribution(network.eval(), torch.tensor([[4, 7, 9]]), score=torch.sum)


def test_occlusion_of_a_linear_network_is_the_difference_of_the_weights() -> None:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Embedding(23, 2, _weight=torch.randn(23, 2, generator=torch.Generator().manual_seed(1)))

        def forward(self, token_ids: Tensor) -> Tensor:
            return self.weights(token_ids).sum(dim=1)

    network, token_ids = Bag(), torch.tensor([[4, 7, 9, 7]])
    found = occlusion(network, token_ids, score=lambda logits: logits[:, 1], filler=1)
    weights = network.weights.weight.detach()[:, 1]
    assert_close(found, weights[token_ids[0]] - weights[1])
