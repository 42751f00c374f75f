"""Small layers: the embedding, dropout of elements and of tokens, norms and convolutions; and the size of a network."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks.cache import RecentCache
from firstlight.networks.config import TransformerConfig
from firstlight.networks.variants import NormKind

LAYER_NORM_EPS = 1e-5  # torch's


class ScaledEmbedding(nn.Embedding):
    """An embedding whose vectors are multiplied by a factor. An output layer with the same matrix has no factor.

    Vaswani et al. (2017) multiply by √dim. The vectors are then as large as the positions, although the initial weights
    are small enough for the output layer.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, scale: float) -> None:
        super().__init__(num_embeddings, embedding_dim)
        self.scale = scale

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return the vectors of the tokens, (…, embedding_dim). token_ids: (…) int."""
        return super().forward(token_ids) * self.scale


def dropout(hidden: Tensor, probability: float) -> Tensor:
    """Return `hidden` with elements set to 0 with the probability, and the others scaled up so that the mean stays.

    hidden: of any shape; probability: from 0 to below 1, on the CPU in steps of 1/65,536. On the CPU, 16 random bits
    decide on each element: torch's own dropout draws a number for each and takes three to five times as long there.
    """
    if probability == 0 or hidden.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(hidden, probability)
    words = torch.randint(-(2**63), 2**63 - 1, (hidden.numel() // 4 + 1,), dtype=torch.int64)
    bits = words.view(torch.int16)[: hidden.numel()].view(hidden.shape)  # from -32,768 to 32,767
    dropped = min(round(probability * 2**16), 2**16 - 1)
    return hidden * (bits >= dropped - 2**15).to(hidden.dtype).div_(1 - dropped / 2**16)


class Dropout(nn.Dropout):
    """torch's layer, with the faster `dropout` of this module."""

    def forward(self, hidden: Tensor) -> Tensor:
        """Return `hidden`, in training with dropout. hidden: of any shape; the output has the same shape."""
        return dropout(hidden, self.p) if self.training else hidden


class TokenDropout(nn.Module):
    """Dropout that replaces a share of the tokens by the unknown token in training.

    A prediction then does not depend on a single word.
    """

    def __init__(self, share: float, unknown_id: int) -> None:
        super().__init__()
        self.share, self.unknown_id = share, unknown_id

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return the token ids, some of them replaced. token_ids: int of any shape; the output has the same shape."""
        if not self.training or self.share == 0:
            return token_ids
        dropped = torch.rand(token_ids.shape, device=token_ids.device) < self.share
        return token_ids.masked_fill(dropped, self.unknown_id)


def build_embedding(config: TransformerConfig, vocab_size: int, embedding_dim: int | None = None) -> nn.Embedding:
    """Return the embedding that the config describes. embedding_dim: size of its vectors; None: `config.dim`."""
    size = config.dim if embedding_dim is None else embedding_dim
    if config.scale_embeddings:
        embedding: nn.Embedding = ScaledEmbedding(vocab_size, size, math.sqrt(config.resolved_base_dim))
    else:
        embedding = nn.Embedding(vocab_size, size)
    nn.init.normal_(embedding.weight, std=config.embedding_std)
    return embedding


class NormOverWords(nn.Module):
    """A norm of each coordinate over the words of a text, in place of the coordinates of a word (post 5, translation).

    Padding does not count. A later word changes all earlier ones, so the norm is for encoders only.
    """

    def __init__(self, dim: int, eps: float, *, elementwise_affine: bool) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim)) if elementwise_affine else None
        self.bias = nn.Parameter(torch.zeros(dim)) if elementwise_affine else None

    def forward(self, hidden: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return the normalized vectors. Both are (batch, length, dim).

        padding_mask: (batch, length) bool, True where a token is real; None: all tokens are real.
        """
        if padding_mask is None:
            padding_mask = hidden.new_ones(hidden.shape[:2], dtype=torch.bool)
        real = padding_mask[..., None]  # (batch, length, 1)
        count = real.sum(dim=1, keepdim=True).clamp(min=1)  # (batch, 1, 1)
        centered = hidden - (hidden * real).sum(dim=1, keepdim=True) / count
        variance = (centered.square() * real).sum(dim=1, keepdim=True) / count  # (batch, 1, dim)
        normalized = centered * torch.rsqrt(variance + self.eps)
        if self.weight is None or self.bias is None:
            return normalized
        return normalized * self.weight + self.bias


def build_norm(config: TransformerConfig) -> nn.Module:
    """Return the norm that the config names; `normalize` applies it."""
    eps = LAYER_NORM_EPS if config.norm_eps is None else config.norm_eps
    match config.norm_kind:
        case NormKind.layer:
            return nn.LayerNorm(config.dim, eps, elementwise_affine=config.norm_affine)
        case NormKind.rms:
            return nn.RMSNorm(config.dim, config.norm_eps, elementwise_affine=config.norm_affine)
        case NormKind.over_words:
            return NormOverWords(config.dim, eps, elementwise_affine=config.norm_affine)


def normalize(norm: nn.Module, hidden: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Return the vectors after a norm. Only a norm over the words reads the padding mask, (batch, length) or None."""
    return norm(hidden, padding_mask) if isinstance(norm, NormOverWords) else norm(hidden)


class ShortConvolution(nn.Module):
    """A convolution over each vector and its neighbors, with a ReLU, that is added to the vectors (Kim 2014).

    It gives the blocks word order at short range, such as a negation before a word.
    """

    def __init__(self, dim: int, width: int) -> None:
        """Make a convolution over vectors of size `dim`. width: number of tokens that it covers, an odd number."""
        super().__init__()
        self.mixture = nn.Conv1d(dim, dim, width, padding=width // 2)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """Return `hidden`, (batch, length, dim), plus its convolution. padding_mask: (batch, length); padding is 0."""
        real = (hidden * padding_mask[..., None]).transpose(1, 2)  # (batch, dim, length)
        return hidden + F.relu(self.mixture(real)).transpose(1, 2)


class CausalConvolution(nn.Module):
    """A depthwise causal convolution: weighted sums of each coordinate at a token and at those just before it.

    It gives attention access to the nearest tokens without a search. These are the Canon layers A and C of Allen-Zhu
    (2025), which follow the convolutions of Primer (So et al. 2021). The layer is the identity at first.
    """

    def __init__(self, dim: int, width: int) -> None:
        """Make a convolution over vectors of size `dim`. width: number of tokens in a sum, including the token."""
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, dim))  # the last row belongs to the token itself
        with torch.no_grad():
            self.weight[-1] = 1.0

    def forward(self, hidden: Tensor, recent: RecentCache | None = None) -> Tensor:
        """Return the sums for `hidden`. Both are (batch, length, dim). recent: earlier inputs, which are extended."""
        before, length = len(self.weight) - 1, hidden.shape[1]
        seen = F.pad(hidden, (0, 0, before, 0)) if recent is None else recent.extend(hidden, before)
        mixed = seen[:, :length] * self.weight[0]  # (batch, length, dim)
        for i in range(1, before + 1):
            mixed = torch.addcmul(mixed, seen[:, i : i + length], self.weight[i])
        return mixed


def num_parameters(network: nn.Module, *, trained_only: bool = False) -> int:
    """Return the number of parameters of a network.

    Args:
        network: any module.
        trained_only: whether to count only parameters that require a gradient.

    Example:
        >>> from torch import nn
        >>> from firstlight.networks import num_parameters
        >>> num_parameters(nn.Linear(7, 5))
        40
    """
    return sum(weight.numel() for weight in network.parameters() if weight.requires_grad or not trained_only)
