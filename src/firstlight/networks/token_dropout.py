"""Dropout of complete tokens, so that a prediction does not depend on a single word."""

import torch
from torch import Tensor, nn


class TokenDropout(nn.Module):
    """Dropout that replaces a share of the tokens by the unknown token in training."""

    def __init__(self, share: float, unknown_id: int) -> None:
        super().__init__()
        self.share, self.unknown_id = share, unknown_id

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return the token ids, some of them replaced. token_ids: int of any shape; the output has the same shape."""
        if not self.training or self.share == 0:
            return token_ids
        dropped = torch.rand(token_ids.shape, device=token_ids.device) < self.share
        return token_ids.masked_fill(dropped, self.unknown_id)
