"""A transformer block: attention and feed-forward layers, each with a norm, dropout and a residual connection."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.choices import member
from firstlight.networks.attention import MultiHeadAttention, build_attention
from firstlight.networks.cache import LayerCache, MemoryCache, RecentCache
from firstlight.networks.config import Activation, FeedForwardKind, Norm, TransformerConfig
from firstlight.networks.convolution import CausalConvolution
from firstlight.networks.norms import build_norm, normalise

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.relu: F.relu,
    Activation.gelu: F.gelu,
    Activation.gelu_tanh: partial(F.gelu, approximate="tanh"),
    Activation.silu: F.silu,
    Activation.tanh: F.tanh,
    Activation.relu_squared: lambda hidden: F.relu(hidden).square(),
    Activation.sigmoid: F.sigmoid,
    Activation.linear: lambda hidden: hidden,
}


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, applied to each position separately (Vaswani et al. 2017).

    Args:
        dim: size of the input and output vectors.
        hidden_dim: size of the hidden layer.
        activation: "relu", "gelu", "gelu_tanh", "silu", "tanh", "relu_squared", "sigmoid" or "linear". For SwiGLU, use
            `GatedFeedForward`.

    Shape:
        - input and output: (batch, length, dim)

    Raises:
        ValueError: if the activation is unknown, or is "swiglu".

    Example:
        >>> import torch
        >>> from firstlight.networks import FeedForward
        >>> FeedForward(dim=32, hidden_dim=128, activation="relu")(torch.randn(2, 5, 32)).shape
        torch.Size([2, 5, 32])
    """

    def __init__(self, dim: int, hidden_dim: int, activation: Activation | str) -> None:
        super().__init__()
        activation = member(Activation, activation, "activation")
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"activation={activation.value} has a gate, which FeedForward does not have; use GatedFeedForward"
            )
        self.activation = ACTIVATIONS[activation]
        self.expand = nn.Linear(dim, hidden_dim)
        self.contract = nn.Linear(hidden_dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (batch, length, dim)."""
        return self.contract(self.activation(self.expand(hidden)))


class GatedFeedForward(nn.Module):
    """SwiGLU: a feed-forward layer in which one linear layer gates another (Shazeer 2020). It has no biases.

    Args:
        dim: size of the input and output vectors.
        hidden_dim: size of the hidden layer. Three matrices of 8/3 · dim have as many weights as two of 4 · dim.

    Shape:
        - input and output: (batch, length, dim)

    Example:
        >>> import torch
        >>> from firstlight.networks import GatedFeedForward
        >>> GatedFeedForward(dim=32, hidden_dim=85)(torch.randn(2, 5, 32)).shape
        torch.Size([2, 5, 32])
    """

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim, bias=False)
        self.expand = nn.Linear(dim, hidden_dim, bias=False)
        self.contract = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (batch, length, dim)."""
        return self.contract(F.silu(self.gate(hidden)) * self.expand(hidden))


class LinearFeedForward(nn.Module):
    """One linear layer and an activation (post 4)."""

    def __init__(self, dim: int, activation: Activation) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.linear = nn.Linear(dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (batch, length, dim)."""
        return self.activation(self.linear(hidden))


class Sublayer(nn.Module):
    """A transformation with dropout on its output, and optionally a residual connection and a norm."""

    def __init__(self, transformation: nn.Module, config: TransformerConfig, *, convolution: int | None = None) -> None:
        """Wrap a transformation. convolution: width of a causal convolution before the transformation; None: none."""
        super().__init__()
        self.transformation = transformation
        has_dropout = config.attention_output_dropout or not isinstance(transformation, MultiHeadAttention)
        self.dropout = nn.Dropout(config.dropout) if has_dropout else nn.Identity()
        self.residual = config.residual
        self.norm_before = build_norm(config) if config.norm is Norm.pre else nn.Identity()
        self.norm_after = build_norm(config) if config.norm is Norm.post else nn.Identity()
        self.convolution = None if convolution is None else CausalConvolution(config.dim, convolution)

    @property
    def last_layer(self) -> nn.Linear | None:
        """The linear layer whose output is added to `hidden`; None for attention without an output projection."""
        match self.transformation:
            case MultiHeadAttention(output=nn.Linear() as layer):
                return layer
            case FeedForward(contract=layer) | GatedFeedForward(contract=layer) | LinearFeedForward(linear=layer):
                return layer
        return None

    def forward(
        self,
        hidden: Tensor,
        recent: RecentCache | None = None,
        *,
        padding_mask: Tensor | None = None,
        **arguments: Any,
    ) -> Tensor:
        """Return the sublayer's output for `hidden`. Both have the shape (batch, length, dim).

        recent: the convolution's inputs for the tokens before `hidden`, if these were read already; padding_mask:
        (batch, length) bool, for norms over the words; arguments: passed to the transformation.
        """
        normalised = normalise(self.norm_before, hidden, padding_mask)
        if self.convolution is not None:
            normalised = self.convolution(normalised, recent)
        change = self.dropout(self.transformation(normalised, **arguments))
        return normalise(self.norm_after, hidden + change if self.residual else change, padding_mask)


class Block(nn.Module):
    """A transformer block: self-attention, optional cross-attention, and a feed-forward layer.

    Each of these layers has dropout, a residual connection and a norm, according to the config.

    Args:
        config: options of the network.
        cross_attention: whether the block also attends to a memory, as in a decoder that translates.
        convolution: width of a causal convolution before self-attention and before the feed-forward layer; None: no
            convolution.

    Shape:
        - hidden: (batch, length, dim)
        - memory: (batch, keys, dim)
        - output: (batch, length, dim)

    Example:
        >>> import torch
        >>> from firstlight.networks import Block, TransformerConfig, num_parameters
        >>> block = Block(TransformerConfig(dim=32, num_heads=4))
        >>> num_parameters(block)
        12608
        >>> block(torch.randn(2, 5, 32), is_causal=True).shape
        torch.Size([2, 5, 32])
    """

    def __init__(
        self, config: TransformerConfig, *, cross_attention: bool = False, convolution: int | None = None
    ) -> None:
        super().__init__()
        self.self_attention = Sublayer(build_attention(config), config, convolution=convolution)
        self.cross_attention = Sublayer(build_attention(config, cross=True), config) if cross_attention else None
        feed_forward = build_feed_forward(config)
        self.feed_forward = (
            nn.Identity() if feed_forward is None else Sublayer(feed_forward, config, convolution=convolution)
        )
        if config.zero_init:
            for sublayer in self.children():
                if isinstance(sublayer, Sublayer) and sublayer.last_layer is not None:
                    _start_from_nothing(sublayer.last_layer)

    def forward(
        self,
        hidden: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        padding_mask: Tensor | None = None,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        memory_cache: MemoryCache | None = None,
    ) -> Tensor:
        """Return the output of the block.

        Args:
            hidden: (batch, length, dim) float.
            mask: mask of self-attention: bool, broadcastable to (batch, heads, length, length), True where a query may
                attend to a key.
            is_causal: whether self-attention is causal; not together with `mask`.
            padding_mask: (batch, length) bool, True where a token is real, for norms over the words.
            cache: keys and values of the tokens before `hidden`.
            memory: (batch, keys, dim) float, the vectors that cross-attention attends to.
            memory_mask: mask of cross-attention, broadcastable to (batch, heads, length, keys).
            memory_cache: keys and values of `memory`.

        Returns:
            (batch, length, dim) float.
        """
        recents = (None, None) if cache is None else (cache.before_attention, cache.before_feed_forward)
        hidden = self.self_attention(
            hidden, recents[0], padding_mask=padding_mask, mask=mask, is_causal=is_causal, cache=cache
        )
        if self.cross_attention is not None:
            hidden = self.cross_attention(hidden, memory=memory, mask=memory_mask, cache=memory_cache)
        if not isinstance(self.feed_forward, Sublayer):
            return hidden
        return self.feed_forward(hidden, recents[1], padding_mask=padding_mask)


def _start_from_nothing(layer: nn.Module) -> None:
    """Set the last layer of a residual path to zero, so that the path adds nothing at first."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)


def build_feed_forward(config: TransformerConfig) -> FeedForward | GatedFeedForward | LinearFeedForward | None:
    """Return the feed-forward layer that the config names, or None."""
    match config.feed_forward, config.activation:
        case FeedForwardKind.none, _:
            return None
        case FeedForwardKind.linear, activation:
            return LinearFeedForward(config.dim, activation)
        case _, Activation.swiglu:
            return GatedFeedForward(config.dim, config.resolved_feed_forward_dim)
        case _, activation:
            return FeedForward(config.dim, config.resolved_feed_forward_dim, activation)
