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
    """Show Lightning's rich progress bar on a terminal, and nothing in a file, in a pipe or within a sweep.

    Args:
        refresh_rate: The number of batches between two updates of the bar.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import ProgressBar
        >>> trainer = L.Trainer(callbacks=[ProgressBar(refresh_rate=50)], enable_progress_bar=True)
        >>> trainer.progress_bar_callback.refresh_rate
        50
    """

    def __init__(self, refresh_rate: int = 20) -> None:
        super().__init__(refresh_rate=refresh_rate, leave=False)
        if isinstance(sys.stdout, FileProxy) or not sys.stdout.isatty():
            self.disable()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Update the bar, but only after every refresh_rate-th batch: Lightning collects the metrics after each."""
        if (batch_idx + 1) % self.refresh_rate == 0 or trainer.is_last_batch:
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)


class ValidationLine(Callback):
    """Write a line to the log after each validation: the epoch, the step, the seconds and all validation metrics.

    The line goes to the logger `firstlight.callbacks.progress` of the module `logging`, at the level INFO.

    Example:
        >>> import logging
        >>> import lightning as L
        >>> from firstlight.callbacks import ValidationLine
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> lines = []
        >>> handler = logging.Handler()
        >>> handler.emit = lambda record: lines.append(record.getMessage())
        >>> log = logging.getLogger("firstlight.callbacks.progress")
        >>> log.setLevel(logging.INFO); log.addHandler(handler)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[ValidationLine()])
        >>> trainer.fit(module, datamodule=data)
        >>> log.setLevel(logging.NOTSET); log.removeHandler(handler)
        >>> print(lines[0])
        epoch 1  step 2  ... s  val/loss ...
    """

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
