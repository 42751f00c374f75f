"""Multi-head attention: one module for self-attention, causal attention and cross-attention."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pkgutil import resolve_name
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks import masks
from firstlight.networks.cache import LayerCache
from firstlight.networks.config import TransformerConfig
from firstlight.networks.layers import dropout
from firstlight.networks.positions import RelativePositions, RotaryPositions
from firstlight.networks.variants import Positions

Watch = Callable[[str, Tensor], Tensor]  # receives a step's name and value, and returns what is used in its place


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017, "Attention is all you need").

    Each head computes softmax(Q Kᵀ / √head_dim) V. The outputs of the heads are concatenated and projected to `dim`.

    Notation of the shapes in the comments:
        - b: texts of the batch
        - q, k: queries, keys (of self-attention: the tokens)
        - d: `dim`
        - h: heads, `num_heads`
        - g: heads of the keys and values, `num_key_value_heads`; h unless they are grouped
        - e: size of one head, `head_dim`

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
        output_dropout: probability of dropout on the output in training.

    Attributes:
        watch: a function that receives the steps of each call and returns what is used in their place, or None. The
            steps are hook_q, (b, q, h, e), hook_k and hook_v, (b, k, g, e), before they are rotated; hook_attn_scores
            and hook_pattern, (b, h, q, k); and hook_z, (b, q, h, e). The output is then computed from them; it differs
            from the output of the fused function only in rounding. See `hooks` and `attention_weights`.

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
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        self.group = num_heads // self.num_key_value_heads  # the number of heads that share one key and value
        self.scale = 1 / math.sqrt(head_dim) if scale_scores else 1.0
        if base_head_dim is not None:
            self.scale *= math.sqrt(base_head_dim / head_dim)
        self.dropout, self.output_dropout = dropout, output_dropout
        self.head_dim, inner_dim = head_dim, num_heads * head_dim
        self.shared_dim = shared_dim = self.num_key_value_heads * head_dim
        self.query = nn.Linear(dim, inner_dim, bias=bias)
        self.key = nn.Linear(dim, shared_dim, bias=bias)
        self.value = nn.Linear(dim, shared_dim, bias=bias)
        self.output = nn.Linear(inner_dim, dim, bias=output_bias) if output_projection else nn.Identity()
        self.rotary, self.relative = rotary, relative
        self.watch: Watch | None = None

    def forward(
        self,
        hidden: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Attend from every position of `hidden` to `memory`, or to `hidden` itself if `memory` is None.

        If the mask allows a query no key, the concatenated heads of this query are zero.

        Args:
            hidden: (batch, queries, dim) float.
            memory: (batch, keys, dim) float; None: self-attention.
            mask: bool, broadcastable to (batch, heads, queries, keys), True where a query may attend to a key.
            is_causal: whether a query may attend only to itself and earlier positions; not together with `mask`.
            cache: keys and values of earlier tokens, to which those of `hidden` are appended. Those of `memory` are
                computed only at the first call.

        Returns:
            (batch, queries, dim) float.
        """
        assert mask is None or not is_causal, "is_causal replaces a mask"
        query, key, value = self.project(hidden, memory, cache)
        heads = self.attend(query, key, value, mask, is_causal=is_causal)  # (b, h, q, e)
        output = self.output(heads.transpose(1, 2).flatten(2))  # (b, q, d)
        return dropout(output, self.output_dropout) if self.training else output

    def project(
        self, hidden: Tensor, memory: Tensor | None = None, cache: LayerCache | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries of `hidden`, (b, h, q, e), and the keys and values, (b, g, k, e) each.

        The keys and values are those of all tokens, cached or in `hidden`, or those of `memory`.
        """
        own = cache if memory is None else None  # the cache of self-attention
        if own is not None and self.watch is None:  # one product and one rotation: half of the time for one token
            joined = F.linear(hidden, *own.joined((self.query, self.key, self.value)))  # (b, q, (h + g + g)·e)
            turned = joined[..., : -self.shared_dim]  # queries and keys
            turned.copy_(self.rotate(turned, own.length))
            heads = self.split_heads(joined)  # (b, h + g + g, q, e)
            return heads[:, : self.num_heads], *own.append(heads[:, self.num_heads :])
        start = 0 if own is None else own.length
        query = self.split_heads(self.rotate(self._seen("hook_q", self.query(hidden)), start))
        if cache is not None and cache.memory is not None:
            return query, *cache.memory
        read = hidden if memory is None else memory
        key = self.split_heads(self.rotate(self._seen("hook_k", self.key(read)), start))
        value = self.split_heads(self._seen("hook_v", self.value(read)))
        if own is not None:
            return query, *own.append(torch.cat((key, value), dim=1))
        if cache is not None:
            cache.memory = key, value
        return query, key, value

    def _seen(self, step: str, projected: Tensor) -> Tensor:
        """Return queries, keys or values, (b, q, heads·e), or what `watch` returns for them."""
        if self.watch is None:
            return projected
        return self.watch(step, projected.unflatten(-1, (-1, self.head_dim))).flatten(-2)

    def rotate(self, projected: Tensor, start: int = 0) -> Tensor:
        """Return queries or keys, (b, q, heads·e), rotated by the positions start, start + 1, …."""
        return projected if self.rotary is None else self.rotary(projected, start)

    def split_heads(self, projected: Tensor) -> Tensor:
        """Return vectors of shape (b, q, heads·e) as (b, heads, q, e)."""
        return projected.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, is_causal: bool = False
    ) -> Tensor:
        """Return the weighted sums of the values, (b, h, q, e). The shapes are those of `project` and `forward`."""
        bias = self.bias(query, key)
        if is_causal and (bias is not None or self.watch is not None):  # both require the mask itself
            queries, keys = (torch.arange(each.shape[2], device=each.device) for each in (query, key))
            mask, is_causal = masks.causal(queries, keys), False  # (1, 1, q, k)
        if self.watch is None:
            added = mask if bias is None else masks.added_to(bias, mask)
            dropout, is_grouped = self.dropout if self.training else 0.0, self.group > 1
            return F.scaled_dot_product_attention(
                query, key, value, added, dropout, is_causal, scale=self.scale, enable_gqa=is_grouped
            )
        key, value = (each.repeat_interleave(self.group, dim=1) for each in (key, value))  # (b, h, k, e)
        scores = query @ key.transpose(-2, -1) * self.scale  # (b, h, q, k)
        scores = masks.added_to(scores if bias is None else scores + bias, mask)
        weights = self.watch("hook_pattern", masks.masked_softmax(self.watch("hook_attn_scores", scores), mask))
        heads = F.dropout(weights, self.dropout, self.training) @ value
        return self.watch("hook_z", heads.transpose(1, 2)).transpose(1, 2)

    def bias(self, query: Tensor, key: Tensor) -> Tensor | None:
        """Return what is added to the scaled scores, broadcastable to (b, h, q, k), or None. A subclass may change it.

        query: (b, h, q, e); key: (b, g, k, e). The last query is at the position of the last key.
        """
        if self.relative is None:
            return None
        num_keys = key.shape[2]
        return self.relative(query, num_keys, start=num_keys - query.shape[2]) * self.scale


def build_attention(config: TransformerConfig, *, cross: bool = False) -> MultiHeadAttention:
    """Return the attention module that the config describes. Cross-attention has no positions and is never the user's.

    Raises ValueError if the user's class does not accept its arguments.
    """
    rotary, relative = None, None
    num_heads, head_dim = config.num_heads, config.resolved_head_dim
    num_key_value_heads = config.resolved_num_key_value_heads
    if config.positions is Positions.rotary and not cross:
        heads = num_heads + num_key_value_heads  # with a cache, queries and keys are rotated together
        rotary = RotaryPositions(config.context_length, heads, head_dim, config.position_scale, config.rotary_base)
    if config.positions is Positions.relative and not cross:
        relative = RelativePositions(config.context_length, head_dim, config.resolved_base_head_dim**-0.5)
    own = None if cross else config.own_attention
    build: Any = MultiHeadAttention if own is None else resolve_name(own)
    options = {} if own is None else {name: value for name, value in config.attention.items() if name != "_target_"}
    try:
        return build(
            config.dim,
            num_heads,
            head_dim,
            num_key_value_heads=num_key_value_heads,
            bias=config.attention_bias,
            output_projection=config.output_projection,
            output_bias=config.output_bias,
            rotary=rotary,
            relative=relative,
            scale_scores=config.scale_scores,
            base_head_dim=config.resolved_base_head_dim,
            dropout=config.attention_dropout,
            output_dropout=config.dropout if config.attention_output_dropout else 0.0,
            **options,
        )
    except TypeError as error:
        raise ValueError(f"model.attention: {error}; pass the arguments of {build.__name__}") from error


@contextmanager
def attention_weights(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of every `MultiHeadAttention` that runs inside a `with` block.

    The outputs inside the block are computed from these weights. They differ from the usual ones only in rounding.

    Args:
        network: a network with `MultiHeadAttention` modules, or one such module, whose name is "".

    Yields:
        A dict from the name of each module to its weights at its last call, (batch, heads, queries, keys) float. Each
        row sums to 1, or to 0 if the mask allows no key. The weights have no dropout. With a cache, the queries are
        the new tokens and the keys all tokens.

    Example:
        >>> import torch
        >>> from firstlight.networks import Classifier, ClassifierConfig, attention_weights
        >>> network = Classifier(ClassifierConfig(), vocab_size=100, num_outputs=5).eval()
        >>> with attention_weights(network) as weights:
        ...     logits = network(torch.tensor([[4, 7, 9]]))
        >>> {name: each.shape for name, each in weights.items()}
        {'blocks.0.self_attention': torch.Size([1, 4, 3, 3])}
    """
    weights: dict[str, Tensor] = {}

    def keep(name: str, step: str, value: Tensor) -> Tensor:
        if step == "hook_pattern":
            weights[name] = value.detach()
        return value

    with ExitStack() as opened:
        for name, module in network.named_modules():
            if isinstance(module, MultiHeadAttention):
                opened.enter_context(watching(module, partial(keep, name)))
        yield weights


@contextmanager
def watching(module: Any, watch: Watch) -> Iterator[None]:
    """Set `watch` of an attention or a block inside a `with` block. It runs after that of an outer `with` block."""
    outer: Watch | None = module.watch
    module.watch = watch if outer is None else lambda step, value: watch(step, outer(step, value))
    try:
        yield
    finally:
        module.watch = outer
