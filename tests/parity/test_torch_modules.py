"""firstlight's modules have the same outputs and gradients as torch's modules with the same weights."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.networks import masks
from firstlight.networks.attention import MultiHeadAttention, attention_weights
from firstlight.networks.block import Block, build_block
from firstlight.networks.config import TransformerConfig
from firstlight.networks.variants import Activation, Norm

DIM, HEADS, QUERIES, KEYS, HIDDEN_DIM = 15, 3, 7, 11, 37

Pairs = list[tuple[Tensor, Tensor]]  # firstlight's and torch's weights, or the gradients of these weights


def random_tensor(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def randomize(module: nn.Module) -> None:
    """Set all weights to random values, since with torch's initial 0 and 1 a mistake could have no effect."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)


def attention_pairs(ours: MultiHeadAttention, theirs: nn.MultiheadAttention, what: str) -> Pairs:
    """Return pairs of firstlight's and torch's tensors. what: "data" or "grad"."""
    pairs = []
    for index, layer in enumerate((ours.query, ours.key, ours.value)):
        for name in ("weight", "bias"):
            packed = getattr(theirs, f"in_proj_{name}")
            if packed is not None:
                pairs.append((getattr(getattr(layer, name), what), getattr(packed, what).chunk(3)[index]))
    pairs.append((getattr(ours.output.weight, what), getattr(theirs.out_proj.weight, what)))
    if theirs.out_proj.bias is not None:
        pairs.append((getattr(ours.output.bias, what), getattr(theirs.out_proj.bias, what)))
    return pairs


def module_pairs(ours: nn.Module, theirs: nn.Module, what: str) -> Pairs:
    return [
        (getattr(one, what), getattr(other, what))
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True)
    ]


def copy_weights(pairs: Pairs, ours: nn.Module) -> None:
    assert sum(one.numel() for one, _ in pairs) == sum(parameter.numel() for parameter in ours.parameters())
    with torch.no_grad():
        for one, other in pairs:
            one.copy_(other)


def assert_pairs_close(pairs: Pairs) -> None:
    for one, other in pairs:
        assert_close(one, other)


def ours_and_torchs_masks(
    with_padding: bool, with_causal: bool, queries: int, keys: int
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return firstlight's mask, torch's key padding mask and torch's attention mask. torch's are True if forbidden."""
    ours = key_padding = attention = None
    if with_padding:
        padding_mask = torch.arange(keys) < torch.tensor([[keys], [keys - 4]])
        ours, key_padding = masks.padding(padding_mask), ~padding_mask
    if with_causal:
        causal = masks.causal(torch.arange(queries), torch.arange(keys))
        ours = causal if ours is None else ours & causal
        attention = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    return ours, key_padding, attention


every_mask = pytest.mark.parametrize(
    ("with_padding", "with_causal"),
    [(False, False), (True, False), (False, True), (True, True)],
    ids=["no mask", "padding", "causal", "padding and causal"],
)


@every_mask
@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
@pytest.mark.parametrize("bias", [True, False], ids=["biased", "unbiased"])
def test_attention_equals_torchs_in_outputs_weights_and_gradients(
    bias: bool, cross: bool, with_padding: bool, with_causal: bool
) -> None:
    theirs = nn.MultiheadAttention(DIM, HEADS, bias=bias, batch_first=True, dtype=torch.float64)
    randomize(theirs)
    ours = MultiHeadAttention(DIM, HEADS, DIM // HEADS, bias=bias, output_bias=bias).double()
    copy_weights(attention_pairs(ours, theirs, "data"), ours)

    keys = KEYS if cross else QUERIES
    mask, key_padding, causal = ours_and_torchs_masks(with_padding, with_causal, QUERIES, keys)
    inputs = [random_tensor(2, QUERIES, DIM, seed=1), random_tensor(2, KEYS, DIM, seed=2)][: 1 + cross]
    our_inputs, their_inputs = ([each.clone().requires_grad_() for each in inputs] for _ in range(2))

    expected, expected_weights = theirs(
        their_inputs[0],
        their_inputs[-1],
        their_inputs[-1],
        key_padding_mask=key_padding,
        attn_mask=causal,
        average_attn_weights=False,
    )
    memory = our_inputs[1] if cross else None
    with attention_weights(ours) as found:
        attended = ours(our_inputs[0], memory, mask)
    assert_close(found[""], expected_weights)
    assert_close(attended, expected)

    direction = random_tensor(2, QUERIES, DIM, seed=3)
    attended.backward(direction)
    expected.backward(direction)
    for one, other in zip(our_inputs, their_inputs, strict=True):
        assert_close(one.grad, other.grad)
    assert_pairs_close(attention_pairs(ours, theirs, "grad"))


both_norms = pytest.mark.parametrize("norm", [Norm.post, Norm.pre])
both_activations = pytest.mark.parametrize("activation", [Activation.relu, Activation.gelu])


def decoder_block_pairs(ours: Block, theirs: nn.TransformerDecoderLayer, what: str) -> Pairs:
    modules = [
        (ours.self_attention_norm, theirs.norm1),
        (ours.cross_attention_norm, theirs.norm2),
        (ours.feed_forward_norm, theirs.norm3),
        (ours.feed_forward.expand, theirs.linear1),
        (ours.feed_forward.contract, theirs.linear2),
    ]
    attentions = attention_pairs(ours.self_attention, theirs.self_attn, what)
    attentions += attention_pairs(ours.cross_attention, theirs.multihead_attn, what)
    return attentions + [pair for module, other in modules for pair in module_pairs(module, other, what)]


@every_mask
@both_activations
@both_norms
def test_a_block_with_cross_attention_equals_torchs_decoder_layer_in_outputs_and_gradients(
    norm: Norm, activation: Activation, with_padding: bool, with_causal: bool
) -> None:
    """The padding is that of the memory, and the causal mask that of self-attention."""
    options: dict[str, Any] = {"dim_feedforward": HIDDEN_DIM, "activation": activation.value, "dropout": 0.0}
    options |= {"norm_first": norm is Norm.pre, "batch_first": True, "dtype": torch.float64}
    theirs = nn.TransformerDecoderLayer(DIM, HEADS, **options)
    randomize(theirs)
    sizes = {"dim": DIM, "num_heads": HEADS, "feed_forward_dim": HIDDEN_DIM, "dropout": 0.0}
    config = TransformerConfig(**sizes, activation=activation, norm=norm, attention_bias=True)  # as in torch
    ours = build_block(config, cross_attention=True).double()
    copy_weights(decoder_block_pairs(ours, theirs, "data"), ours)

    memory_mask, key_padding, _ = ours_and_torchs_masks(with_padding, False, QUERIES, KEYS)
    mask, _, causal = ours_and_torchs_masks(False, with_causal, QUERIES, QUERIES)
    hidden, other_hidden = (random_tensor(2, QUERIES, DIM, seed=1).requires_grad_() for _ in range(2))
    memory, other_memory = (random_tensor(2, KEYS, DIM, seed=2).requires_grad_() for _ in range(2))
    output = ours(hidden, mask, memory=memory, memory_mask=memory_mask)
    expected = theirs(other_hidden, other_memory, tgt_mask=causal, memory_key_padding_mask=key_padding)
    assert_close(output, expected)

    direction = random_tensor(2, QUERIES, DIM, seed=3)
    output.backward(direction)
    expected.backward(direction)
    assert_close(hidden.grad, other_hidden.grad)
    assert_close(memory.grad, other_memory.grad)
    assert_pairs_close(decoder_block_pairs(ours, theirs, "grad"))
