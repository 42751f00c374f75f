"""Multi-head attention: one module for self-attention, causal attention and cross-attention."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks import masks
from firstlight.networks.cache import LayerCache, MemoryCache
from firstlight.networks.config import Positions, TransformerConfig
from firstlight.networks.positions import RelativePositions, RotaryPositions


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, "Attention is all you need").

    Each head computes softmax(Q Kᵀ / √head_dim) V. The outputs of the heads are concatenated and projected to `dim`.

    Args:
        dim: size of the input and output vectors.
        num_heads: number of heads.
        head_dim: size of the queries, keys and values of one head; num_heads · head_dim may differ from `dim`.
        bias: whether the projections to queries, keys and values have a bias.
        output_projection: whether the concatenated heads are projected; False requires num_heads · head_dim = dim.
        output_bias: whether the output projection has a bias.
        rotary: rotary positions, applied to queries and keys.
        relative: relative positions, added to the scores.
        scale_scores: whether the scores are divided by √head_dim.

    Shape:
        - hidden: (batch, queries, dim)
        - memory: (batch, keys, dim)
        - output: (batch, queries, dim)

    Example:
        >>> import torch
        >>> from firstlight.networks import MultiHeadAttention
        >>> attention = MultiHeadAttention(dim=32, num_heads=4, head_dim=8)
        >>> sum(weight.numel() for weight in attention.parameters())
        4128
        >>> hidden, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
        >>> attention(hidden, is_causal=True).shape  # self-attention
        torch.Size([2, 5, 32])
        >>> attention(hidden, memory).shape  # cross-attention
        torch.Size([2, 5, 32])
    """

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
        relative: RelativePositions | None = None,
        scale_scores: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = 1 / math.sqrt(head_dim) if scale_scores else 1.0
        inner_dim = num_heads * head_dim
        self.query = nn.Linear(dim, inner_dim, bias=bias)
        self.key = nn.Linear(dim, inner_dim, bias=bias)
        self.value = nn.Linear(dim, inner_dim, bias=bias)
        self.output = nn.Linear(inner_dim, dim, bias=output_bias) if output_projection else nn.Identity()
        self.rotary, self.relative = rotary, relative

    def forward(
        self,
        hidden: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: LayerCache | MemoryCache | None = None,
    ) -> Tensor:
        """Attend from every position of `hidden` to `memory`, or to `hidden` itself if there is no memory.

        A query that may attend to no key gives zeros before the output projection.

        Args:
            hidden: (batch, queries, dim) float.
            memory: (batch, keys, dim) float; None: self-attention.
            mask: bool, broadcastable to (batch, heads, queries, keys), True where a query may attend to a key.
            is_causal: whether a query may attend only to itself and earlier positions; not together with `mask`.
            cache: keys and values of earlier tokens, to which those of `hidden` are appended; or the keys and values of
                `memory`, which are computed at the first call only.

        Returns:
            (batch, queries, dim) float.
        """
        assert mask is None or not is_causal, "is_causal is instead of a mask"
        query, key, value, bias = self._project(hidden, memory, cache)
        if bias is not None:  # scores to be added, where a boolean mask can only allow
            mask, is_causal = allowed(bias, mask, is_causal=is_causal), False
        attended = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=is_causal, scale=self.scale
        )  # (batch, heads, queries, head_dim)
        return self._join(attended)

    def forward_with_weights(
        self, hidden: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the output of `forward` and the attention weights, (batch, heads, queries, keys).

        Each row of the weights sums to 1, or to 0 where the mask allows no key. The arguments are those of `forward`.
        """
        query, key, value, bias = self._project(hidden, memory, None)
        if is_causal:
            mask = lower_triangle(query.shape[2], key.shape[2], query.device)
        scores = query @ key.transpose(-2, -1) * self.scale  # (batch, heads, queries, keys)
        weights = masked_softmax(scores if bias is None else scores + bias, mask)
        return self._join(weights @ value), weights

    def _project(
        self, hidden: Tensor, memory: Tensor | None, cache: LayerCache | MemoryCache | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return queries, keys and values, each (batch, heads, length, head_dim), and the scores' bias or None."""
        start = 0
        if isinstance(cache, LayerCache):
            start = cache.length
            query, key, value = self._read_on(hidden, cache)
        else:
            memory = hidden if memory is None else memory
            query = self._heads(self._placed(self.query(hidden)))
            if cache is None:
                key, value = self._keys_and_values(memory)
            else:
                key, value = cache.get(lambda: self._keys_and_values(memory))
        if self.relative is None:
            return query, key, value, None
        return query, key, value, self.relative(query, key.shape[2], start) * self.scale

    def _read_on(self, hidden: Tensor, cache: LayerCache) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries of new tokens and the keys and values of all: (batch, heads, length, head_dim) each."""
        projected = F.linear(hidden, *cache.joined((self.query, self.key, self.value)))
        parts = projected.unflatten(-1, (3, -1)).transpose(1, 2)  # (batch, 3, new, heads * head_dim)
        query, key = self._heads(self._placed(parts[:, :2], cache.length)).unbind(1)
        return query, *cache.append(key, self._heads(parts[:, 2]))

    def _keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self._heads(self._placed(self.key(memory))), self._heads(self.value(memory))

    def _placed(self, projected: Tensor, start: int = 0) -> Tensor:
        """Apply rotary positions, if there are any, to (…, length, heads * head_dim)."""
        return projected if self.rotary is None else self.rotary(projected, start)

    def _heads(self, projected: Tensor) -> Tensor:
        """(…, length, heads * head_dim) -> (…, heads, length, head_dim)."""
        return projected.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def _join(self, heads: Tensor) -> Tensor:
        """(batch, heads, queries, head_dim) -> (batch, queries, dim)."""
        return self.output(heads.transpose(1, 2).flatten(2))


def allowed(bias: Tensor, mask: Tensor | None, *, is_causal: bool) -> Tensor:
    """Return what is added to the scores: the bias, or -inf where the mask forbids. (batch, heads, queries, keys)."""
    if is_causal:
        mask = lower_triangle(bias.shape[-2], bias.shape[-1], bias.device)
    return bias if mask is None else bias.masked_fill(~mask, -math.inf)


def lower_triangle(num_queries: int, num_keys: int, device: torch.device) -> Tensor:
    """Return the mask that is_causal stands for: (1, 1, queries, keys)."""
    return masks.causal(torch.arange(num_queries, device=device), torch.arange(num_keys, device=device))


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the softmax over the last axis of what the mask allows; a row with nothing allowed is all zeros."""
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min  # not -inf, which would make the gradient of an empty row NaN on its way
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def build_attention(config: TransformerConfig, *, cross: bool = False) -> MultiHeadAttention:
    """Return the attention that the config describes; cross-attention has no positions."""
    rotary, relative = None, None
    if config.positions is Positions.rotary and not cross:
        rotary = RotaryPositions(
            config.context_length, config.num_heads, config.resolved_head_dim, config.position_scale
        )
    if config.positions is Positions.relative and not cross:
        relative = RelativePositions(config.context_length, config.resolved_head_dim)
    return MultiHeadAttention(
        config.dim,
        config.num_heads,
        config.resolved_head_dim,
        bias=config.attention_bias,
        output_projection=config.output_projection,
        output_bias=config.output_bias,
        rotary=rotary,
        relative=relative,
        scale_scores=config.scale_scores,
    )
