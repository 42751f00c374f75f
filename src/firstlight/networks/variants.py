"""The variants of the parts of a network, which options name. Imports no torch."""

from enum import Enum


class Positions(Enum):
    """Position encoding: how a network represents the order of its tokens. fraction is j/n_max of post 1 (reviews)."""

    none = "none"
    learned = "learned"
    sinusoidal = "sinusoidal"
    fraction = "fraction"
    rotary = "rotary"
    relative = "relative"


class Norm(Enum):
    """Place of the norm in a sublayer: after the residual sum (post), before the transformation (pre), or none."""

    post = "post"
    pre = "pre"
    none = "none"


class NormKind(Enum):
    """LayerNorm (Ba et al. 2016), RMSNorm (Zhang & Sennrich 2019), or a norm over the words (post 5, translation)."""

    layer = "layer"
    rms = "rms"
    over_words = "over_words"


class Initialization(Enum):
    """Initial weights of the linear layers: torch's, a normal distribution, or one that is scaled by the depth."""

    default = "default"
    normal = "normal"
    depth_scaled = "depth_scaled"


class Parametrization(Enum):
    """What changes with the width of a network: standard, or the maximal update parametrization (Yang et al. 2022)."""

    standard = "standard"
    mup = "mup"


class FeedForwardKind(Enum):
    """Kind of feed-forward layer: two linear layers with an activation between them, one linear layer, or none."""

    mlp = "mlp"
    linear = "linear"
    none = "none"


class Activation(Enum):
    """Activation function of the feed-forward layer. swiglu is gated and has a third matrix (Shazeer 2020)."""

    relu = "relu"
    gelu = "gelu"
    gelu_tanh = "gelu_tanh"
    silu = "silu"
    tanh = "tanh"
    swiglu = "swiglu"
    relu_squared = "relu_squared"
    sigmoid = "sigmoid"
    linear = "linear"


class PoolingKind(Enum):
    """Pooling: how a classifier reduces the vectors of all tokens to one prediction."""

    per_token = "per_token"
    flatten = "flatten"
    mean = "mean"
    first = "first"
    last = "last"
    max = "max"
    attention = "attention"
    bert = "bert"
