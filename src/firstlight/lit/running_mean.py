"""A mean that is kept up cheaply at every step and written at every n-th."""

from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor


class RunningMean:
    """The mean of what was added since it was last taken. Its state goes into checkpoints, so that curves go on too."""

    def __init__(self) -> None:
        self.total: Tensor | float = 0.0
        self.count = 0

    def add(self, total: Tensor, count: int = 1) -> None:
        """Add the sum of `count` values; stays on the device, so that nothing waits for it."""
        self.total = self.total + total.detach()
        self.count += count

    def take(self) -> Tensor:
        """The mean so far, on the device; the next one begins from nothing."""
        mean = torch.as_tensor(self.total, dtype=torch.float32) / max(self.count, 1)
        self.total, self.count = 0.0, 0
        return mean

    def state_dict(self) -> dict[str, Any]:
        return {"total": float(self.total), "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.total, self.count = state["total"], state["count"]


def ends_a_step(trainer: Trainer, batch_idx: int) -> bool:
    """Whether the optimizer stepped after this batch; with accumulation it waits for several."""
    return (batch_idx + 1) % trainer.accumulate_grad_batches == 0 or trainer.is_last_batch


def is_logging_step(trainer: Trainer, batch_idx: int) -> bool:
    """Whether the training batch that just ended is one whose step the loggers get."""
    every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
    return every > 0 and ends_a_step(trainer, batch_idx) and trainer.global_step % every == 0


def log_training(
    trainer: Trainer, pl_module: LightningModule, metrics: dict[str, Tensor], *, on_bar: bool = False
) -> None:
    """Tell every logger at once, the mean over all processes.

    Lightning tells them only after the step, when a checkpoint of it may be written already and the run killed: the
    resumed run would then lack a line. The number of the step is Lightning's, which counts from 0.
    """
    for name, value in metrics.items():
        pl_module.log(name, value, prog_bar=on_bar, logger=False, sync_dist=True)
    reduced = {
        name: trainer.strategy.reduce(value.to(pl_module.device), reduce_op="mean") for name, value in metrics.items()
    }
    values = {name: float(value) for name, value in reduced.items()}
    for logger in trainer.loggers:
        logger.log_metrics({**values, "epoch": trainer.current_epoch}, step=trainer.global_step - 1)
