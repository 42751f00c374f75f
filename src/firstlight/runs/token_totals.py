"""How well tokens are predicted, summed over batches."""

import math

import torch.nn.functional as F
from torch import Tensor

from firstlight.data.pairs import IGNORED


class TokenTotals:
    """Loss, perplexity and accuracy of many tokens, in double precision; IGNORED targets do not count."""

    def __init__(self) -> None:
        self.loss, self.hits, self.tokens = 0.0, 0, 0

    def add(self, logits: Tensor, targets: Tensor) -> Tensor:
        """logits: (batch, length, vocab_size); targets: (batch, length). Returns their losses, (batch, length)."""
        losses = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORED, reduction="none").double()
        self.loss += float(losses.sum())
        self.hits += int((logits.argmax(dim=2) == targets).sum())
        self.tokens += int((targets != IGNORED).sum())
        return losses

    def metrics(self) -> dict[str, float]:
        """The means, in nats for each token, and e to the loss."""
        loss = self.loss / self.tokens
        return {"loss": loss, "perplexity": math.exp(loss), "accuracy": self.hits / self.tokens}
