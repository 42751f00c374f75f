"""Neighbouring words seen together before any attention."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks.cache import RecentCache


class ShortConvolution(nn.Module):
    """Add to each vector a rectified mixture of itself and its neighbours (as in Kim's sentence classifier, 2014).

    Word order at short range, such as a negation, reaches the blocks ready-made.
    """

    def __init__(self, dim: int, width: int) -> None:
        """width: how many neighbouring tokens are mixed, odd."""
        super().__init__()
        self.mixture = nn.Conv1d(dim, dim, width, padding=width // 2)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """hidden: (batch, length, dim); padding_mask: (batch, length), padding counts as zeros. Same shape back."""
        real = (hidden * padding_mask[..., None]).transpose(1, 2)  # (batch, dim, length)
        return hidden + F.relu(self.mixture(real)).transpose(1, 2)


class CausalConvolution(nn.Module):
    """Each coordinate of a vector becomes a sum of its own values there and in the tokens just before (depthwise).

    What stands next to each other need not be found by attention, which is left for what is far away: the Canon layers
    A and C of Allen-Zhu (2025), after Primer's convolutions (So et al. 2021). It begins as the identity.
    """

    def __init__(self, dim: int, width: int) -> None:
        """width: how many tokens are summed, itself and width - 1 before it."""
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, dim))  # the last row is that of the token itself
        with torch.no_grad():
            self.weight[-1] = 1.0

    def forward(self, hidden: Tensor, recent: RecentCache | None = None) -> Tensor:
        """hidden: (batch, length, dim); recent: what stands before it, to which it is added. Same shape back."""
        before, length = len(self.weight) - 1, hidden.shape[1]
        seen = F.pad(hidden, (0, 0, before, 0)) if recent is None else recent.extend(hidden, before)
        mixed = seen[:, :length] * self.weight[0]  # (batch, length, dim)
        for i in range(1, before + 1):
            mixed = torch.addcmul(mixed, seen[:, i : i + length], self.weight[i])
        return mixed
