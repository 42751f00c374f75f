"""What a network is made of, as typed and checked dataclasses.

Imports no torch, so that a mistake is answered at once.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from firstlight.choices import accept_names


class Positions(Enum):
    """How a network knows the order of its tokens."""

    none = "none"
    learned = "learned"
    sinusoidal = "sinusoidal"
    rotary = "rotary"
    relative = "relative"


class Norm(Enum):
    """Where a sublayer normalises: after the residual sum (2017), before the transformation, or nowhere."""

    post = "post"
    pre = "pre"
    none = "none"


class NormKind(Enum):
    """LayerNorm (Ba 2016) or RMSNorm (Zhang & Sennrich 2019)."""

    layer = "layer"
    rms = "rms"


class FeedForwardKind(Enum):
    """Two linear layers with an activation between, one linear layer with an activation, or none at all."""

    mlp = "mlp"
    linear = "linear"
    none = "none"


class Activation(Enum):
    """The non-linearity of the feed-forward layer; swiglu is gated (Shazeer 2020) and has a third matrix."""

    relu = "relu"
    gelu = "gelu"
    silu = "silu"
    tanh = "tanh"
    swiglu = "swiglu"
    relu_squared = "relu_squared"


class Architecture(Enum):
    """What a classifier is made of: transformer blocks, the mean of its words' vectors, or one weight for each word."""

    transformer = "transformer"
    bag_of_words = "bag_of_words"
    logistic = "logistic"


class PoolingKind(Enum):
    """How a classifier makes one prediction of many tokens."""

    per_token = "per_token"
    flatten = "flatten"
    mean = "mean"
    first = "first"
    last = "last"
    max = "max"
    attention = "attention"


@dataclass
class TransformerConfig:
    """The stack of blocks that every network shares. The defaults are those of the 2017 paper and the posts."""

    dim: int = 32
    num_heads: int = 4
    num_layers: int = 1
    head_dim: int | None = None  # None: dim / num_heads
    context_length: int = 50
    dropout: float = 0.1

    scale_scores: bool = True  # attention divides its scores by √head_dim; post 3 does not
    positions: Positions = Positions.sinusoidal
    first_position: int = 0  # where the sinusoid starts to count; post 1 starts at 1
    position_scale: float = 1.0  # of sinusoidal and rotary: 0.5 where a context is stretched to twice its length
    causal: bool = False  # a token sees itself and what stands before it
    embedding_std: float = 1.0

    norm: Norm = Norm.post
    norm_kind: NormKind = NormKind.layer
    norm_affine: bool = True
    final_norm: bool = False
    residual: bool = True
    zero_init: bool = False  # each residual path starts from nothing: its last layer is all zeros

    attention_bias: bool = False  # of the query, key and value projections
    output_projection: bool = True
    output_bias: bool = True

    feed_forward: FeedForwardKind = FeedForwardKind.mlp
    feed_forward_dim: int | None = None  # None: 4 * dim, or 8/3 * dim of swiglu, which has a third matrix
    activation: Activation = Activation.relu

    _target_: str | None = None  # a class of the user's own in place of ours; see build_network in lit/networks.py
    options: dict[str, Any] = field(default_factory=dict)  # what that class alone reads

    def __post_init__(self) -> None:
        accept_names(self, "model.")
        for name in ("dim", "num_heads", "num_layers"):
            _check_at_least(f"model.{name}", getattr(self, name), 1)
        _check_at_least("context_length", self.context_length, 1)
        for name in ("head_dim", "feed_forward_dim"):
            if getattr(self, name) is not None:
                _check_at_least(f"model.{name}", getattr(self, name), 1)
        _check_at_least("model.first_position", self.first_position, 0)
        check_share("dropout", self.dropout)
        if not 0 < self.embedding_std < math.inf:
            raise ValueError(f"model.embedding_std={self.embedding_std} must be a finite number above 0")
        if not 0 < self.position_scale <= 1:
            raise ValueError(f"model.position_scale={self.position_scale} must be above 0 and at most 1")
        if self.position_scale < 1 and self.positions not in (Positions.sinusoidal, Positions.rotary):
            raise ValueError(
                f"model.position_scale={self.position_scale} scales sinusoidal and rotary positions, not "
                f"{self.positions.value}; set it to 1"
            )
        if self.zero_init and (not self.residual or not self.output_projection):
            raise ValueError("model.zero_init=true needs model.residual=true and model.output_projection=true")
        if self.zero_init and self.feed_forward is FeedForwardKind.linear:
            raise ValueError("model.zero_init=true would keep model.feed_forward=linear at zero for good; use mlp")
        if self.feed_forward is FeedForwardKind.linear and self.activation is Activation.swiglu:
            raise ValueError("model.feed_forward=linear has no gate for model.activation=swiglu; use silu")
        if self.head_dim is None and self.dim % self.num_heads:
            raise ValueError(
                f"model.dim={self.dim} is not divisible by model.num_heads={self.num_heads}; "
                f"set model.head_dim, or use {_nearest_divisors(self.dim, self.num_heads)} heads"
            )
        if self.positions is Positions.rotary and self.resolved_head_dim % 2:
            raise ValueError(
                f"model.positions=rotary rotates pairs, but the head width is {self.resolved_head_dim}; "
                f"set model.head_dim={self.resolved_head_dim + 1}, or other positions"
            )
        inner_dim = self.num_heads * self.resolved_head_dim
        if not self.output_projection and inner_dim != self.dim:
            raise ValueError(
                f"model.output_projection=false needs model.num_heads * model.head_dim = model.dim, not "
                f"{self.num_heads} * {self.resolved_head_dim} = {inner_dim} and {self.dim}"
            )

    @property
    def resolved_head_dim(self) -> int:
        """The width of one head."""
        return self.dim // self.num_heads if self.head_dim is None else self.head_dim

    @property
    def resolved_feed_forward_dim(self) -> int:
        """The width of the hidden layer of the feed-forward network."""
        if self.feed_forward_dim is not None:
            return self.feed_forward_dim
        return 8 * self.dim // 3 if self.activation is Activation.swiglu else 4 * self.dim


