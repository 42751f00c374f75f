"""Training a classifier: one logit and binary cross entropy for two classes, otherwise cross entropy."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from firstlight.data.reviews import ReviewBatch
from firstlight.lit.optimizers import OptimizerFactory, build_optimizer

ScheduleFactory = Callable[[Optimizer, int], LRScheduler]


class Classification(LightningModule):
    """A classifier and how it learns. The batch is a `ReviewBatch`; metrics are the business of callbacks."""

    def __init__(
        self,
        network: nn.Module,
        optimizer: OptimizerFactory,
        schedule: ScheduleFactory,
        *,
        class_weights: Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        """class_weights: (classes,), what an example of each class counts in the loss."""
        super().__init__()
        self.network = network
        self.optimizer_factory, self.schedule_factory = optimizer, schedule
        self.label_smoothing = label_smoothing
        self.register_buffer("class_weights", class_weights, persistent=False)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Logits (batch, outputs) of token_ids (batch, length)."""
        return self.network(token_ids, padding_mask)

    def training_step(self, batch: ReviewBatch) -> dict[str, Tensor]:
        """The loss and the logits (batch, outputs) of one batch."""
        logits = self(batch.token_ids, batch.padding_mask)
        return {"loss": self.loss(logits, batch.targets), "logits": logits.detach()}

    def validation_step(self, batch: ReviewBatch) -> dict[str, Tensor]:
        """Loss, probabilities (batch, classes) and targets of one batch."""
        return self._evaluate(batch, "val")

    def test_step(self, batch: ReviewBatch) -> dict[str, Tensor]:
        """Loss, probabilities (batch, classes) and targets of one batch."""
        return self._evaluate(batch, "test")

    def _evaluate(self, batch: ReviewBatch, stage: str) -> dict[str, Tensor]:
        logits = self(batch.token_ids, batch.padding_mask)
        loss = self.loss(logits, batch.targets)
        self.log(f"{stage}/loss", loss, batch_size=len(batch.targets), on_epoch=True, prog_bar=True, sync_dist=True)
        return {"loss": loss, "probabilities": probabilities(logits), "targets": batch.targets}

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The mean loss. logits: (batch, 1) for two classes, else (batch, classes); targets: (batch,) int."""
        if logits.shape[1] > 1:
            return F.cross_entropy(
                logits, targets, weight=self.class_weights, label_smoothing=self.label_smoothing * self.training
            )
        yes = targets.to(logits.dtype)
        yes = yes + self.training * self.label_smoothing * (0.5 - yes)
        weights = None if self.class_weights is None else self.class_weights[targets]
        return F.binary_cross_entropy_with_logits(logits.squeeze(1), yes, weight=weights)

    def configure_optimizers(self) -> dict[str, Any]:
        """The optimizer, and its schedule stepped at every step."""
        optimizer = build_optimizer(self.network, self.optimizer_factory)
        scheduler = self.schedule_factory(optimizer, int(self.trainer.estimated_stepping_batches))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def probabilities(logits: Tensor) -> Tensor:
    """(batch, 1) logits of a yes or no, or (batch, classes) logits -> (batch, classes) probabilities."""
    if logits.shape[1] > 1:
        return logits.softmax(dim=1)
    yes = logits.sigmoid()
    return torch.cat((1 - yes, yes), dim=1)
