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
        num_key_value_heads: number of heads of the keys and values, a divisor of `num_heads`. Consecutive heads of
            queries share one of them (grouped-query attention, Ainslie et al. 2023). None: `num_heads`.
        bias: whether the projections to queries, keys and values have a bias.
        output_projection: whether the concatenated heads are projected; False requires num_heads · head_dim = dim.
        output_bias: whether the output projection has a bias.
        rotary: rotary positions, applied to queries and keys.
        relative: relative positions, added to the scores.
        scale_scores: whether the scores are divided by √head_dim.
        base_head_dim: head_dim of the base network of µP (maximal update parametrization, Yang et al. 2022). The scores
            are divided by head_dim / √base_head_dim, which is √head_dim if both are equal. None: `head_dim`.
        dropout: probability of dropout on the attention weights in training.

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
        num_key_value_heads: int | None = None,
        bias: bool = False,
        output_projection: bool = True,
        output_bias: bool = True,
        rotary: RotaryPositions | None = None,
        relative: RelativePositions | None = None,
        scale_scores: bool = True,
        base_head_dim: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        self.group = num_heads // self.num_key_value_heads  # the number of heads that share one key and value
        self.scale = 1 / math.sqrt(head_dim) if scale_scores else 1.0
        if base_head_dim is not None:
            self.scale *= math.sqrt(base_head_dim / head_dim)
        self.dropout = dropout
        inner_dim, shared_dim = num_heads * head_dim, self.num_key_value_heads * head_dim
        self.query = nn.Linear(dim, inner_dim, bias=bias)
        self.key = nn.Linear(dim, shared_dim, bias=bias)
        self.value = nn.Linear(dim, shared_dim, bias=bias)
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
        """Attend from every position of `hidden` to `memory`, or to `hidden` itself if `memory` is None.

        If the mask allows a query no key, the concatenated heads of this query are zero.

        Args:
            hidden: (batch, queries, dim) float.
            memory: (batch, keys, dim) float; None: self-attention.
            mask: bool, broadcastable to (batch, heads, queries, keys), True where a query may attend to a key.
            is_causal: whether a query may attend only to itself and earlier positions; not together with `mask`.
            cache: a `LayerCache` of earlier tokens, to which the keys and values of `hidden` are appended; or a
                `MemoryCache` of `memory`, whose keys and values are computed only at the first call.

        Returns:
            (batch, queries, dim) float.
        """
        assert mask is None or not is_causal, "is_causal replaces a mask"
        if cache is None:
            query, key, value = self.project_qkv(hidden, hidden if memory is None else memory)
        else:
            query, key, value = self._project_cached(hidden, memory, cache)
        if self.relative is not None:  # the scores are added, so the boolean mask becomes -inf
            scores = self._relative_scores(query, key)  # (batch, heads, queries, keys)
            mask, is_causal = masks.added_to(scores, _explicit(mask, is_causal, query, key)), False
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
            scale=self.scale,
            enable_gqa=self.group > 1,
        )  # (batch, heads, queries, head_dim)
        return self.output(merge_heads(attended))  # (batch, queries, dim)

    def forward_with_weights(
        self, hidden: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the output of `forward` and the attention weights, (batch, heads, queries, keys).

        Each row of the weights sums to 1, or to 0 if the mask allows no key. The weights have no dropout. The arguments
        are those of `forward`.
        """
        query, *shared = self.project_qkv(hidden, hidden if memory is None else memory)
        key, value = (each.repeat_interleave(self.group, dim=1) for each in shared)  # (batch, heads, keys, head_dim)
        scores = query @ key.transpose(-2, -1) * self.scale  # (batch, heads, queries, keys)
        if self.relative is not None:
            scores = scores + self._relative_scores(query, key)
        weights = masks.masked_softmax(scores, _explicit(mask, is_causal, query, key))
        return self.output(merge_heads(weights @ value)), weights

    def project_qkv(self, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries of `hidden` and the keys and values of `memory`, each (batch, heads, length, head_dim).

        The keys and values have `num_key_value_heads` heads.
        """
        query = split_heads(self.apply_rotary(self.query(hidden)), self.num_heads)  # (batch, heads, queries, head_dim)
        return query, *self._project_memory(memory)

    def apply_rotary(self, projected: Tensor, start: int = 0) -> Tensor:
        """Return queries or keys, (…, length, heads * head_dim), rotated by the positions start, start + 1, …."""
        return projected if self.rotary is None else self.rotary(projected, start)

    def _project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        key = split_heads(self.apply_rotary(self.key(memory)), self.num_key_value_heads)
        value = split_heads(self.value(memory), self.num_key_value_heads)
        return key, value  # (batch, key and value heads, keys, head_dim) each

    def _project_cached(
        self, hidden: Tensor, memory: Tensor | None, cache: LayerCache | MemoryCache
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the result of `project_qkv`; the keys and values of earlier tokens or of the memory are cached."""
        if isinstance(cache, MemoryCache):
            query = split_heads(self.apply_rotary(self.query(hidden)), self.num_heads)
            return query, *cache.get(lambda: self._project_memory(hidden if memory is None else memory))
        projected = F.linear(hidden, *cache.joined((self.query, self.key, self.value)))
        parts = projected.unflatten(-1, (self.group + 2, -1)).transpose(1, 2)  # the last two are the keys and values
        placed = self.apply_rotary(parts[:, :-1], start=cache.length)  # (batch, group + 1, new, shared_dim)
        *queries, key = split_heads(placed, self.num_key_value_heads).unbind(1)  # (batch, key heads, new, head_dim)
        query = queries[0] if self.group == 1 else torch.cat(queries, dim=1)  # (batch, heads, new, head_dim)
        return query, *cache.append(key, split_heads(parts[:, -1], self.num_key_value_heads))

    def _relative_scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the scores that relative positions add. The last query has the position of the last key."""
        assert self.relative is not None
        num_keys = key.shape[2]
        return self.relative(query, num_keys, start=num_keys - query.shape[2]) * self.scale


def split_heads(projected: Tensor, num_heads: int) -> Tensor:
    """Return vectors of shape (…, length, heads * head_dim) as (…, heads, length, head_dim)."""
    return projected.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def merge_heads(heads: Tensor) -> Tensor:
    """Return vectors of shape (batch, heads, length, head_dim) as (batch, length, heads * head_dim)."""
    return heads.transpose(1, 2).flatten(2)


def _explicit(mask: Tensor | None, is_causal: bool, query: Tensor, key: Tensor) -> Tensor | None:
    """Return `mask`, or the lower triangle if `is_causal` is True."""
    if not is_causal:
        return mask
    queries, keys = (torch.arange(each.shape[2], device=each.device) for each in (query, key))
    return masks.causal(queries, keys)  # (1, 1, queries, keys)


def build_attention(config: TransformerConfig, *, cross: bool = False) -> MultiHeadAttention:
    """Return the attention module that the config describes. Cross-attention has no positions."""
    rotary, relative = None, None
    if config.positions is Positions.rotary and not cross:
        rotary = RotaryPositions(
            config.context_length,
            config.num_heads,
            config.resolved_head_dim,
            config.position_scale,
            config.rotary_base,
        )
    if config.positions is Positions.relative and not cross:
        relative = RelativePositions(
            config.context_length, config.resolved_head_dim, config.resolved_base_head_dim**-0.5
        )
    return MultiHeadAttention(
        config.dim,
        config.num_heads,
        config.resolved_head_dim,
        num_key_value_heads=config.resolved_num_key_value_heads,
        bias=config.attention_bias,
        output_projection=config.output_projection,
        output_bias=config.output_bias,
        rotary=rotary,
        relative=relative,
        scale_scores=config.scale_scores,
        base_head_dim=config.resolved_base_head_dim,
        dropout=config.attention_dropout,
    )
