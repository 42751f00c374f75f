import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from firstlight.networks import masks
from firstlight.networks.block import (
    Block,
    FeedForward,
    GatedFeedForward,
    GeneralBlock,
    LinearFeedForward,
    PostNormBlock,
    build_block,
    build_feed_forward,
)
from firstlight.networks.config import Activation, FeedForwardKind, Norm, NormKind, Positions, TransformerConfig
from firstlight.networks.norms import build_norm


def make_config(**options: object) -> TransformerConfig:
    return TransformerConfig(**({"dim": 15, "num_heads": 3, "dropout": 0.0} | options))


def make_block(**options: object) -> Block:
    torch.manual_seed(0)
    block = build_block(make_config(**options)).double()
    for parameter in block.parameters():  # norms too, so that a missing or repeated norm changes the result
        torch.nn.init.normal_(parameter, std=0.5)
    return block


def make_hidden(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_a_block_of_width_32_with_4_heads_has_12608_parameters() -> None:
    assert count(build_block(TransformerConfig(dim=32, num_heads=4))) == 12_608


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ({"norm": Norm.pre}, 12_608),
        ({"norm": Norm.none}, 12_608 - 4 * 32),
        ({"norm_affine": False}, 12_608 - 4 * 32),
        ({"norm_kind": NormKind.rms}, 12_608 - 2 * 32),
        ({"norm_kind": NormKind.rms, "norm_affine": False}, 12_608 - 4 * 32),
        ({"residual": False}, 12_608),
        ({"feed_forward": FeedForwardKind.none}, 4_128 + 2 * 32),
        ({"feed_forward": FeedForwardKind.linear}, 4_128 + 4 * 32 + 32 * 32 + 32),
        ({"feed_forward_dim": 37}, 4_128 + 4 * 32 + 2 * 32 * 37 + 37 + 32),
        ({"activation": Activation.swiglu}, 4_128 + 4 * 32 + 3 * 32 * 85),
        ({"activation": Activation.swiglu, "feed_forward_dim": 37}, 4_128 + 4 * 32 + 3 * 32 * 37),
        ({"positions": Positions.relative, "context_length": 11}, 12_608 + 21 * 8),
        ({"zero_init": True}, 12_608),
    ],
)
def test_the_config_decides_the_parameters(options: dict[str, object], parameters: int) -> None:
    assert count(build_block(TransformerConfig(dim=32, num_heads=4, **options))) == parameters


def test_a_post_norm_block_normalises_after_each_sum() -> None:
    block = make_block(norm=Norm.post)
    hidden = make_hidden(2, 7, 15)
    expected = block.self_attention_norm(hidden + block.self_attention(hidden))
    expected = block.feed_forward_norm(expected + block.feed_forward(expected))
    assert_close(block(hidden), expected)


def test_a_pre_norm_block_normalises_before_each_transformation() -> None:
    block = make_block(norm=Norm.pre)
    hidden = make_hidden(2, 7, 15)
    expected = hidden + block.self_attention(block.self_attention_norm(hidden))
    expected = expected + block.feed_forward(block.feed_forward_norm(expected))
    assert_close(block(hidden), expected)


def test_a_block_without_norm_only_adds() -> None:
    block = make_block(norm=Norm.none)
    hidden = make_hidden(2, 7, 15)
    expected = hidden + block.self_attention(hidden)
    expected = expected + block.feed_forward(expected)
    assert_close(block(hidden), expected)


def test_a_block_without_norm_and_residual_is_one_transformation_after_the_other() -> None:
    block = make_block(norm=Norm.none, residual=False)
    hidden = make_hidden(2, 7, 15)
    expected = block.feed_forward(block.self_attention(hidden))
    assert_close(block(hidden), expected)


def test_a_block_without_feed_forward_is_attention_alone() -> None:
    block = make_block(feed_forward=FeedForwardKind.none)
    hidden = make_hidden(2, 7, 15)
    assert torch.equal(block(hidden), block.self_attention_norm(hidden + block.self_attention(hidden)))


@pytest.mark.parametrize("kind", [NormKind.layer, NormKind.rms])
@pytest.mark.parametrize("norm", Norm)
def test_the_general_block_does_what_the_simple_blocks_do(norm: Norm, kind: NormKind) -> None:
    simple = build_block(make_config(norm=norm, norm_kind=kind), cross_attention=True).double()
    assert type(simple) is (PostNormBlock if norm is Norm.post else Block)
    names = ("self_attention", "self_attention_norm", "feed_forward", "feed_forward_norm")
    layers = [getattr(simple, name) for name in (*names, "cross_attention", "cross_attention_norm")]
    general = GeneralBlock(*layers, norm=norm, residual=True)
    hidden, memory = make_hidden(2, 7, 15), make_hidden(2, 11, 15)
    options = {"is_causal": True, "memory": memory}
    assert torch.equal(general(hidden, **options), simple(hidden, **options))


