import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from stand_ins import classifier, generator, masked, translator

KINDS = {"classifier": classifier, "generator": generator, "masked": masked, "translator": translator}


def embedded(network: nn.Module, *inputs: torch.Tensor, positions: str = "positions") -> torch.Tensor:
    """Return what the positions of a network receive."""
    received = []
    getattr(network, positions).register_forward_pre_hook(lambda _, arguments: received.append(arguments[0]))
    network(*inputs)
    return received[0]


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_are_scaled_by_the_root_of_dim(kind: str) -> None:
    network, inputs = KINDS[kind](scale_embeddings=True)
    token_ids = inputs[1] if kind == "translator" else inputs[0]
    received = embedded(network, *inputs)[:, :2]  # before the [MASK] of a masked text
    assert_close(received, network.embedding.weight[token_ids[:, :2]] * math.sqrt(12))
    if kind == "translator":
        received = embedded(network, *inputs, positions="source_positions")
        assert_close(received, network.source_embedding.weight[inputs[0]] * math.sqrt(12))


def test_the_vector_of_a_mask_is_scaled_too_and_the_output_layer_is_not() -> None:
    network, _ = masked(scale_embeddings=True)
    assert_close(embedded(network, torch.tensor([[network.mask_id]]))[0, 0], network.mask_vector * math.sqrt(12))
    assert network.head.weight is network.embedding.weight


@pytest.mark.parametrize("make", [classifier, generator, masked])
def test_a_norm_of_the_embeddings_follows_the_positions_and_precedes_dropout(make: Any) -> None:
    network, inputs = make(embedding_norm=True, dropout=0.5)
    seen = {}
    network.positions.register_forward_hook(lambda _, __, output: seen.update(placed=output))
    network.dropout.register_forward_pre_hook(lambda _, arguments: seen.update(dropped=arguments[0]))
    network(*inputs)
    norm = network.embedding_norm
    assert_close(seen["dropped"], nn.functional.layer_norm(seen["placed"], (12,), norm.weight, norm.bias))
