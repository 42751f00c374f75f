"""Convolutions over neighboring tokens."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks.cache import RecentCache


class ShortConvolution(nn.Module):
    """Add to each vector a convolution over it and its neighbors, with a ReLU (as in Kim's sentence classifier, 2014).

    The blocks then receive word order at short range, such as a negation.
    """

    def __init__(self, dim: int, width: int) -> None:
        """width: number of tokens that the convolution sees, an odd number."""
        super().__init__()
        self.mixture = nn.Conv1d(dim, dim, width, padding=width // 2)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """hidden: (batch, length, dim); padding_mask: (batch, length), padding counts as 0. Returns the same shape."""
        real = (hidden * padding_mask[..., None]).transpose(1, 2)  # (batch, dim, length)
        return hidden + F.relu(self.mixture(real)).transpose(1, 2)


class CausalConvolution(nn.Module):
    """A depthwise causal convolution: weighted sums of each coordinate at a token and at those just before it.

    Attention then need not find the nearest tokens. These are the Canon layers A and C of Allen-Zhu (2025), after
    Primer's convolutions (So et al. 2021). It starts as the identity.
    """

    def __init__(self, dim: int, width: int) -> None:
        """width: number of tokens in a sum, the token itself included."""
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, dim))  # the last row is that of the token itself
        with torch.no_grad():
            self.weight[-1] = 1.0

    def forward(self, hidden: Tensor, recent: RecentCache | None = None) -> Tensor:
        """hidden: (batch, length, dim); recent: earlier inputs, extended by hidden. Returns the shape of hidden."""
        before, length = len(self.weight) - 1, hidden.shape[1]
        seen = F.pad(hidden, (0, 0, before, 0)) if recent is None else recent.extend(hidden, before)
        mixed = seen[:, :length] * self.weight[0]  # (batch, length, dim)
        for i in range(1, before + 1):
            mixed = torch.addcmul(mixed, seen[:, i : i + length], self.weight[i])
        return mixed
