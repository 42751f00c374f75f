import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from firstlight.networks import Block, FeedForward, GatedFeedForward, TransformerConfig, build_block, num_parameters
from firstlight.networks.block import GeneralBlock, LinearFeedForward, PostNormBlock, build_feed_forward
from firstlight.networks.variants import Activation, FeedForwardKind, Norm, NormKind, Positions
from stand_ins import make_hidden

PARTS = ("self_attention", "self_attention_norm", "feed_forward", "feed_forward_norm")


def make_config(**options: object) -> TransformerConfig:
    return TransformerConfig(**({"dim": 15, "num_heads": 3, "dropout": 0.0} | options))


def make_block(**options: object) -> Block:
    torch.manual_seed(0)
    block = build_block(make_config(**options)).double()
    for parameter in block.parameters():  # norms too, so that a missing or repeated norm changes the result
        torch.nn.init.normal_(parameter, std=0.5)
    return block


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ({}, 12_608),
        ({"norm": Norm.none}, 12_608 - 4 * 32),
        ({"norm_affine": False}, 12_608 - 4 * 32),
        ({"norm_kind": NormKind.rms}, 12_608 - 2 * 32),
        ({"norm_kind": NormKind.rms, "norm_affine": False}, 12_608 - 4 * 32),
        ({"feed_forward": FeedForwardKind.none}, 4_128 + 2 * 32),
        ({"feed_forward": FeedForwardKind.linear}, 4_128 + 4 * 32 + 32 * 32 + 32),
        ({"feed_forward_dim": 37}, 4_128 + 4 * 32 + 2 * 32 * 37 + 37 + 32),
        ({"activation": Activation.swiglu}, 4_128 + 4 * 32 + 3 * 32 * 85),
        ({"activation": Activation.swiglu, "feed_forward_dim": 37}, 4_128 + 4 * 32 + 3 * 32 * 37),
        ({"positions": Positions.relative, "context_length": 11}, 12_608 + 21 * 8),
        ({"attention_bias": True}, 12_608 + 3 * 32),
        ({"output_bias": False}, 12_608 - 32),
        ({"output_projection": False}, 12_608 - 32 * 32 - 32),
        ({"head_dim": 5}, 12_608 - 4 * 32 * 12),
        ({"num_key_value_heads": 2}, 12_608 - 2 * 32 * 16),
    ],
)
def test_the_config_decides_the_parameters(options: dict[str, object], parameters: int) -> None:
    assert num_parameters(build_block(TransformerConfig(dim=32, num_heads=4, **options))) == parameters


@pytest.mark.parametrize(
    ("options", "formula"),
    [
        ({"norm": Norm.post}, lambda hidden, a, norm_a, f, norm_f: norm_f((x := norm_a(hidden + a(hidden))) + f(x))),
        ({"norm": Norm.pre}, lambda hidden, a, norm_a, f, norm_f: (x := hidden + a(norm_a(hidden))) + f(norm_f(x))),
        ({"norm": Norm.none}, lambda hidden, a, _, f, __: (x := hidden + a(hidden)) + f(x)),
        ({"norm": Norm.none, "residual": False}, lambda hidden, a, _, f, __: f(a(hidden))),
        ({"feed_forward": FeedForwardKind.none}, lambda hidden, a, norm_a, *_: norm_a(hidden + a(hidden))),
    ],
)
def test_a_block_is_its_formula(options: dict[str, object], formula: Callable[..., Tensor]) -> None:
    block, hidden = make_block(**options), make_hidden(2, 7, 15)
    assert_close(block(hidden), formula(hidden, *(getattr(block, name, None) for name in PARTS)))


@pytest.mark.parametrize("kind", [NormKind.layer, NormKind.rms])
@pytest.mark.parametrize("norm", Norm)
def test_the_general_block_does_what_the_simple_blocks_do(norm: Norm, kind: NormKind) -> None:
    simple = build_block(make_config(norm=norm, norm_kind=kind), cross_attention=True).double()
    assert type(simple) is (PostNormBlock if norm is Norm.post else Block)
    layers = [getattr(simple, name) for name in (*PARTS, "cross_attention", "cross_attention_norm")]
    general = GeneralBlock(*layers, norm=norm, residual=True)
    hidden, memory = make_hidden(2, 7, 15), make_hidden(2, 11, 15)
    options = {"is_causal": True, "memory": memory}
    assert torch.equal(general(hidden, **options), simple(hidden, **options))


