"""Transformer blocks: attention and feed-forward layers with norms and residual connections.

`Block` has its norms before the layers, as in GPT-2, and `PostNormBlock` after the residual sums, as in the paper.
`GeneralBlock` has all options. `build_block` makes the one that the config describes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.choices import member
from firstlight.networks.attention import Watch, build_attention
from firstlight.networks.cache import LayerCache, RecentCache
from firstlight.networks.config import TransformerConfig
from firstlight.networks.layers import CausalConvolution, build_norm, dropout, normalize
from firstlight.networks.variants import Activation, FeedForwardKind, Norm, NormKind

Layer = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[Activation, Layer] = {
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
        dropout: probability of dropout on the output in training.

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

    def __init__(self, dim: int, hidden_dim: int, activation: Activation | str, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        activation = member(Activation, activation, "activation")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation.value} has a gate; use GatedFeedForward")
        self.activation = ACTIVATIONS[activation]
        self.expand = nn.Linear(dim, hidden_dim)
        self.contract = nn.Linear(hidden_dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (batch, length, dim)."""
        output = self.contract(self.activation(self.expand(hidden)))
        return dropout(output, self.dropout) if self.training else output


class GatedFeedForward(nn.Module):
    """SwiGLU: a feed-forward layer in which one linear layer gates another (Shazeer 2020). It has no biases.

    Args:
        dim: size of the input and output vectors.
        hidden_dim: size of the hidden layer. Three matrices of 8/3 · dim have as many weights as two of 4 · dim.
        dropout: probability of dropout on the output in training.

    Shape:
        - input and output: (batch, length, dim)

    Example:
        >>> import torch
        >>> from firstlight.networks import GatedFeedForward
        >>> GatedFeedForward(dim=32, hidden_dim=85)(torch.randn(2, 5, 32)).shape
        torch.Size([2, 5, 32])
    """

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.gate = nn.Linear(dim, hidden_dim, bias=False)
        self.expand = nn.Linear(dim, hidden_dim, bias=False)
        self.contract = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (batch, length, dim)."""
        output = self.contract(F.silu(self.gate(hidden)) * self.expand(hidden))
        return dropout(output, self.dropout) if self.training else output


class LinearFeedForward(nn.Module):
    """One linear layer and an activation (post 4, names)."""

    def __init__(self, dim: int, activation: Activation, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.activation = ACTIVATIONS[activation]
        self.linear = nn.Linear(dim, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (batch, length, dim)."""
        output = self.activation(self.linear(hidden))
        return dropout(output, self.dropout) if self.training else output


class HeadLayer(nn.Module):
    """The layer before the output layer of BERT: a linear layer, the activation function and a norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(config.dim, config.dim)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = build_norm(config)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (…, dim)."""
        return self.norm(self.activation(self.linear(hidden)))


def build_feed_forward(config: TransformerConfig) -> FeedForward | GatedFeedForward | LinearFeedForward | None:
    """Return the feed-forward layer that the config names, or None."""
    match config.feed_forward, config.activation:
        case FeedForwardKind.none, _:
            return None
        case FeedForwardKind.linear, activation:
            return LinearFeedForward(config.dim, activation, config.dropout)
        case _, Activation.swiglu:
            return GatedFeedForward(config.dim, config.resolved_feed_forward_dim, config.dropout)
        case _, activation:
            return FeedForward(config.dim, config.resolved_feed_forward_dim, activation, config.dropout)


