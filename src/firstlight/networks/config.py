"""The options of the networks, as typed dataclasses that check their values.

This module does not import torch, so that an error in the options is reported immediately.
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from firstlight.choices import accept_names, require
from firstlight.networks.variants import (
    Activation,
    FeedForwardKind,
    Initialization,
    Norm,
    NormKind,
    Parametrization,
    Positions,
)

WAVE_LENGTH_BASE = 10_000.0  # of the sinusoid (Vaswani et al. 2017), and of rotary positions (Su et al. 2021)
OPTIONAL_SIZES = ("head_dim", "num_key_value_heads", "feed_forward_dim", "base_dim", "base_head_dim")
LARGEST_STD = 0.5  # of linear layers with a normal distribution; with a larger one, a training hardly starts


@dataclass
class TransformerConfig:
    """Options of the transformer blocks, which all networks share. The defaults are those of Vaswani et al. (2017).

    A choice may be given by its name, such as `norm="pre"`. The last seven options, from `scale_scores` on, are for the
    networks of the posts.

    Args:
        dim: Size of the token vectors; it is the main measure of the network's size.
        num_heads: Number of attention heads; it must divide `dim` unless `head_dim` is given.
        num_layers: Number of transformer blocks.
        head_dim: Size of one attention head; None: dim / num_heads.
        num_key_value_heads: Number of heads of the keys and values, each of which several heads of queries share
            (grouped-query attention, Ainslie et al. 2023); it must divide `num_heads`; None: `num_heads`.
        context_length: Largest number of tokens of a text.
        dropout: Probability of dropout after the embedding and on the output of each sublayer, from 0 to below 1.
        attention_dropout: Probability of dropout on the attention weights, from 0 to below 1.
        scale_embeddings: Whether the embeddings are multiplied by √dim (Vaswani et al. 2017).
        embedding_norm: Whether a norm follows the sum of embeddings and positions (BERT, Devlin et al. 2018).
        positions: Encoding of the positions: "none", "learned", "sinusoidal" (Vaswani et al. 2017), "fraction" (the
            position divided by the context length, post 1, reviews), "rotary" (Su et al. 2021) or "relative" (Shaw et
            al. 2018).
        rotary_base: Base of the wave lengths of rotary positions, above 1; Llama 3 has 500,000.
        position_scale: Factor of sinusoidal and rotary positions, above 0 and at most 1; 0.5 fits texts twice as long
            as in training (Chen et al. 2023).
        causal: Whether a token attends only to itself and to earlier tokens.
        embedding_std: Standard deviation of the initial embeddings and of learned positions.
        initialization: Initial weights of the linear layers: "default" (torch's uniform distribution), "normal" (as the
            embeddings, and biases of 0; BERT) or "depth_scaled" (the same, with smaller last layers of the sublayers;
            GPT-2).
        parametrization: What changes with the width: "standard", or "mup" (maximal update parametrization, Yang et al.
            2022), with which the best learning rate at `base_dim` is also the best at other widths.
        base_dim: Width at which "mup" equals "standard", such as the width at which the learning rate was chosen;
            "mup" requires it, and "standard" ignores it.
        base_head_dim: Size of one head at `base_dim`; None: `head_dim`, and without that base_dim / num_heads.
        norm: Place of the norm: "post" (after the residual sum), "pre" (before the sublayer, more stable in deep
            networks) or "none".
        norm_kind: Type of the norm: "layer" (LayerNorm), "rms" (RMSNorm, Zhang & Sennrich 2019) or "over_words" (each
            coordinate over the words of a text, post 5, translation; a decoder keeps LayerNorm, since it cannot see
            later words).
        norm_eps: Number that the norms add to the variance; None: 1e-5, and for RMSNorm the precision of the numbers.
        final_norm: Whether a norm follows the last block; recommended with norm="pre".
        zero_init: Whether the last layer of each sublayer starts at zero, so that the sublayer adds nothing at first.
        attention_bias: Whether the projections to queries, keys and values have a bias.
        output_bias: Whether the projection of the concatenated heads has a bias.
        feed_forward_dim: Size of the hidden layer of "mlp"; None: 4 · dim, and 8/3 · dim for swiglu.
        activation: Activation function of the feed-forward layer: "relu", "gelu", "gelu_tanh" (the approximation of
            GPT-2), "silu", "tanh", "swiglu" (gated, Shazeer 2020), "relu_squared" (So et al. 2021), "sigmoid" or
            "linear" (none).
        scale_scores: Whether attention divides its scores by √head_dim; False only reproduces post 3 (film reviews).
        first_position: Number of the first sinusoidal or fractional position; post 1 (reviews) counts from 1.
        attention_output_dropout: Whether `dropout` also applies to the output of attention; False only reproduces
            post 5 (translation).
        norm_affine: Whether the norms have learned weights; False only reproduces post 3 (film reviews).
        residual: Whether sublayers have a residual connection; False only reproduces post 4 (names).
        output_projection: Whether attention projects the concatenated heads; False only reproduces post 4 (names).
        feed_forward: Feed-forward layer: "mlp" (two linear layers), "linear" (one, as in post 4, names) or "none".
        _target_: Your own network, such as my_package.MyNetwork, in place of the built-in one; null: the built-in
            network.
        options: Options that only your own network reads, such as +model.options.width=3.
        attention: Your own self-attention, such as model.attention._target_=my_package.MyAttention, and its arguments.

    Raises:
        ValueError: if a value is out of range or values contradict each other; the message names the key and the
            fix.

    Example:
        >>> from firstlight.networks import TransformerConfig
        >>> config = TransformerConfig(dim=64, num_heads=4, norm="pre", activation="gelu")
        >>> config.norm, config.resolved_head_dim, config.resolved_feed_forward_dim
        (<Norm.pre: 'pre'>, 16, 256)
        >>> TransformerConfig(dim=50, num_heads=4)
        Traceback (most recent call last):
        ValueError: model.dim=50 is not divisible by model.num_heads=4; set model.head_dim, or use 2 or 5 heads
    """

    reads_windows: ClassVar[bool] = False  # whether a batch has windows of one length, not texts of any length
    network_class: ClassVar[str]  # as `network`, unless it depends on the options

    dim: int = 32
    num_heads: int = 4
    num_layers: int = 1
    positions: Positions = Positions.sinusoidal
    norm: Norm = Norm.post
    activation: Activation = Activation.relu

    _: KW_ONLY  # `--help model` names the following options without their descriptions
    head_dim: int | None = None
    num_key_value_heads: int | None = None
    context_length: int = 50
    dropout: float = 0.1
    attention_dropout: float = 0.0

    scale_embeddings: bool = False
    embedding_norm: bool = False
    rotary_base: float = WAVE_LENGTH_BASE
    position_scale: float = 1.0
    causal: bool = False
    embedding_std: float = 1.0
    initialization: Initialization = Initialization.default
    parametrization: Parametrization = Parametrization.standard
    base_dim: int | None = None
    base_head_dim: int | None = None

    norm_kind: NormKind = NormKind.layer
    norm_eps: float | None = None
    final_norm: bool = False
    zero_init: bool = False

    attention_bias: bool = False
    output_bias: bool = True

    feed_forward_dim: int | None = None

    # Only the networks of the posts (conf/experiment/post, conf/ladder) change these options.
    scale_scores: bool = True
    first_position: int = 0
    attention_output_dropout: bool = True
    norm_affine: bool = True
    residual: bool = True
    output_projection: bool = True
    feed_forward: FeedForwardKind = FeedForwardKind.mlp

    _target_: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    attention: dict[str, Any] = field(default_factory=lambda: {"_target_": None})

    def __post_init__(self) -> None:
        accept_names(self, "model.")
        self._check_numbers()
        self._check_positions()
        self._check_layers()
        self._check_heads()
        self._check_parametrization()
        if not isinstance(self.attention, dict) or (self.own_attention is None and {*self.attention} - {"_target_"}):
            raise ValueError(f"model.attention={self.attention} requires a class; set model.attention._target_")

    def _check_numbers(self) -> None:
        for name in ("dim", "num_heads", "num_layers", *OPTIONAL_SIZES):
            if name not in OPTIONAL_SIZES or getattr(self, name) is not None:
                check_at_least(f"model.{name}", getattr(self, name), 1)
        check_at_least("context_length", self.context_length, 1)
        check_at_least("model.first_position", self.first_position, 0)
        check_share("dropout", self.dropout)
        check_share("model.attention_dropout", self.attention_dropout)
        std, eps, allowed = self.embedding_std, self.norm_eps, "must be a finite number above 0"
        require(std is not None and 0 < std < math.inf, f"model.embedding_std={std} {allowed}")
        require(eps is None or 0 < eps < math.inf, f"model.norm_eps={eps} {allowed}")

    def _check_positions(self) -> None:
        scale, base = f"model.position_scale={self.position_scale}", f"model.rotary_base={self.rotary_base}"
        is_rotary = self.positions is Positions.rotary
        can_scale = is_rotary or self.positions is Positions.sinusoidal or self.position_scale == 1
        has_base = is_rotary or self.rotary_base == WAVE_LENGTH_BASE
        require(0 < self.position_scale <= 1, f"{scale} must be above 0 and at most 1")
        require(can_scale, f"{scale} requires model.positions=sinusoidal or rotary; set it to 1")
        require(1 < self.rotary_base < math.inf, f"{base} must be a finite number above 1")
        require(has_base, f"{base} requires model.positions=rotary; set it to {WAVE_LENGTH_BASE:.0f}")

    def _check_layers(self) -> None:
        has_last_layers = self.residual and self.output_projection and self.feed_forward is not FeedForwardKind.linear
        if self.zero_init and (not has_last_layers or self.initialization is Initialization.depth_scaled):
            raise ValueError(
                "model.zero_init=true requires model.residual=true, model.output_projection=true, a model.feed_forward "
                "other than linear and a model.initialization other than depth_scaled; set model.zero_init=false"
            )
        if self.feed_forward is FeedForwardKind.linear and self.activation is Activation.swiglu:
            raise ValueError("model.feed_forward=linear has no gate for model.activation=swiglu; use silu")
        if self.initialization is not Initialization.default and self.embedding_std > LARGEST_STD:
            raise ValueError(f"model.embedding_std={self.embedding_std} is too large for linear layers; set it to 0.02")
        if self.norm_kind is NormKind.over_words and self.causal:
            raise ValueError("model.norm_kind=over_words requires model.causal=false; set model.norm_kind=layer")

    def _check_heads(self) -> None:
        if self.head_dim is None and self.dim % self.num_heads:
            problem = f"model.dim={self.dim} is not divisible by model.num_heads={self.num_heads}"
            heads = _nearest_divisors(self.dim, self.num_heads)
            raise ValueError(f"{problem}; set model.head_dim, or use {heads} heads")
        if self.num_heads % self.resolved_num_key_value_heads:
            heads = _nearest_divisors(self.num_heads, self.resolved_num_key_value_heads)
            raise ValueError(f"model.num_key_value_heads must divide model.num_heads={self.num_heads}; use {heads}")
        if self.positions is Positions.rotary and self.resolved_head_dim % 2:
            raise ValueError(f"model.positions=rotary requires an even model.head_dim, not {self.resolved_head_dim}")
        if not self.output_projection and self.num_heads * self.resolved_head_dim != self.dim:
            raise ValueError(f"model.output_projection=false requires model.num_heads * model.head_dim = {self.dim}")

    def _check_parametrization(self) -> None:
        if not self._is_mup:
            return
        if self.base_dim is None:
            raise ValueError("model.parametrization=mup requires model.base_dim, such as model.base_dim=32")
        if self._target_ is not None or not self.scale_scores:
            raise ValueError("model.parametrization=mup requires model.scale_scores=true and no model._target_")
        if self.base_head_dim is None and self.head_dim is None and self.base_dim % self.num_heads:
            problem = f"model.base_dim={self.base_dim} is not divisible by model.num_heads={self.num_heads}"
            raise ValueError(f"{problem}; set model.base_head_dim, the size of one head at this width")

    @property
    def own_attention(self) -> str | None:
        """The name of the user's class of self-attention, or None."""
        return self.attention.get("_target_")

    @property
    def resolved_head_dim(self) -> int:
        """The size of the queries, keys and values of one head."""
        return self.dim // self.num_heads if self.head_dim is None else self.head_dim

    @property
    def resolved_base_dim(self) -> int:
        """The width at which the network equals that of the standard parametrization."""
        return self.base_dim if self._is_mup and self.base_dim is not None else self.dim

    @property
    def resolved_base_head_dim(self) -> int:
        """The size of one head at `resolved_base_dim`."""
        if not self._is_mup or (self.base_head_dim is None and self.head_dim is not None):
            return self.resolved_head_dim
        return self.resolved_base_dim // self.num_heads if self.base_head_dim is None else self.base_head_dim

    @property
    def width_multiplier(self) -> float:
        """The width in units of the base width, from which the maximal update parametrization is computed."""
        return self.dim / self.resolved_base_dim

    @property
    def _is_mup(self) -> bool:
        return self.parametrization is Parametrization.mup

    @property
    def resolved_num_key_value_heads(self) -> int:
        """The number of heads of the keys and values."""
        return self.num_heads if self.num_key_value_heads is None else self.num_key_value_heads

    @property
    def network(self) -> str:
        """The class that these options describe, as `module:name`, because this module does not import torch."""
        return self.network_class

    def network_arguments(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the arguments of the class that follow its options.

        sizes: `vocab_size` and, where they apply, `num_outputs`, `source_vocab_size`, `unknown_id`, `num_features`.
        """
        return (sizes["vocab_size"],)

    def inputs(self, token_ids: Any, features: Any) -> tuple[Any, ...]:  # noqa: ARG002  (a classifier's)
        """Return the arguments of `forward` in a training step on one text. The step's cost is counted with them.

        token_ids: (1, length); features: the features of the tokens, (1, length, num_features), or None.
        """
        return (token_ids,)

    @property
    def resolved_feed_forward_dim(self) -> int:
        """The size of the hidden layer of the feed-forward network."""
        if self.feed_forward_dim is not None:
            return self.feed_forward_dim
        return 8 * self.dim // 3 if self.activation is Activation.swiglu else 4 * self.dim


def check_at_least(name: str, value: int | None, minimum: int) -> None:
    """Raise ValueError unless minimum <= value, an integer of 64 bits."""
    require(isinstance(value, int) and minimum <= value < 2**63, f"{name}={value} must be at least {minimum}")


def check_share(name: str, value: float) -> None:
    """Raise ValueError unless 0 <= value < 1."""
    require(0 <= value < 1, f"{name}={value} must be at least 0 and below 1")


def check_convolution(width: int | None) -> None:
    """Raise ValueError unless the width of a convolution is odd and positive, or None for no convolution."""
    if width is not None and (width < 1 or width % 2 == 0):
        raise ValueError(f"model.convolution={width} must be odd, such as 3 for a word and its two neighbors")


def _nearest_divisors(dim: int, num_heads: int) -> str:
    """Return the nearest divisors of dim below and above num_heads, as a text such as '2 or 5'."""
    below = max(heads for heads in range(1, num_heads) if dim % heads == 0)
    above = next((heads for heads in range(num_heads + 1, dim + 1) if dim % heads == 0), None)
    return f"{below} or {above}" if above else f"{below}"
