"""The only place where masks are made.

A mask is boolean, broadcastable to (batch, heads, queries, keys), and True where a query may attend to a key.
"""

import torch
from torch import Tensor


def padding(padding_mask: Tensor) -> Tensor:
    """Every query may attend to the real tokens: (batch, keys) -> (batch, 1, 1, keys)."""
    return padding_mask[:, None, None, :]


def causal(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """A query may attend to itself and to what stands before it, by absolute position.

    query_positions: (queries,) int; key_positions: (keys,) int. Returns (1, 1, queries, keys).
    """
    return (key_positions[None, :] <= query_positions[:, None])[None, None]


def both(first: Tensor, second: Tensor) -> Tensor:
    """What both masks allow."""
    return torch.logical_and(first, second)
