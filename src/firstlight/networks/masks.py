"""Attention masks. No other module makes or applies masks.

A mask is boolean, broadcastable to (batch, heads, queries, keys), and True where a query may attend to a key. `&`
joins two masks.
"""

import math

import torch
from torch import Tensor


def real(token_ids: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Return the padding mask, or one that is True everywhere if it is None. Both are (batch, length)."""
    return torch.ones_like(token_ids, dtype=torch.bool) if padding_mask is None else padding_mask


def padding(padding_mask: Tensor) -> Tensor:
    """Return the mask that allows only real tokens: (batch, keys) -> (batch, 1, 1, keys)."""
    return padding_mask[:, None, None, :]


def causal(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """Return the mask that allows a query to attend to the keys at its own and at earlier absolute positions.

    query_positions: (queries,) int; key_positions: (keys,) int. Returns (1, 1, queries, keys).
    """
    return (key_positions[None, :] <= query_positions[:, None])[None, None]


def added_to(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the scores with -inf where the mask is False, in the form that `scaled_dot_product_attention` adds.

    scores: (batch, heads, queries, keys) float; mask: broadcastable to the same shape, or None.
    """
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the softmax over the allowed entries of the last axis. A row without allowed entries is all zeros."""
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min  # with -inf, the gradient of an empty row would be NaN
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)