@dataclass
class ClassifierConfig(TransformerConfig):
    """An encoder with a pooled prediction on top."""

    architecture: Architecture = Architecture.transformer  # the others are baselines, to which little else matters
    pooling: PoolingKind = PoolingKind.per_token
    token_dropout: float = 0.0  # the share of tokens that become [UNK] in training
    convolution: int | None = None  # the width of a convolution over the embeddings, odd; None: there is none
    embedding_dim: int | None = None  # the words' vectors are this wide, then projected to dim; None: dim
    embedded_words: int | None = None  # only the first so many words have vectors of their own; None: all
    evidence: bool = False  # what words and pairs said in the training texts is counted, and added
    evidence_pairs: int = 50_000  # so many pairs of words, those of most texts
    evidence_shrinkage: float = 5.0  # what a mean of few texts is drawn to the middle by, in texts

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("model.token_dropout", self.token_dropout)
        self._check_words()
        if self.convolution is not None and (self.convolution < 1 or self.convolution % 2 == 0):
            raise ValueError(f"model.convolution={self.convolution} must be odd, such as 3: a word and its neighbours")
        if self.causal and self.convolution not in (None, 1):
            raise ValueError(
                f"model.convolution={self.convolution} shows a token the next one, which model.causal=true forbids; "
                "set model.convolution=null"
            )

    def _check_words(self) -> None:
        _check_at_least("model.evidence_pairs", self.evidence_pairs, 1)
        if not 0 < self.evidence_shrinkage < math.inf:
            raise ValueError(f"model.evidence_shrinkage={self.evidence_shrinkage} must be a finite number above 0")
        for name, minimum in (("embedding_dim", 1), ("embedded_words", 3)):
            value = getattr(self, name)
            if value is not None:
                _check_at_least(f"model.{name}", value, minimum)
                self._refuse_baseline(f"model.{name}={value}", f"model.{name}=null")
        if self.evidence:
            self._refuse_baseline("model.evidence=true", "model.evidence=false")

    def _refuse_baseline(self, setting: str, remedy: str) -> None:
        if self.architecture is not Architecture.transformer:
            raise ValueError(f"{setting} is not of model.architecture={self.architecture.value}; set {remedy}")


@dataclass
class GeneratorConfig(TransformerConfig):
    """A decoder that scores the next token at every position (post 2; GPT, 2018)."""

    causal: bool = True  # False: every token sees what it is to predict (post 2 tried it)
    tie_embeddings: bool = False  # the head reads with the matrix that the embedding writes with
    head_bias: bool = True
    num_loops: int = 1  # how often the blocks are run, one after the other, each time with the same weights
    causal_convolution: int | None = None  # tokens that one before each sublayer sees: itself and those before it

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.context_length < 2:
            raise ValueError(f"context_length={self.context_length} must be at least 2 for a generator")
        _check_at_least("model.num_loops", self.num_loops, 1)
        if self.causal_convolution is not None:
            _check_at_least("model.causal_convolution", self.causal_convolution, 2)


@dataclass
class EncoderDecoderConfig(TransformerConfig):
    """An encoder of one text and a decoder of another, which looks at it by cross-attention (2017; post 5)."""

    num_decoder_layers: int | None = None  # None: as many as the encoder's num_layers
    tie_embeddings: bool = False  # the head reads with the matrix that the target's embedding writes with
    share_embeddings: bool = False  # source and target have one embedding; needs one vocabulary for both
    head_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_decoder_layers is not None:
            _check_at_least("model.num_decoder_layers", self.num_decoder_layers, 1)
        if self.context_length < 2:
            raise ValueError(f"context_length={self.context_length} must be at least 2: a word and the end")
        if self.causal:
            raise ValueError("model.causal=true is not for translation: the encoder reads both ways, the decoder back")

    @property
    def resolved_num_decoder_layers(self) -> int:
        """The blocks of the decoder."""
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers


def _check_at_least(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise ValueError(f"{name}={value} must be at least {minimum}")


def check_share(name: str, value: float) -> None:
    """Raise ValueError unless 0 <= value < 1."""
    if not 0 <= value < 1:
        raise ValueError(f"{name}={value} must be at least 0 and below 1")


def _nearest_divisors(dim: int, num_heads: int) -> str:
    """The divisors of dim on either side of num_heads, in words: '2 or 5'."""
    below = max(heads for heads in range(1, num_heads) if dim % heads == 0)
    above = next((heads for heads in range(num_heads + 1, dim + 1) if dim % heads == 0), None)
    return f"{below} or {above}" if above else f"{below}"
