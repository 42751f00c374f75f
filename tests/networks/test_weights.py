"""The attention weights that are collected are those that were used, and collecting them has no side effect."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.attention import MultiHeadAttention, attention_weights
from firstlight.networks.variants import Positions
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig
from stand_ins import randomized

SIZES = {"dim": 12, "num_heads": 3, "num_layers": 2, "context_length": 13}
BATCH, SOURCES, TARGETS = 2, 11, 7
every_position = pytest.mark.parametrize("positions", Positions)

Call = Callable[[], Tensor]


def random_texts(*shape: int) -> Tensor:
    return torch.randint(0, 23, shape, generator=torch.Generator().manual_seed(1))


SOURCE_MASK = torch.arange(SOURCES) < torch.tensor([[SOURCES], [5]])
TARGET_MASK = torch.arange(TARGETS) < torch.tensor([[3], [TARGETS]])
PADDING = SOURCE_MASK[:, None, None, :]  # the mask of a text: (batch, heads, queries, keys)
TARGET_PADDING = TARGET_MASK[:, None, None, :]
BACK = torch.ones(TARGETS, TARGETS, dtype=torch.bool).tril()


def classifier(**options: object) -> tuple[nn.Module, Call]:
    network = randomized(Classifier(ClassifierConfig(**SIZES, **options), 23, 5))
    return network, lambda: network(random_texts(BATCH, SOURCES), SOURCE_MASK)


def generator(**options: object) -> tuple[nn.Module, Call]:
    network = randomized(Generator(GeneratorConfig(**SIZES, **options), 23))
    return network, lambda: network(random_texts(BATCH, TARGETS))


def translator(**options: object) -> tuple[nn.Module, Call]:
    network = randomized(EncoderDecoder(EncoderDecoderConfig(**SIZES, num_decoder_layers=3, **options), 23, 23))
    sources, targets = random_texts(BATCH, SOURCES), random_texts(BATCH, TARGETS)
    return network, lambda: network(sources, targets, SOURCE_MASK, TARGET_MASK)


def names(part: str, layers: int, kind: str = "self_attention") -> list[str]:
    return [f"{part}.{layer}.{kind}" for layer in range(layers)]


CASES = {  # the queries, the keys and the mask of each attention by its name
    "classifier": (classifier, dict.fromkeys(names("blocks", 2), (SOURCES, SOURCES, PADDING))),
    "generator": (generator, dict.fromkeys(names("blocks", 2), (TARGETS, TARGETS, BACK))),
    "translator": (
        translator,
        dict.fromkeys(names("encoder", 2), (SOURCES, SOURCES, PADDING))
        | dict.fromkeys(names("decoder", 3), (TARGETS, TARGETS, BACK & TARGET_PADDING))
        | dict.fromkeys(names("decoder", 3, "cross_attention"), (TARGETS, SOURCES, PADDING)),
    ),
}
every_network = pytest.mark.parametrize(("make", "expected"), CASES.values(), ids=CASES.keys())


@every_position
@every_network
def test_there_are_the_weights_of_every_attention_by_its_name_and_none_where_it_may_not_look(make, expected, positions):
    network, call = make(positions=positions)
    with attention_weights(network) as weights:
        call()
    assert sorted(weights) == sorted(expected)
    for name, (queries, keys, allowed) in expected.items():
        assert isinstance(network.get_submodule(name), MultiHeadAttention)
        assert weights[name].shape == (BATCH, 3, queries, keys)
        assert_close(weights[name].sum(dim=-1), torch.ones(BATCH, 3, queries, dtype=torch.float64))
        assert torch.equal(weights[name] > 0, allowed.expand(BATCH, 3, queries, keys))


def watched(network: nn.Module) -> int:
    return sum(getattr(module, "watch", None) is not None for module in network.modules())


@every_network
def test_afterwards_nobody_looks_any_more(make: Callable[..., tuple[nn.Module, Call]], expected: object) -> None:
    network, call = make()
    with attention_weights(network) as weights:
        assert watched(network) == len(expected)
        assert call().requires_grad
    assert not any(weight.requires_grad for weight in weights.values())
    assert watched(network) == 0
    weights.clear()
    call()
    assert weights == {}
    with pytest.raises(ZeroDivisionError), attention_weights(network):
        1 / 0  # noqa: B018
    assert watched(network) == 0


@pytest.mark.parametrize("positions", [Positions.learned, Positions.rotary, Positions.relative])
def test_with_a_cache_the_weights_are_those_of_the_new_tokens_for_all_tokens(positions: Positions) -> None:
    network, _ = generator(positions=positions)
    token_ids = random_texts(BATCH, TARGETS)
    with torch.no_grad(), attention_weights(network) as weights:
        network(token_ids)
        complete = dict(weights)
        cache = network.new_cache()
        network(token_ids[:, :3], cache)
        network(token_ids[:, 3:], cache)
    for name, weight in weights.items():
        assert_close(weight, complete[name][:, :, 3:])
