"""Training a classifier: one logit and binary cross entropy for two classes, otherwise cross entropy."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from firstlight.data.tables import ReviewBatch
from firstlight.lit.losses import classification_loss, disagreement, probabilities
from firstlight.lit.optimizers import OptimizerFactory
from firstlight.lit.schedules import ScheduleFactory
from firstlight.lit.training import Training
from firstlight.networks.config import check_share
from firstlight.text.tokenizers import PAD_ID


class Prediction(NamedTuple):
    """What a classifier says of a text: the class, and the probability of every class in order."""

    label: str
    probabilities: dict[str, float]


class Classification(Training):
    """A classifier and how it learns. The batch is a `ReviewBatch`, or a pair of token ids and targets."""

    kind = "classifier"

    def __init__(
        self,
        network: nn.Module,
        optimizer: OptimizerFactory | None = None,
        schedule: ScheduleFactory | None = None,
        *,
        class_weights: Tensor | None = None,
        label_smoothing: float = 0.0,
        ordinal_smoothing: float = 0.0,
        r_drop: float = 0.0,
    ) -> None:
        """class_weights: (classes,), what an example of each class counts in the loss; the smoothings as in losses.py.

        r_drop: what it costs that two passes, with other words and units left out, disagree; 0: there is one pass.
        """
        check_share("label_smoothing", label_smoothing)
        for name, value in (("ordinal_smoothing", ordinal_smoothing), ("r_drop", r_drop)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}={value} must be a finite number, 0 or above")
        super().__init__(network, optimizer, schedule)
        self.class_weights: Tensor | None
        self.label_smoothing, self.ordinal_smoothing, self.r_drop = label_smoothing, ordinal_smoothing, r_drop
        self.register_buffer("class_weights", class_weights, persistent=False)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Logits (batch, outputs) of token_ids (batch, length)."""
        return self.network(token_ids, padding_mask)

    def training_step(self, batch: ReviewBatch) -> dict[str, Tensor]:
        """The loss and the logits (batch, outputs) of one batch."""
        batch = review_batch(batch)
        logits = self._logits_in_training(batch)
        loss = self._training_loss(logits, batch)
        if self.r_drop:
            again = self._logits_in_training(batch)
            loss = (loss + self._training_loss(again, batch)) / 2 + self.r_drop * disagreement(logits, again)
        return {"loss": loss, "logits": logits.detach()}

    def validation_step(self, batch: ReviewBatch) -> dict[str, Tensor]:
        """Loss, probabilities (batch, classes) and targets of one batch."""
        return self._evaluate(batch, "val")

    def test_step(self, batch: ReviewBatch) -> dict[str, Tensor]:
        """Loss, probabilities (batch, classes) and targets of one batch."""
        return self._evaluate(batch, "test")

    def predict_step(self, batch: ReviewBatch) -> list[Prediction]:
        """The class and the probabilities of each text of a batch, as `firstlight.load(run).predict` gives them."""
        batch = review_batch(batch)
        shares = probabilities(self(batch.token_ids, batch.padding_mask))
        names = (self.card or {}).get("class_names") or [str(i) for i in range(shares.shape[1])]
        return predictions(shares, names)

    def _logits_in_training(self, batch: ReviewBatch) -> Tensor:
        """What was counted of the training texts is counted without those of the batch, for which it needs targets."""
        if getattr(self.network, "evidence", None) is None:
            return self(batch.token_ids, batch.padding_mask)
        return self.network(batch.token_ids, batch.padding_mask, batch.targets)

    def _training_loss(self, logits: Tensor, batch: ReviewBatch) -> Tensor:
        return classification_loss(
            logits, batch.targets, self.class_weights, self.label_smoothing, self.ordinal_smoothing
        )

    def _evaluate(self, batch: ReviewBatch, stage: str) -> dict[str, Tensor]:
        batch = review_batch(batch)
        logits = self(batch.token_ids, batch.padding_mask)
        loss = classification_loss(logits, batch.targets)
        self.log_loss(stage, loss, len(batch.targets))
        return {"loss": loss, "probabilities": probabilities(logits), "targets": batch.targets}


def review_batch(batch: Any) -> ReviewBatch:
    """A batch as a `ReviewBatch`, also given as a pair: token_ids (batch, length), padded with 0, and targets (batch,).

    Raises TypeError for anything else.
    """
    if isinstance(batch, ReviewBatch):
        return batch
    if isinstance(batch, tuple | list) and len(batch) == 2 and all(isinstance(part, Tensor) for part in batch):
        token_ids, targets = batch
        padding_mask = token_ids != PAD_ID
        return ReviewBatch(token_ids, padding_mask, targets, torch.arange(len(targets)), int(padding_mask.sum()))
    raise TypeError(
        f"a batch must be a ReviewBatch or a pair of tensors, token ids and targets, not {type(batch).__name__}"
    )


def predictions(probabilities: Tensor, class_names: Sequence[str]) -> list[Prediction]:
    """What is predicted of each text. probabilities: (texts, classes)."""
    rows = probabilities.tolist()
    best = (max(range(len(row)), key=row.__getitem__) for row in rows)
    return [
        Prediction(class_names[i], dict(zip(class_names, row, strict=True))) for i, row in zip(best, rows, strict=True)
    ]
