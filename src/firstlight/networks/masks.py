"""Attention masks, which are made here only.

A mask is boolean, broadcastable to (batch, heads, queries, keys), and True where a query may attend to a key.
"""

import torch
from torch import Tensor


def padding(padding_mask: Tensor) -> Tensor:
    """Return the mask that allows real tokens only: (batch, keys) -> (batch, 1, 1, keys)."""
    return padding_mask[:, None, None, :]


def causal(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """Return the mask that allows a query the keys at its own and at earlier absolute positions.

    query_positions: (queries,) int; key_positions: (keys,) int. Returns (1, 1, queries, keys).
    """
    return (key_positions[None, :] <= query_positions[:, None])[None, None]


def both(first: Tensor, second: Tensor) -> Tensor:
    """Return what both masks allow."""
    return torch.logical_and(first, second)
