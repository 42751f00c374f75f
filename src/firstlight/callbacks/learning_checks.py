"""Callbacks that say when a training does not learn, or that it diverges."""

import logging
import math
from collections import Counter
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from firstlight.callbacks.checkpoint import is_validation_of_fit
from firstlight.callbacks.evaluation import EvaluationCallback
from firstlight.data.tables import IGNORED
from firstlight.errors import RunError
from firstlight.lit.schedules import LONG_WARMUP, total_steps

log = logging.getLogger(__name__)

FIRST_STEPS = 20  # in which no network is expected to learn
NO_BETTER = 0.98  # of the loss of a constant prediction, or of the first training loss
STANDARD_ERRORS = 2  # by which an accuracy must be above that of a constant prediction
MEMORIZING = 1.1  # times the best validation loss, while the training loss still falls
PAGE = "docs/learning.md says what to try"


class LearningChecks(EvaluationCallback):
    """Warn, once each, of a training that does not learn.

    The warnings concern a warm-up longer than a tenth of the training, a validation that until the second half or the
    end of the training was never better than a constant prediction, a validation loss that rises while the training
    loss falls, and a training loss that has not fallen at the end. The constant prediction gives each class, or token,
    its share of the validation targets; its loss is the entropy of these shares, and its accuracy the largest share.

    Attributes:
        chance: The loss of the constant prediction for the first complete validation, in nats. None before it.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import LearningChecks
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> checks = LearningChecks()
        >>> L.Trainer(max_steps=4, callbacks=[checks]).fit(module, datamodule=data)
        >>> round(checks.chance, 2)
        0.69
    """

    def __init__(self) -> None:
        self.total_steps = 0
        self.first_loss: float | None = None
        self.best: tuple[float, float] | None = None  # the lowest validation loss, and the training loss then
        self.accuracy = 0.0  # the highest val/accuracy, 0 if it is not logged
        self.said: list[str] = []
        self.chance: float | None = None
        self._counts = Counter[int]()

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        if trainer.max_epochs not in (None, -1) or trainer.max_steps != -1:
            self.total_steps = total_steps(trainer)
        warmup = getattr(getattr(pl_module, "schedule_factory", None), "keywords", {}).get("warmup_steps") or 0
        if self.total_steps and warmup > LONG_WARMUP * self.total_steps:
            remedy = f"shorten it with schedule.warmup_steps={self.total_steps // 10}, or train longer"
            self._say("warm-up", f"the warm-up is {warmup:,} of {self.total_steps:,} steps; {remedy}")

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.first_loss is None:
            self.first_loss = float(outputs["loss"]) * trainer.accumulate_grad_batches

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        """Count the targets of the first complete validation. A GPU waits for that."""
        if self.chance is None and is_validation_of_fit(trainer):
            targets = outputs["targets"]
            self._counts.update(targets[targets != IGNORED].tolist())

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        if self.chance is None and (total := self._counts.total()):
            self.chance = -sum(count / total * math.log(count / total) for count in self._counts.values())

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        found = {name: float(value) for name, value in trainer.callback_metrics.items()}
        loss, training = found.get("val/loss"), found.get("train/loss", float("nan"))
        if not is_validation_of_fit(trainer) or self.chance is None or loss is None:
            return
        self.accuracy = max(self.accuracy, found.get("val/accuracy", 0.0))
        if self.best is None or loss < self.best[0]:
            self.best = (loss, training)
        if self.total_steps and trainer.global_step >= self.total_steps / 2:
            self._check_chance(trainer)
        has_risen = loss > MEMORIZING * self.best[0] and not training >= self.best[1]  # nan: not yet logged
        if has_risen and not self._is_at_chance():
            self._say(
                "memorizing",
                f"after {trainer.global_step:,} steps, val/loss has risen from {self.best[0]:.4g} to {loss:.4g} but "
                "train/loss fell; the network memorizes its training data: try a higher dropout, a smaller model or "
                "more data",
            )

    def _is_at_chance(self) -> bool:
        """Return whether neither loss nor accuracy of any validation was clearly better than a constant prediction."""
        if self.best is None or self.chance is None:
            return False
        total = self._counts.total()
        share = max(self._counts.values()) / total
        margin = STANDARD_ERRORS * math.sqrt(share * (1 - share) / total)
        return self.best[0] >= NO_BETTER * self.chance and self.accuracy <= share + margin

    def _check_chance(self, trainer: Trainer) -> None:
        if trainer.global_step >= FIRST_STEPS and self._is_at_chance():
            share = max(self._counts.values()) / self._counts.total()
            self._say(
                "chance",
                f"after {trainer.global_step:,} steps, validation was never better than always answering the most "
                f"frequent class ({share:.0%} of {self._counts.total():,} targets); check the labels, try another "
                "optimizer.lr, or --doctor",
            )

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._check_chance(trainer)
        first, last = self.first_loss, float(trainer.callback_metrics.get("train/loss", float("nan")))
        if trainer.global_step >= FIRST_STEPS and first is not None and last > NO_BETTER * first:  # nan: not logged
            problem = f"train/loss was {first:.4g} at the first step and is {last:.4g} at the end"
            self._say("training loss", f"{problem}; try another optimizer.lr, more steps, or --doctor")

    def state_dict(self) -> dict[str, Any]:
        return {"first_loss": self.first_loss, "best": self.best, "accuracy": self.accuracy, "said": self.said}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.first_loss, self.best = state_dict["first_loss"], state_dict["best"]
        self.accuracy, self.said = state_dict["accuracy"], list(state_dict["said"])

    def _say(self, name: str, text: str) -> None:
        if name not in self.said:
            self.said.append(name)
            log.warning("%s (%s)", text, PAGE)


class NonFiniteGuard(Callback):
    """Stop the training at the first loss that is NaN or infinite, before it changes the weights.

    Raises:
        RunError: If the loss is NaN or infinite. The message names the loss, the step and a fix.

    Example:
        >>> import lightning as L
        >>> import torch
        >>> from firstlight.callbacks import NonFiniteGuard
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> with torch.no_grad():
        ...     _ = module.network.embedding.weight.fill_(torch.nan)
        >>> trainer = L.Trainer(max_steps=1, num_sanity_val_steps=0, callbacks=[NonFiniteGuard()])
        >>> trainer.fit(module, datamodule=data)
        Traceback (most recent call last):
        firstlight.errors.RunError: the loss is nan at step 0; lower optimizer.lr, ...
    """

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        if not loss.isfinite():
            problem = f"the loss is {loss.item()} at step {trainer.global_step}"
            raise RunError(f"{problem}; lower optimizer.lr, or set trainer.gradient_clip_val=1.0")