def test_a_post_norm_block_ends_with_a_mean_of_zero_and_a_deviation_of_one() -> None:
    torch.manual_seed(0)
    hidden = build_block(make_config(norm_affine=False)).double()(make_hidden(2, 7, 15))
    assert_close(hidden.mean(dim=-1), torch.zeros(2, 7, dtype=torch.float64))
    assert_close(hidden.var(dim=-1, unbiased=False), torch.ones(2, 7, dtype=torch.float64), atol=1e-3, rtol=0)


@pytest.mark.parametrize("norm", Norm)
def test_a_block_passes_its_mask_to_the_attention(norm: Norm) -> None:
    block = make_block(norm=norm)
    hidden = make_hidden(2, 7, 15)
    mask = masks.padding(torch.arange(7) < torch.tensor([[7], [3]]))
    changed = hidden.clone()
    changed[1, 3:] += 1.0
    assert_close(block(changed, mask)[1, :3], block(hidden, mask)[1, :3])
    assert_close(block(hidden, mask)[1:, :3], block(hidden[1:, :3]))


@pytest.mark.parametrize("positions", Positions)
@pytest.mark.parametrize("norm", Norm)
def test_a_causal_block_is_a_block_with_a_causal_mask(norm: Norm, positions: Positions) -> None:
    block = make_block(norm=norm, head_dim=6, positions=positions)
    hidden = make_hidden(2, 7, 15)
    assert_close(block(hidden, is_causal=True), block(hidden, masks.causal(torch.arange(7), torch.arange(7))))
    assert not torch.isclose(block(hidden, is_causal=True)[:, :6], block(hidden)[:, :6]).all(dim=-1).any()


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
@pytest.mark.parametrize("positions", [Positions.sinusoidal, Positions.relative])
@pytest.mark.parametrize("norm", [Norm.pre, Norm.none])
def test_a_block_that_starts_from_nothing_changes_nothing(
    norm: Norm, positions: Positions, feed_forward: dict[str, object]
) -> None:
    options = {"norm": norm, "positions": positions, "dropout": 0.5} | feed_forward
    hidden = make_hidden(2, 7, 15)
    assert torch.equal(make_zeroed_block(**options)(hidden), hidden)
    assert not torch.isclose(make_zeroed_block(**options, zero_init=False)(hidden), hidden).all(dim=-1).any()


def test_a_post_norm_block_that_starts_from_nothing_only_normalises() -> None:
    hidden = make_hidden(2, 7, 15)
    normalised = F.layer_norm(hidden, (15,))
    assert_close(make_zeroed_block(norm=Norm.post)(hidden), F.layer_norm(normalised, (15,)))


@pytest.mark.parametrize("feed_forward", FEED_FORWARDS, ids=["none", "relu", "swiglu", "relu squared"])
@pytest.mark.parametrize("norm", Norm)
def test_what_starts_from_nothing_learns_at_once_and_then_so_does_all_else(
    norm: Norm, feed_forward: dict[str, object]
) -> None:
    block = make_zeroed_block(norm=norm, **feed_forward)
    zeroed = [block.self_attention.output]
    if feed_forward != {"feed_forward": FeedForwardKind.none}:
        zeroed.append(block.feed_forward.contract)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    hidden, direction = make_hidden(2, 7, 15), torch.arange(15.0).double()
    (block(hidden) @ direction.square()).square().sum().backward()
    for layer in zeroed:
        for parameter in layer.parameters():
            assert (parameter == 0).all()
            assert parameter.grad.isfinite().all()
            assert parameter.grad.count_nonzero() > 0
    optimizer.step()
    optimizer.zero_grad()
    (block(hidden) @ direction.square()).square().sum().backward()
    for name, parameter in block.named_parameters():
        if "key.bias" not in name:  # it adds the same number to all scores of a query
            assert parameter.grad.count_nonzero() > 0, name


def test_starting_from_nothing_changes_only_the_last_layers() -> None:
    zeroed, plain = make_zeroed_block().state_dict(), make_zeroed_block(zero_init=False).state_dict()
    different = {name for name in plain if not torch.equal(zeroed[name], plain[name])}
    assert different == {
        f"{layer}.{kind}" for layer in ("self_attention.output", "feed_forward.contract") for kind in ("weight", "bias")
    }


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        (Activation.relu, lambda hidden: hidden.clamp(min=0)),
        (Activation.gelu, lambda hidden: hidden * (1 + torch.erf(hidden / 2**0.5)) / 2),
        (Activation.silu, lambda hidden: hidden * torch.sigmoid(hidden)),
        (Activation.tanh, torch.tanh),
        (Activation.relu_squared, lambda hidden: hidden.clamp(min=0) ** 2),
    ],
)
def test_a_feed_forward_layer_is_linear_activation_linear(activation: Activation, function: object) -> None:
    layer = build_feed_forward(make_config(activation=activation))
    assert isinstance(layer, FeedForward)
    assert layer.expand.weight.shape == (60, 15)
    hidden = torch.randn(2, 7, 15)
    inner = function(hidden @ layer.expand.weight.T + layer.expand.bias)
    assert_close(layer(hidden), inner @ layer.contract.weight.T + layer.contract.bias)