class Block(nn.Module):
    """A transformer block with a norm before each layer (pre-norm, GPT-2).

    Its layers arrive built. `build_block` makes the block of a config, which may be one of the subclasses.

    Args:
        self_attention: the attention of the tokens to one another.
        self_attention_norm: the norm of its input; `nn.Identity()` for none.
        feed_forward: the feed-forward layer.
        feed_forward_norm: the norm of its input.
        cross_attention: the attention to a memory, as in a decoder that translates; None: the block has none.
        cross_attention_norm: the norm of its input.
        convolutions: causal convolutions of the inputs of self-attention and of the feed-forward layer, which only a
            `GeneralBlock` applies.

    Attributes:
        watch: a function that receives the name of a layer after the first and the vectors before it, (batch,
            length, dim), and returns what is used in their place, or None. See `hooks`.

    Shape:
        - hidden: (batch, length, dim)
        - memory: (batch, keys, dim)
        - output: (batch, length, dim)

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from firstlight.networks import Block, FeedForward, MultiHeadAttention, num_parameters
        >>> attention, feed_forward = MultiHeadAttention(32, 4, head_dim=8), FeedForward(32, 128, "relu")
        >>> block = Block(attention, nn.LayerNorm(32), feed_forward, nn.LayerNorm(32))
        >>> num_parameters(block)
        12608
        >>> block(torch.randn(2, 5, 32), is_causal=True).shape
        torch.Size([2, 5, 32])
    """

    def __init__(
        self,
        self_attention: nn.Module,
        self_attention_norm: nn.Module,
        feed_forward: nn.Module,
        feed_forward_norm: nn.Module,
        cross_attention: nn.Module | None = None,
        cross_attention_norm: nn.Module | None = None,
        convolutions: tuple[nn.Module | None, nn.Module | None] = (None, None),
    ) -> None:
        super().__init__()
        # optimizers number the parameters in this order
        self.self_attention, self.self_attention_norm = self_attention, self_attention_norm
        self.self_attention_convolution = convolutions[0]
        self.cross_attention: Any = cross_attention
        self.cross_attention_norm: Any = cross_attention_norm
        self.feed_forward, self.feed_forward_norm = feed_forward, feed_forward_norm
        self.feed_forward_convolution = convolutions[1]
        self.watch: Watch | None = None

    def forward(
        self,
        hidden: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the output of the block.

        Args:
            hidden: (batch, length, dim) float.
            mask: mask of self-attention: bool, broadcastable to (batch, heads, length, length), True where a query may
                attend to a key.
            is_causal: whether self-attention is causal; not together with `mask`.
            cache: keys and values of the tokens before `hidden`, and of `memory`.
            memory: (batch, keys, dim) float, the vectors that cross-attention attends to.
            memory_mask: mask of cross-attention, broadcastable to (batch, heads, length, keys).

        Returns:
            (batch, length, dim) float.
        """
        attention = partial(self.self_attention, mask=mask, is_causal=is_causal, cache=cache)
        hidden = self.add(hidden, attention, self.self_attention_norm)
        if self.cross_attention is not None:
            attention = partial(self.cross_attention, memory=memory, mask=memory_mask, cache=cache)
            hidden = self.add(self.before("cross_attention", hidden), attention, self.cross_attention_norm)
        return self.add(self.before("feed_forward", hidden), self.feed_forward, self.feed_forward_norm)

    def before(self, layer: str, hidden: Tensor) -> Tensor:
        """Return the vectors that a layer reads: `hidden`, or what `watch` returns for it."""
        return hidden if self.watch is None else self.watch(layer, hidden)

    def add(self, hidden: Tensor, layer: Layer, norm: Layer) -> Tensor:
        """Return the vectors plus the output of a layer. Both have the shape (batch, length, dim)."""
        return hidden + layer(norm(hidden))

    @property
    def last_layers(self) -> list[nn.Linear | None]:
        """The last linear layer of each layer, whose output is added to `hidden`. An attention may have none."""
        layers = (self.self_attention, self.cross_attention, self.feed_forward)
        found = [_last_part(layer) for layer in layers if layer is not None]
        return [part if isinstance(part, nn.Linear) else None for part in found]


class PostNormBlock(Block):
    """A transformer block with a norm after each residual sum (post-norm, Vaswani et al. 2017)."""

    def add(self, hidden: Tensor, layer: Layer, norm: Layer) -> Tensor:
        """Return the norm of the vectors plus the output of a layer. Both have the shape (batch, length, dim)."""
        return norm(hidden + layer(hidden))


class GeneralBlock(Block):
    """A transformer block with the options that only some posts and recipes have.

    It may lack the residual connections or the feed-forward layer, have causal convolutions of the inputs of its
    layers, and have norms over the words. The mask of self-attention must then be that of the padding.

    Args:
        layers: the arguments of a `Block`; feed_forward=None: the block has none.
        norm: the place of the norms.
        residual: whether the layers have residual connections.
    """

    def __init__(self, *layers: Any, norm: Norm, residual: bool) -> None:
        super().__init__(*layers)
        self.norm, self.residual = norm, residual

    def forward(
        self,
        hidden: Tensor,
        mask: Tensor | None = None,
        *,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        **options: Any,
    ) -> Tensor:
        """Return the output of the block. The arguments are those of `Block.forward`."""
        padding_mask = None if mask is None else mask[:, 0, 0]  # for norms over the words
        recents = (None, None) if cache is None else (cache.before_attention, cache.before_feed_forward)

        def apply(name: str, hidden: Tensor, recent: RecentCache | None = None, **options: Any) -> Tensor:
            """Return the vectors after a layer, with its norm, its convolution and its residual connection."""
            hidden = self.before(name, hidden)
            norm, convolution = getattr(self, f"{name}_norm"), getattr(self, f"{name}_convolution", None)
            change = normalize(norm, hidden, padding_mask) if self.norm is Norm.pre else hidden
            if convolution is not None:
                change = convolution(change, recent)
            change = getattr(self, name)(change, **options)
            hidden = hidden + change if self.residual else change
            return normalize(norm, hidden, padding_mask) if self.norm is Norm.post else hidden

        hidden = apply("self_attention", hidden, recents[0], mask=mask, cache=cache, **options)
        if self.cross_attention is not None:
            hidden = apply("cross_attention", hidden, memory=memory, mask=memory_mask, cache=cache)
        return hidden if self.feed_forward is None else apply("feed_forward", hidden, recents[1])


def build_block(config: TransformerConfig, *, cross_attention: bool = False, convolution: int | None = None) -> Block:
    """Return the block that the config describes.

    Args:
        config: options of the network.
        cross_attention: whether the block also attends to a memory, as in a decoder that translates.
        convolution: width of a causal convolution before self-attention and before the feed-forward layer; None: no
            convolution.

    Example:
        >>> from firstlight.networks import TransformerConfig, build_block
        >>> type(build_block(TransformerConfig(dim=32, num_heads=4, norm="pre"))).__name__
        'Block'
    """

    def norm() -> nn.Module:
        return nn.Identity() if config.norm is Norm.none else build_norm(config)

    def mixture() -> CausalConvolution | None:
        return None if convolution is None else CausalConvolution(config.dim, convolution)

    attention = build_attention(config)
    cross = (build_attention(config, cross=True), norm()) if cross_attention else (None, None)
    feed_forward = build_feed_forward(config)
    last = (None, None, None) if feed_forward is None else (feed_forward, norm(), mixture())
    layers = (attention, norm(), *last[:2], *cross, (mixture(), last[2]))
    is_plain = config.residual and convolution is None and feed_forward is not None
    if not is_plain or config.norm_kind is NormKind.over_words:
        block: Block = GeneralBlock(*layers, norm=config.norm, residual=config.residual)
    else:
        block = PostNormBlock(*layers) if config.norm is Norm.post else Block(*layers)
    for layer in filter(None, block.last_layers) if config.zero_init else ():
        for parameter in layer.parameters():  # so that each layer adds nothing at first
            nn.init.zeros_(parameter)
    return block


def _last_part(layer: Any) -> Any:
    """Return the part of an attention or a feed-forward layer that computes its output."""
    return next(getattr(layer, name) for name in ("output", "contract", "linear") if hasattr(layer, name))
