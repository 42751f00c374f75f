"""Attention weights of a trained run for one text, for figures, notebooks and the playground."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firstlight.networks.attention import MultiHeadAttention, attention_weights


class AttentionMap(NamedTuple):
    """Attention weights of one layer.

    name: name of the layer, such as "block 1", "encoder block 1" or "decoder block 1, cross-attention".
    weights: (heads, queries, keys); each row sums to 1. queries, keys: the tokens as readable text. The queries of
    cross-attention are the tokens that are written. All other queries are tokens that are read.
    """

    name: str
    weights: NDArray[np.float32]
    queries: list[str]
    keys: list[str]


@dataclass(frozen=True)
class Attention:
    """Attention weights of all layers of a network, in the order of its blocks.

    notes: notes for the user, such as that the text was cut to the context.
    """

    maps: list[AttentionMap]
    notes: list[str] = field(default_factory=list)


def has_attention(network: nn.Module) -> bool:
    """Return whether a network contains attention."""
    return any(isinstance(module, MultiHeadAttention) for module in network.modules())


def collect(
    network: nn.Module,
    inputs: tuple[Tensor | None, ...],
    sources: list[str],
    targets: list[str],
    written: Sequence[str] = (),
) -> list[AttentionMap]:
    """Run a network on one text and return the attention weights of its layers.

    inputs: the arguments of the network, with a batch of one text. sources, targets: the tokens that the network reads.
    written: the token that is written at each target, which labels the queries of cross-attention.
    """
    with torch.inference_mode(), attention_weights(network) as found:
        network(*inputs)
    maps = []
    for path, weights in found.items():
        stack, number, attention = path.split(".")[:3]
        is_cross = attention == "cross_attention"
        side = "" if stack == "blocks" else f"{stack} "
        name = f"{side}block {int(number) + 1}" + (", cross-attention" if is_cross else "")
        queries = sources if stack == "encoder" else written if is_cross else targets
        keys = sources if stack == "encoder" or is_cross else targets
        maps.append(AttentionMap(name, weights[0].float().numpy(), list(queries), keys))
    return maps
