"""The norms of the blocks and of the networks."""

import torch
from torch import Tensor, nn

from firstlight.networks.config import TransformerConfig
from firstlight.networks.variants import NormKind

LAYER_NORM_EPS = 1e-5  # torch's


class NormOverWords(nn.Module):
    """A norm of each coordinate over the words of a text, in place of the coordinates of a word (post 5).

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
        centred = hidden - (hidden * real).sum(dim=1, keepdim=True) / count
        variance = (centred.square() * real).sum(dim=1, keepdim=True) / count  # (batch, 1, dim)
        normalised = centred * torch.rsqrt(variance + self.eps)
        if self.weight is None or self.bias is None:
            return normalised
        return normalised * self.weight + self.bias


def build_norm(config: TransformerConfig) -> nn.Module:
    """Return the norm that the config names; `normalise` applies it."""
    eps = LAYER_NORM_EPS if config.norm_eps is None else config.norm_eps
    match config.norm_kind:
        case NormKind.layer:
            return nn.LayerNorm(config.dim, eps, elementwise_affine=config.norm_affine)
        case NormKind.rms:
            return nn.RMSNorm(config.dim, config.norm_eps, elementwise_affine=config.norm_affine)
        case NormKind.over_words:
            return NormOverWords(config.dim, eps, elementwise_affine=config.norm_affine)


def normalise(norm: nn.Module, hidden: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Return the vectors after a norm. Only a norm over the words reads the padding mask, (batch, length) or None."""
    return norm(hidden, padding_mask) if isinstance(norm, NormOverWords) else norm(hidden)
