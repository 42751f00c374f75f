"""Neighbouring words seen together before any attention."""

import torch.nn.functional as F
from torch import Tensor, nn


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
