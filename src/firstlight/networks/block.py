"""A transformer block: attention and feed-forward, each a sublayer with its norm, dropout and residual path."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks.attention import build_attention
from firstlight.networks.cache import LayerCache, MemoryCache, RecentCache
from firstlight.networks.config import Activation, FeedForwardKind, Norm, NormKind, TransformerConfig
from firstlight.networks.convolution import CausalConvolution

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.relu: F.relu,
    Activation.gelu: F.gelu,
    Activation.silu: F.silu,
    Activation.tanh: F.tanh,
    Activation.relu_squared: lambda hidden: F.relu(hidden).square(),
}


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, applied to each position alone."""

    def __init__(self, dim: int, hidden_dim: int, activation: Activation) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.expand = nn.Linear(dim, hidden_dim)
        self.contract = nn.Linear(hidden_dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden: (batch, length, dim); returns the same shape."""
        return self.contract(self.activation(self.expand(hidden)))


class GatedFeedForward(nn.Module):
    """SwiGLU (Shazeer 2020): one linear layer gates the other. No biases, as in the paper."""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim, bias=False)
        self.expand = nn.Linear(dim, hidden_dim, bias=False)
        self.contract = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden: (batch, length, dim); returns the same shape."""
        return self.contract(F.silu(self.gate(hidden)) * self.expand(hidden))


class LinearFeedForward(nn.Module):
    """One linear layer and an activation (post 4)."""

    def __init__(self, dim: int, activation: Activation) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.linear = nn.Linear(dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden: (batch, length, dim); returns the same shape."""
        return self.activation(self.linear(hidden))


class Sublayer(nn.Module):
    """A transformation with dropout on its output, a residual path around it, and a norm before, after or nowhere."""

    def __init__(self, transformation: nn.Module, config: TransformerConfig, *, convolution: int | None = None) -> None:
        """convolution: the width of a causal one between the norm before and the transformation."""
        super().__init__()
        self.transformation = transformation
        self.dropout = nn.Dropout(config.dropout)
        self.residual = config.residual
        self.norm_before = build_norm(config) if config.norm is Norm.pre else nn.Identity()
        self.norm_after = build_norm(config) if config.norm is Norm.post else nn.Identity()
        self.convolution = None if convolution is None else CausalConvolution(config.dim, convolution)

    def forward(self, hidden: Tensor, recent: RecentCache | None = None, **arguments: Any) -> Tensor:
        """hidden: (batch, length, dim), and what the transformation takes besides; returns the same shape.

        recent: what the convolution has seen, where the tokens before hidden were read already.
        """
        normalised = self.norm_before(hidden)
        if self.convolution is not None:
            normalised = self.convolution(normalised, recent)
        change = self.dropout(self.transformation(normalised, **arguments))
        return self.norm_after(hidden + change if self.residual else change)


class Block(nn.Module):
    """Self-attention, in a decoder of two texts cross-attention, then feed-forward."""

    def __init__(
        self, config: TransformerConfig, *, cross_attention: bool = False, convolution: int | None = None
    ) -> None:
        """convolution: the width of a causal one before self-attention and before feed-forward, or None."""
        super().__init__()
        attentions = [build_attention(config)]
        self.self_attention = Sublayer(attentions[0], config, convolution=convolution)
        self.cross_attention = None
        if cross_attention:
            attentions.append(build_attention(config, cross=True))
            self.cross_attention = Sublayer(attentions[1], config)
        feed_forward = build_feed_forward(config)
        self.feed_forward = (
            nn.Identity() if feed_forward is None else Sublayer(feed_forward, config, convolution=convolution)
        )
        if config.zero_init:
            for attention in attentions:
                _start_from_nothing(attention.output)
            if isinstance(feed_forward, FeedForward | GatedFeedForward):
                _start_from_nothing(feed_forward.contract)

    def forward(
        self,
        hidden: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        memory_cache: MemoryCache | None = None,
    ) -> Tensor:
        """hidden: (batch, length, dim); mask, is_causal and cache as in attention.py, of hidden itself.

        memory: (batch, keys, dim), what the cross-attention looks at, with its own mask and cache. Returns the shape of
        hidden.
        """
        recents = (None, None) if cache is None else (cache.before_attention, cache.before_feed_forward)
        hidden = self.self_attention(hidden, recents[0], mask=mask, is_causal=is_causal, cache=cache)
        if self.cross_attention is not None:
            hidden = self.cross_attention(hidden, memory=memory, mask=memory_mask, cache=memory_cache)
        return self.feed_forward(hidden, recents[1]) if isinstance(self.feed_forward, Sublayer) else hidden


def _start_from_nothing(layer: nn.Module) -> None:
    """The path adds nothing to the residual at first, so that a deep network begins as a shallow one."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)


def build_norm(config: TransformerConfig) -> nn.Module:
    """The norm that the config names, over the last axis."""
    match config.norm_kind:
        case NormKind.layer:
            return nn.LayerNorm(config.dim, elementwise_affine=config.norm_affine)
        case NormKind.rms:
            return nn.RMSNorm(config.dim, elementwise_affine=config.norm_affine)


def build_feed_forward(config: TransformerConfig) -> FeedForward | GatedFeedForward | LinearFeedForward | None:
    """The feed-forward layer that the config names, or None."""
    match config.feed_forward, config.activation:
        case FeedForwardKind.none, _:
            return None
        case FeedForwardKind.linear, activation:
            return LinearFeedForward(config.dim, activation)
        case _, Activation.swiglu:
            return GatedFeedForward(config.dim, config.resolved_feed_forward_dim)
        case _, activation:
            return FeedForward(config.dim, config.resolved_feed_forward_dim, activation)
