"""Training a generator: the cross entropy of the next token at every position."""

import torch.nn.functional as F
from torch import Tensor

from firstlight.data.tables import TokenBatch
from firstlight.lit.training import Training


class Generation(Training):
    """A generator and how it learns. The batch is a `TokenBatch`."""

    def forward(self, token_ids: Tensor) -> Tensor:
        """Logits (batch, length, vocab_size) of token_ids (batch, length)."""
        return self.network(token_ids)

    def training_step(self, batch: TokenBatch) -> dict[str, Tensor]:
        """The loss, in nats for each token, and the logits (batch, length, vocab_size) of one batch."""
        logits = self(batch.token_ids)
        return {"loss": F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()), "logits": logits.detach()}

    def validation_step(self, batch: TokenBatch) -> dict[str, Tensor]:
        """The mean loss, the loss of every token (batch, length) and what was predicted for it."""
        return self._evaluate(batch, "val")

    def test_step(self, batch: TokenBatch) -> dict[str, Tensor]:
        """The mean loss, the loss of every token (batch, length) and what was predicted for it."""
        return self._evaluate(batch, "test")

    def _evaluate(self, batch: TokenBatch, stage: str) -> dict[str, Tensor]:
        logits = self(batch.token_ids)
        losses = F.cross_entropy(logits.transpose(1, 2), batch.targets, reduction="none")  # (batch, length)
        loss = losses.mean()
        self.log_loss(stage, loss, batch.num_tokens)
        return {"loss": loss, "token_losses": losses, "predicted": logits.argmax(dim=2)}
