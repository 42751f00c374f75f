"""A bar for those who watch, and a line for those who read the log later."""

import logging
import sys
import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.trainer.states import TrainerFn
from rich.file_proxy import FileProxy

log = logging.getLogger(__name__)


class ProgressBar(RichProgressBar):
    """Lightning's rich bar on a terminal; silent in a file, in a pipe, and above the live table of a sweep."""

    def __init__(self, refresh_rate: int = 20) -> None:
        super().__init__(refresh_rate=refresh_rate, leave=False)
        if isinstance(sys.stdout, FileProxy) or not sys.stdout.isatty():
            self.disable()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Lightning gathers the metrics and draws after every batch; after every refresh_rate-th is enough."""
        if (batch_idx + 1) % self.refresh_rate == 0 or trainer.is_last_batch:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)


class ValidationLine(Callback):
    """Writes one line into the log after each validation: step, epoch, seconds and all validation metrics."""

    def __init__(self) -> None:
        self._started_at = time.perf_counter()

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._started_at = time.perf_counter()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or trainer.state.fn is not TrainerFn.FITTING or trainer.sanity_checking:
            return
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("val/")}
        train_loss = trainer.callback_metrics.get("train/loss")
        if train_loss is not None:
            metrics["train/loss"] = float(train_loss)
        shown = "  ".join(f"{name} {value:.4f}" for name, value in sorted(metrics.items()))
        seconds = time.perf_counter() - self._started_at
        log.info("epoch %d  step %d  %.0f s  %s", trainer.current_epoch + 1, trainer.global_step, seconds, shown)
