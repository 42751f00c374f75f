"""The attention weights that are collected are those that were used, and collecting them has no side effect."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from firstlight.networks.attention import MultiHeadAttention, attention_weights
from firstlight.networks.variants import Positions
from stand_ins import LENGTH, MASK, SOURCE_MASK, SOURCES, classifier, generator, translator

PADDING, SOURCE_PADDING = (mask[:, None, None, :] for mask in (MASK, SOURCE_MASK))  # (batch, heads, queries, keys)
BACK = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()


def names(part: str, layers: int, kind: str = "self_attention") -> list[str]:
    return [f"{part}.{layer}.{kind}" for layer in range(layers)]


CASES = {  # the queries, the keys and the mask of each attention by its name
    "classifier": (classifier, dict.fromkeys(names("blocks", 2), (LENGTH, LENGTH, PADDING))),
    "generator": (generator, dict.fromkeys(names("blocks", 2), (LENGTH, LENGTH, BACK))),
    "translator": (
        translator,
        dict.fromkeys(names("encoder", 2), (SOURCES, SOURCES, SOURCE_PADDING))
        | dict.fromkeys(names("decoder", 3), (LENGTH, LENGTH, BACK & PADDING))
        | dict.fromkeys(names("decoder", 3, "cross_attention"), (LENGTH, SOURCES, SOURCE_PADDING)),
    ),
}
every_network = pytest.mark.parametrize(("make", "expected"), CASES.values(), ids=CASES.keys())


@pytest.mark.parametrize("positions", Positions)
@every_network
def test_there_are_the_weights_of_every_attention_by_its_name_and_none_where_it_may_not_look(make, expected, positions):
    network, inputs = make(positions=positions)
    with attention_weights(network) as weights:
        network(*inputs)
    assert sorted(weights) == sorted(expected)
    for name, (queries, keys, allowed) in expected.items():
        assert isinstance(network.get_submodule(name), MultiHeadAttention)
        assert weights[name].shape == (2, 3, queries, keys)
        assert_close(weights[name].sum(dim=-1), torch.ones(2, 3, queries, dtype=torch.float64))
        assert torch.equal(weights[name] > 0, allowed.expand(2, 3, queries, keys))


def watched(network: nn.Module) -> int:
    return sum(getattr(module, "watch", None) is not None for module in network.modules())


@every_network
def test_afterwards_nobody_looks_any_more(make: Callable[..., Any], expected: object) -> None:
    network, inputs = make()
    with attention_weights(network) as weights:
        assert watched(network) == len(expected)
        assert network(*inputs).requires_grad
    assert not any(weight.requires_grad for weight in weights.values())
    assert watched(network) == 0
    weights.clear()
    network(*inputs)
    assert weights == {}
    with pytest.raises(ZeroDivisionError), attention_weights(network):
        1 / 0  # noqa: B018
    assert watched(network) == 0


@pytest.mark.parametrize("positions", [Positions.learned, Positions.rotary, Positions.relative])
def test_with_a_cache_the_weights_are_those_of_the_new_tokens_for_all_tokens(positions: Positions) -> None:
    network, (token_ids,) = generator(positions=positions)
    with torch.no_grad(), attention_weights(network) as weights:
        network(token_ids)
        complete = dict(weights)
        cache = network.new_cache()
        network(token_ids[:, :3], cache)
        network(token_ids[:, 3:], cache)
    for name, weight in weights.items():
        assert_close(weight, complete[name][:, :, 3:])