def make_zeroed_block(**options: object) -> Block:
    torch.manual_seed(0)
    return build_block(make_config(**{"zero_init": True, "attention_bias": True} | options)).double()


FEED_FORWARDS = [
    {"feed_forward": FeedForwardKind.none},
    {"activation": Activation.relu},
    {"activation": Activation.swiglu},
    {"activation": Activation.relu_squared},
]


@pytest.mark.parametrize("feed_forward", FEED_FORWARDS, ids=["none", "relu", "swiglu", "relu squared"])
@pytest.mark.parametrize("norm", [Norm.pre, Norm.none])
def test_a_block_that_starts_from_nothing_changes_nothing(norm: Norm, feed_forward: dict[str, object]) -> None:
    options = {"norm": norm, "positions": Positions.relative, "dropout": 0.5} | feed_forward
    hidden = make_hidden(2, 7, 15)
    assert torch.equal(make_zeroed_block(**options)(hidden), hidden)
    assert not torch.isclose(make_zeroed_block(**options, zero_init=False)(hidden), hidden).all(dim=-1).any()
    post_norm = make_zeroed_block(**options | {"norm": Norm.post})(hidden)
    normalized = F.layer_norm(hidden, (15,))
    has_second = feed_forward != {"feed_forward": FeedForwardKind.none}
    assert_close(post_norm, F.layer_norm(normalized, (15,)) if has_second else normalized)


def test_starting_from_nothing_changes_only_the_last_layers() -> None:
    zeroed, plain = make_zeroed_block().state_dict(), make_zeroed_block(zero_init=False).state_dict()
    different = {name for name in plain if not torch.equal(zeroed[name], plain[name])}
    assert different == {
        f"{layer}.{kind}" for layer in ("self_attention.output", "feed_forward.contract") for kind in ("weight", "bias")
    }


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", lambda x: x.clamp(min=0)),
        ("gelu", lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2),
        ("gelu_tanh", lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        ("silu", lambda x: x * torch.sigmoid(x)),
        ("sigmoid", lambda x: 1 / (1 + torch.exp(-x))),
        ("tanh", torch.tanh),
        ("relu_squared", lambda x: x.clamp(min=0) ** 2),
        ("linear", lambda x: x),
    ],
)
def test_a_feed_forward_layer_has_the_values_of_its_formula(activation, function) -> None:
    hidden, layer = torch.randn(2, 7, 15), build_feed_forward(make_config(activation=activation))
    assert isinstance(layer, FeedForward)
    assert layer.expand.weight.shape == (60, 15)
    inner = function(hidden @ layer.expand.weight.T + layer.expand.bias)
    assert_close(layer(hidden), inner @ layer.contract.weight.T + layer.contract.bias)
    assert_close(FeedForward(15, 11, activation).activation(hidden), function(hidden))
    linear = build_feed_forward(make_config(feed_forward=FeedForwardKind.linear, activation=activation))
    assert isinstance(linear, LinearFeedForward)
    assert_close(linear(hidden), function(hidden @ linear.linear.weight.T + linear.linear.bias))


def test_swiglu_gates_one_linear_layer_by_another() -> None:
    layer = build_feed_forward(make_config(activation=Activation.swiglu, feed_forward_dim=11))
    assert isinstance(layer, GatedFeedForward)
    hidden = torch.randn(2, 7, 15)
    gate = hidden @ layer.gate.weight.T
    inner = gate * torch.sigmoid(gate) * (hidden @ layer.expand.weight.T)
    assert inner.shape == (2, 7, 11)
    assert_close(layer(hidden), inner @ layer.contract.weight.T)


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        ("rleu", f"activation='rleu' must be one of {', '.join(each.value for each in Activation)}"),
        ("swiglu", "activation=swiglu has a gate; use GatedFeedForward"),
    ],
)
def test_a_feed_forward_layer_refuses_an_activation_that_it_cannot_apply(activation: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeedForward(15, 11, activation)


def test_dropout_falls_on_the_change_and_not_on_the_residual_path() -> None:
    torch.manual_seed(0)
    block = build_block(make_config(norm=Norm.none, dropout=0.5, feed_forward=FeedForwardKind.none)).double()
    hidden = make_hidden(97, 7, 15)
    change = block.self_attention.eval()(hidden)
    block.self_attention.train()
    seen = block(hidden) - hidden
    kept = seen.abs() > 1e-9
    assert kept.double().mean().item() == pytest.approx(0.5, abs=0.03)
    assert_close(seen[kept], 2 * change[kept])  # the kept values are scaled up