def test_swiglu_gates_one_linear_layer_by_another() -> None:
    layer = build_feed_forward(make_config(activation=Activation.swiglu, feed_forward_dim=11))
    assert isinstance(layer, GatedFeedForward)
    hidden = torch.randn(2, 7, 15)
    gate = hidden @ layer.gate.weight.T
    inner = gate * torch.sigmoid(gate) * (hidden @ layer.expand.weight.T)
    assert inner.shape == (2, 7, 11)
    assert_close(layer(hidden), inner @ layer.contract.weight.T)


@pytest.mark.parametrize(
    ("activation", "function"),
    [(Activation.relu, F.relu), (Activation.tanh, torch.tanh), (Activation.silu, F.silu)],
)
def test_a_linear_feed_forward_layer_is_one_linear_layer_and_an_activation(
    activation: Activation, function: object
) -> None:
    layer = build_feed_forward(make_config(feed_forward=FeedForwardKind.linear, activation=activation))
    assert isinstance(layer, LinearFeedForward)
    hidden = torch.randn(2, 7, 15)
    assert_close(layer(hidden), function(hidden @ layer.linear.weight.T + layer.linear.bias))


def test_a_feed_forward_layer_takes_the_name_of_its_activation() -> None:
    hidden = torch.randn(2, 7, 15)
    assert_close(FeedForward(15, 11, "tanh").activation(hidden), torch.tanh(hidden))


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        ("rleu", f"activation='rleu' must be one of {', '.join(each.value for each in Activation)}"),
        ("swiglu", "activation=swiglu has a gate, which FeedForward does not have; use GatedFeedForward"),
    ],
)
def test_a_feed_forward_layer_refuses_an_activation_that_it_cannot_apply(activation: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeedForward(15, 11, activation)


def test_a_layer_norm_subtracts_the_mean_and_an_rms_norm_does_not() -> None:
    hidden = make_hidden(2, 7, 15) + 3.0
    layer_norm = build_norm(make_config(norm_kind=NormKind.layer)).double()
    rms_norm = build_norm(make_config(norm_kind=NormKind.rms)).double()
    centred = hidden - hidden.mean(dim=-1, keepdim=True)
    assert_close(layer_norm(hidden), centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt())
    assert_close(rms_norm(hidden), hidden / hidden.square().mean(dim=-1, keepdim=True).sqrt())


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


def test_dropout_is_off_in_evaluation() -> None:
    block = make_block(dropout=0.5)
    hidden = make_hidden(2, 7, 15)
    assert not torch.equal(block(hidden), block(hidden))
    block.eval()
    assert torch.equal(block(hidden), block(hidden))


def test_a_block_treats_every_position_alike() -> None:
    block = make_block()
    hidden = make_hidden(2, 7, 15)
    order = torch.tensor([3, 1, 4, 6, 5, 0, 2])
    assert_close(block(hidden[:, order]), block(hidden)[:, order])


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("gelu_tanh", lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        ("sigmoid", lambda x: 1 / (1 + torch.exp(-x))),
        ("linear", lambda x: x),
    ],
)
def test_an_activation_has_the_values_of_its_formula(activation: str, expected: Callable[[Tensor], Tensor]) -> None:
    hidden, layer = make_hidden(2, 7, 15), FeedForward(15, 11, activation).double()
    assert_close(layer(hidden), layer.contract(expected(layer.expand(hidden))))
    assert_close(LinearFeedForward(15, Activation(activation)).activation(hidden), expected(hidden))


def test_dropout_can_leave_out_the_output_of_attention_as_in_post_5() -> None:
    hidden = torch.ones(1, 7, 15)
    for attention_output_dropout in (True, False):
        config = make_config(dropout=0.5, attention_output_dropout=attention_output_dropout)
        block = build_block(config, cross_attention=True)
        torch.nn.init.ones_(block.feed_forward.contract.bias)
        for sublayer, arguments in (
            (block.self_attention, {}),
            (block.cross_attention, {"memory": hidden}),
            (block.feed_forward, {}),
        ):
            varies = not torch.equal(sublayer(hidden, **arguments), sublayer(hidden, **arguments))
            assert varies == (attention_output_dropout or sublayer is block.feed_forward)
