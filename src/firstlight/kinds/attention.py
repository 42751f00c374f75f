"""What the attentions of a trained run look at in one text, as numbers: for figures, notebooks and the playground."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.kinds.kind import get
from firstlight.kinds.loaded import LoadedRun
from firstlight.kinds.registry import KINDS
from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.weights import attention_weights


class AttentionMap(NamedTuple):
    """What one attention looked at, as in "block 1", "encoder block 1" or "decoder block 1, cross-attention".

    weights: (heads, queries, keys), rows summing to 1; queries, keys: the tokens, for people. The queries of
    cross-attention are what is written there, all others what is read.
    """

    name: str
    weights: NDArray[np.float32]
    queries: list[str]
    keys: list[str]


@dataclass(frozen=True)
class Attention:
    """The maps of every attention of a network, in the order of its blocks.

    notes: sentences for people, such as that a text was cut to the context.
    """

    maps: list[AttentionMap]
    notes: list[str] = field(default_factory=list)


def attention_of(run: LoadedRun, text: str) -> Attention:
    """Return what every attention of a run looks at in a text, of which it reads as much as it can.

    A translator writes its own translation meanwhile. Raises UserError for a text that cannot be read, and for a
    network without attention.
    """
    if not has_attention(run.network):
        raise UserError(f"{run.folder.path} has no attention: its network is without; name another run")
    if not text.strip():
        raise UserError("the text is empty; write one")
    return get(KINDS[run.kind].exploration).attention(run, text)


def has_attention(network: nn.Module) -> bool:
    """Whether any part of a network is an attention."""
    return any(isinstance(module, MultiHeadAttention) for module in network.modules())


def collect(
    network: nn.Module,
    inputs: tuple[Tensor | None, ...],
    sources: list[str],
    targets: list[str],
    written: Sequence[str] = (),
) -> list[AttentionMap]:
    """Run a network on one text, (1, length) ids each side, and keep what its attentions looked at.

    sources, targets: the tokens that are read; written: what cross-attention writes at each target.
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
