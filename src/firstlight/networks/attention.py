"""The one attention: self-attention, masked attention and cross-attention are calls of the same module."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks.config import Positions, TransformerConfig
from firstlight.networks.positions import RotaryPositions


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention in several heads (2017): softmax(Q Kᵀ / √head_dim) V, concatenated, projected."""

    def __init__(
        self,
        dim: int,
        num_heads: int,
        head_dim: int,
        *,
        bias: bool = False,
        output_projection: bool = True,
        output_bias: bool = True,
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        inner_dim = num_heads * head_dim
        self.query = nn.Linear(dim, inner_dim, bias=bias)
        self.key = nn.Linear(dim, inner_dim, bias=bias)
        self.value = nn.Linear(dim, inner_dim, bias=bias)
        self.output = nn.Linear(inner_dim, dim, bias=output_bias) if output_projection else nn.Identity()
        self.rotary = rotary or nn.Identity()

    def forward(self, hidden: Tensor, memory: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Let every position of hidden look at memory, or at hidden itself where there is no memory.

        hidden: (batch, queries, dim); memory: (batch, keys, dim); mask: bool, broadcastable to
        (batch, heads, queries, keys), True = may attend. Returns (batch, queries, dim). A query that may attend to
        nothing gets zeros before the output projection.
        """
        query, key, value = self._project(hidden, memory)
        attended = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask
        )  # (batch, heads, queries, head_dim)
        return self._join(attended)

    def forward_with_weights(
        self, hidden: Tensor, memory: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The same output, and the weights it was made with: (batch, heads, queries, keys), rows summing to 1 or 0."""
        query, key, value = self._project(hidden, memory)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (batch, heads, queries, keys)
        weights = masked_softmax(scores, mask)
        return self._join(weights @ value), weights

    def _project(self, hidden: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (batch, heads, length, head_dim)."""
        memory = hidden if memory is None else memory
        query, key, value = (
            projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for projected in (self.query(hidden), self.key(memory), self.value(memory))
        )
        return self.rotary(query), self.rotary(key), value

    def _join(self, heads: Tensor) -> Tensor:
        """(batch, heads, queries, head_dim) -> (batch, queries, dim)."""
        return self.output(heads.transpose(1, 2).flatten(2))


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last axis of what the mask allows; a row with nothing allowed is all zeros, not NaN."""
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min  # not -inf, which would make the gradient of an empty row NaN on its way
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def build_attention(config: TransformerConfig) -> MultiHeadAttention:
    """The attention that the config describes."""
    rotary = None
    if config.positions is Positions.rotary:
        rotary = RotaryPositions(config.context_length, config.resolved_head_dim)
    return MultiHeadAttention(
        config.dim,
        config.num_heads,
        config.resolved_head_dim,
        bias=config.attention_bias,
        output_projection=config.output_projection,
        output_bias=config.output_bias,
        rotary=rotary,
    )
