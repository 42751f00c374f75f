import math

import pytest
import torch
from torch import nn

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.block import Block
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

OPTIONS = {"dim": 48, "num_heads": 2, "num_layers": 3, "embedding_std": 0.02, "attention_bias": True}


def last_layers(network: nn.Module) -> list[nn.Linear]:
    return [layer for part in network.modules() if isinstance(part, Block) for layer in part.last_layers]


def check_std(layer: nn.Linear, std: float) -> None:
    assert layer.weight.std().item() == pytest.approx(std, rel=0.1)
    assert layer.bias is None or not layer.bias.any()


@pytest.mark.parametrize("initialization", ["normal", "depth_scaled"])
def test_linear_layers_have_the_deviation_of_the_embeddings_and_no_biases(initialization: str) -> None:
    torch.manual_seed(0)
    network = Generator(GeneratorConfig(**OPTIONS, initialization=initialization, num_loops=2), 61)
    last = set(last_layers(network))
    assert len(last) == 6
    for layer in (part for part in network.modules() if isinstance(part, nn.Linear)):
        is_scaled = initialization == "depth_scaled" and layer in last
        check_std(layer, 0.02 / math.sqrt(12) if is_scaled else 0.02)  # 12 sublayers: 3 blocks of 2, applied twice


def test_the_encoder_and_the_decoder_are_scaled_by_their_own_depth() -> None:
    torch.manual_seed(0)
    config = EncoderDecoderConfig(**OPTIONS, initialization="depth_scaled", num_decoder_layers=1)
    network = EncoderDecoder(config, 61, 61)
    for stack, depth in ((network.encoder, 6), (network.decoder, 3)):
        for layer in last_layers(stack):
            check_std(layer, 0.02 / math.sqrt(depth))


def test_zero_init_wins_over_a_normal_distribution() -> None:
    torch.manual_seed(0)
    network = Classifier(ClassifierConfig(**OPTIONS, initialization="normal", zero_init=True), 61, 5)
    assert not any(layer.weight.any() or layer.bias.any() for layer in last_layers(network))
    check_std(network.blocks[0].self_attention.query, 0.02)


def test_the_distribution_of_the_features_does_not_change() -> None:
    torch.manual_seed(0)
    network = Classifier(ClassifierConfig(**OPTIONS, initialization="normal"), 61, 5, num_features=29)
    assert network.feature_projection.weight.std().item() == pytest.approx(0.03, rel=0.1)
