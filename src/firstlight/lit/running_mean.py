"""A mean over steps that is updated at every step and logged at every n-th step."""

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor


def ends_a_step(trainer: Trainer, batch_idx: int) -> bool:
    """Return whether the optimizer stepped after this batch. With accumulation, a step has several batches."""
    return (batch_idx + 1) % trainer.accumulate_grad_batches == 0 or trainer.is_last_batch


def is_logging_step(trainer: Trainer, batch_idx: int) -> bool:
    """Return whether the step of the batch that has just ended is logged."""
    every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
    return every > 0 and ends_a_step(trainer, batch_idx) and trainer.global_step % every == 0


def log_training(
    trainer: Trainer, pl_module: LightningModule, metrics: dict[str, Tensor], *, on_bar: bool = False
) -> None:
    """Log metrics immediately to every logger, as the mean over all processes.

    Lightning logs only after the step, when its checkpoint may already be written. If the run were killed in between,
    the resumed run would lack a line. The step is counted from 0, as by Lightning.
    """
    for name, value in metrics.items():
        pl_module.log(name, value, prog_bar=on_bar, logger=False, sync_dist=True)
    reduce, device = trainer.strategy.reduce, pl_module.device
    reduced = {name: reduce(value.to(device), reduce_op="mean") for name, value in metrics.items()}
    values = {name: float(value) for name, value in reduced.items()}
    for logger in trainer.loggers:
        logger.log_metrics({**values, "epoch": trainer.current_epoch}, step=trainer.global_step - 1)


class MeanCallback(Callback):
    """Base class of callbacks that log a mean over the steps since the last log.

    The state of the mean is in checkpoints, so that curves continue exactly.

    training_sum: what a stack of networks sums for the callback: loss, token_loss, or hits, the number of correct
    texts.
    """

    training_sum = "loss"

    def __init__(self) -> None:
        self.total: Tensor | float = 0.0
        self.count = 0

    def add_to_mean(self, total: Tensor, count: int = 1) -> None:
        """Add the sum of `count` values. It stays on the device, so the CPU does not wait for it."""
        self.total = self.total + total.detach()
        self.count += count

    def take_mean(self) -> Tensor:
        """Return the mean, on the device, and reset it."""
        mean = torch.as_tensor(self.total, dtype=torch.float32) / max(self.count, 1)
        self.total, self.count = 0.0, 0
        return mean

    def state_dict(self) -> dict[str, Any]:
        return {"total": float(self.total), "count": self.count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.total, self.count = state_dict["total"], state_dict["count"]


class TrainingLoss(MeanCallback):
    """Log `train/loss` every `log_every_n_steps` steps, as the mean over all steps since it was last logged.

    The LightningModules of firstlight add this callback to a trainer that does not have it.

    Args:
        every_epoch: Also log, at the end of an epoch, the mean over its last steps, so that an epoch shorter than
            `log_every_n_steps` has a value too.

    Example:
        >>> import lightning as L
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification, TrainingLoss
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, log_every_n_steps=1, callbacks=[TrainingLoss()])
        >>> trainer.fit(module, datamodule=data)
        >>> trainer.callback_metrics["train/loss"].shape
        torch.Size([])
    """

    def __init__(self, *, every_epoch: bool = False) -> None:
        super().__init__()
        self.every_epoch = every_epoch

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.add_to_mean(outputs["loss"] * trainer.accumulate_grad_batches)  # by which Lightning has divided the loss
        if is_logging_step(trainer, batch_idx):
            self._log(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.every_epoch and self.count:
            self._log(trainer, pl_module)

    def _log(self, trainer: Trainer, pl_module: LightningModule) -> None:
        log_training(trainer, pl_module, {"train/loss": self.take_mean()}, on_bar=True)
