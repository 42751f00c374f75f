"""The layer that maps the features of a classifier's tokens to logits. The data module computes the features."""

import torch
from torch import Tensor, nn


class FeatureHead(nn.Module):
    """A linear layer over the sum, the mean, and the sum weighted by magnitude of all tokens' features."""

    def __init__(self, num_features: int, num_outputs: int) -> None:
        super().__init__()
        self.score = nn.Linear(3 * num_features, num_outputs)
        nn.init.normal_(self.score.weight, std=0.02)

    def forward(self, features: Tensor, padding_mask: Tensor) -> Tensor:
        """Return logits, (batch, outputs). features: (batch, length, features); padding_mask: (batch, length)."""
        real = padding_mask[..., None]
        length = real.sum(dim=1).clamp(min=1)  # (batch, 1)
        total = (features * real).sum(dim=1)
        stressed = (features * features.abs() * real).sum(dim=1)
        return self.score(torch.cat((total / length.sqrt(), total / length, stressed / length.sqrt()), dim=-1))
