"""Convolutions over neighboring tokens."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks.cache import RecentCache


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
