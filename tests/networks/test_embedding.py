import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

OPTIONS = {"dim": 6, "num_heads": 2, "scale_embeddings": True, "embedding_std": 0.1}


def embedded(network: nn.Module, *inputs: torch.Tensor, positions: str = "positions") -> torch.Tensor:
    """Return what the positions of a network receive."""
    received = []
    getattr(network, positions).register_forward_pre_hook(lambda _, arguments: received.append(arguments[0]))
    network(*inputs)
    return received[0]


def make_networks() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {
        "classifier": Classifier(ClassifierConfig(**OPTIONS), 11, 3),
        "generator": Generator(GeneratorConfig(**OPTIONS, tie_embeddings=True), 11),
        "masked": MaskedLanguageModel(MaskedConfig(**OPTIONS), 11),
        "translator": EncoderDecoder(EncoderDecoderConfig(**OPTIONS), 7, 11),
    }


@pytest.mark.parametrize("kind", ["classifier", "generator", "masked", "translator"])
def test_embeddings_are_scaled_by_the_root_of_dim(kind: str) -> None:
    network, token_ids, source_ids = make_networks()[kind], torch.tensor([[3, 8]]), torch.tensor([[1, 2]])
    inputs = (source_ids, token_ids) if kind == "translator" else (token_ids,)
    assert_close(embedded(network, *inputs), network.embedding.weight[token_ids] * math.sqrt(6))
    if kind == "translator":
        received = embedded(network, *inputs, positions="source_positions")
        assert_close(received, network.source_embedding.weight[source_ids] * math.sqrt(6))


def test_the_vector_of_a_mask_is_scaled_too_and_the_output_layer_is_not() -> None:
    network = make_networks()["masked"].eval()
    assert_close(embedded(network, torch.tensor([[network.mask_id]]))[0, 0], network.mask_vector * math.sqrt(6))
    assert network.head.weight is network.embedding.weight


@pytest.mark.parametrize("kind", [ClassifierConfig, GeneratorConfig, MaskedConfig])
def test_a_norm_of_the_embeddings_follows_the_positions_and_precedes_dropout(kind: type) -> None:
    torch.manual_seed(0)
    config = kind(dim=6, num_heads=2, embedding_norm=True, dropout=0.5)
    network = {
        ClassifierConfig: lambda: Classifier(config, 11, 3),
        GeneratorConfig: lambda: Generator(config, 11),
        MaskedConfig: lambda: MaskedLanguageModel(config, 11),
    }[kind]()
    seen = {}
    network.positions.register_forward_hook(lambda _, __, output: seen.update(placed=output))
    network.dropout.register_forward_pre_hook(lambda _, arguments: seen.update(dropped=arguments[0]))
    network(torch.tensor([[3, 8]]))
    assert_close(seen["dropped"], nn.functional.layer_norm(seen["placed"], (6,)))
