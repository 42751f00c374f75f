"""What the networks of all kinds have in common: parameters, dropout, one table of embeddings, and the context."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor
from torch.testing import assert_close

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.networks.layers import num_parameters
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

VOCABULARY, CONTEXT = 29, 13
KINDS = {
    "classifier": (Classifier, ClassifierConfig),
    "generator": (Generator, GeneratorConfig),
    "masked": (MaskedLanguageModel, MaskedConfig),
    "translator": (EncoderDecoder, EncoderDecoderConfig),
}
PARAMETERS = yaml.safe_load(Path(__file__).with_name("parameters.yaml").read_text())
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind: str, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    network, config = KINDS[kind]
    sizes = {"classifier": [VOCABULARY, 5], "translator": [VOCABULARY, VOCABULARY]}.get(kind, [VOCABULARY])
    return network(config(**{"dim": 12, "num_heads": 3, "context_length": CONTEXT} | options), *sizes).double()


def texts(kind: str, length: int, rows: int = 2) -> list[Tensor]:
    """Return the inputs of a network: the ids of random texts, and for a translator those of their sources first."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(VOCABULARY, (rows, length), generator=generator) for _ in range(1 + (kind == "translator"))]


@every_kind
def test_the_config_decides_the_parameters(kind: str) -> None:
    (network, config), given = KINDS[kind], PARAMETERS[kind]
    for options, more in [({}, 0), *given["others"]]:
        found = num_parameters(network(config(**given["options"] | options), *given["sizes"]))
        assert found == given["parameters"] + more, options


@every_kind
def test_dropout_falls_on_the_sum_of_embedding_and_positions(kind: str) -> None:
    network = make(kind, dropout=0.7, positions="learned")
    sums: list[Tensor] = []
    seen: list[Tensor] = []
    places = [(network.positions, network.decoder if kind == "translator" else network.blocks)]
    places += [(network.source_positions, network.encoder)] if kind == "translator" else []
    for positions, blocks in places:
        positions.register_forward_hook(lambda _, __, output: sums.append(output))
        blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network(*texts(kind, CONTEXT, rows=97))
    assert len(sums) == len(places)
    for given, expected in zip(seen, sums, strict=True):
        kept = given != 0
        assert kept.double().mean().item() == pytest.approx(0.3, abs=0.02)
        assert_close(given[kept], expected[kept] / 0.3, rtol=2e-5, atol=0)  # the kept values are scaled up


@pytest.mark.parametrize("kind", ["generator", "masked", "translator"])
def test_embeddings_that_are_one_survive_saving_loading_copying_and_another_precision(kind: str) -> None:
    options = {"tie_embeddings": True} | ({"share_embeddings": True} if kind == "translator" else {})
    trained, fresh = (make(kind, seed, **options).eval() for seed in (0, 1))
    given = texts(kind, 11)
    assert not torch.equal(fresh(*given), trained(*given))
    fresh.load_state_dict(trained.state_dict())
    assert torch.equal(fresh(*given), trained(*given))
    for network in (fresh, copy.deepcopy(trained), copy.deepcopy(trained).float()):
        assert network.head.weight is network.embedding.weight
        assert getattr(network, "source_embedding", network.embedding).weight is network.embedding.weight


@every_kind
def test_a_text_longer_than_the_context_is_an_error_that_names_both_numbers(kind: str) -> None:
    network = make(kind)
    network(*texts(kind, CONTEXT))
    with pytest.raises(ValueError, match=r"^a (text|source) of 17 tokens is longer than the context length, 13$"):
        network(*texts(kind, 17))
