"""A progress bar for the terminal, and a line in the log after each validation."""

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar as LightningProgressBar
from rich.console import RenderableType
from rich.constrain import Constrain
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from firstlight.callbacks.checkpoint import BestAndLast, callback_of, is_validation_of_fit
from firstlight.callbacks.evaluation import EvaluationCallback
from firstlight.console import is_watched, terminal

log = logging.getLogger(__name__)

SECONDS_BETWEEN = 1.0  # two updates, at the longest
MARGIN = 4  # columns that stay free at the right, for the ^C that a terminal shows at the end of the line


class ProgressBar(EvaluationCallback, LightningProgressBar):
    """Show one line on a terminal that says how far the training is, or the validation or test within it.

    The line has the epoch, the step, the steps per second, the loss and the time left. What is printed or logged
    meanwhile goes above it, and it leaves nothing behind. In a file, in a pipe and within a sweep nothing is shown.

    Args:
        refresh_rate: The number of batches between two updates of the line. It is updated every second at least.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import ProgressBar
        >>> trainer = L.Trainer(callbacks=[ProgressBar(refresh_rate=10)], enable_progress_bar=True)
        >>> trainer.progress_bar_callback.refresh_rate
        10
    """

    def __init__(self, refresh_rate: int = 50) -> None:
        super().__init__()
        self.refresh_rate = refresh_rate
        self._is_wanted = True
        self._line: _Line | None = None
        self._shown_at = 0.0

    @property
    def is_enabled(self) -> bool:
        """Whether the line is shown."""
        return self._is_wanted and is_watched()

    def enable(self) -> None:
        """Show the line, if standard output is a terminal."""
        self._is_wanted = True

    def disable(self) -> None:
        """Show nothing."""
        self._is_wanted = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._begin(_epoch(trainer), trainer.estimated_stepping_batches, trainer.global_step, unit="step ")

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._line is not None:
            self._line.update(self._line.task_ids[0], description=_epoch(trainer))

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self._is_due(batch_idx + 1):
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            self._show(trainer.global_step, None if loss is None else float(loss) * trainer.accumulate_grad_batches)

    def begin_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        self._evaluated = 0
        self._begin("test" if stage == "test" else "validation", sum(getattr(trainer, f"num_{stage}_batches")))

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        self._evaluated += 1
        if self._is_due(self._evaluated):
            self._show(self._evaluated)

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        if is_validation_of_fit(trainer):
            self.on_train_start(trainer, pl_module)
        else:
            self._close()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._close()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._close()

    def _begin(self, name: str, total: float, completed: int = 0, unit: str = "") -> None:
        """Show another loop: the training, a validation or a test. unit: what is counted, in front of the count."""
        if self._line is None:
            if not self.is_enabled:
                return
            self._line = _Line()
        count = None if total in (-1, float("inf")) else int(total)
        task = self._line.task_ids[0]
        self._line.reset(task, description=name, total=count, completed=completed, unit=unit, facts="")
        self._show(completed)

    def _is_due(self, num_batches: int) -> bool:
        """Return whether there is a line that is to be updated after this number of batches."""
        is_late = time.perf_counter() - self._shown_at >= SECONDS_BETWEEN
        return self._line is not None and (num_batches % self.refresh_rate == 0 or is_late)

    def _show(self, completed: int, loss: float | None = None) -> None:
        """Show how far the loop is."""
        assert self._line is not None
        (task,) = self._line.tasks
        self._line.update(task.id, completed=completed)
        of_total = "" if task.total is None else f"/{int(task.total):,}"
        speed = f"  {task.speed:,.1f}/s" if task.speed else ""
        shown_loss = "" if loss is None else f"  loss {loss:.3f}"
        self._line.update(task.id, facts=f"{task.fields['unit']}{completed:,}{of_total}{speed}{shown_loss}")
        self._line.refresh()
        self._shown_at = time.perf_counter()

    def _close(self) -> None:
        if self._line is not None:
            self._line.stop()
            self._line = None


class _Line(Progress):
    """The line, with one task. It vanishes at the end."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[facts]}", markup=False),
            TimeRemainingColumn(compact=True),
            console=terminal(),
            auto_refresh=False,
            transient=True,
            expand=True,
            redirect_stderr=sys.stderr.isatty(),
        )
        self.add_task("", unit="", facts="")
        self.start()

    def get_renderable(self) -> RenderableType:
        """Return the line, which ends before the margin."""
        return Constrain(super().get_renderable(), terminal().width - MARGIN)


def _epoch(trainer: Trainer) -> str:
    number = trainer.current_epoch + 1
    last = trainer.max_epochs
    return f"epoch {number}" if last is None or last < 0 else f"epoch {number}/{last}"


class ValidationLine(Callback):
    """Write a line to the log after each validation: the epoch, the step, the seconds and all validation metrics.

    The line has the training loss if one was logged since the last line.

    The line goes to the logger `firstlight.callbacks.progress` of the module `logging`, at the level INFO. On a
    terminal it has as many metrics as fit, the monitored one first.

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
        self._shown_loss: float | None = None

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._started_at = time.perf_counter()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or not is_validation_of_fit(trainer):
            return
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("val/")}
        train_loss = trainer.callback_metrics.get("train/loss")
        if train_loss is not None and float(train_loss) != self._shown_loss:  # it was logged since the last line
            self._shown_loss = metrics["train/loss"] = float(train_loss)
        seconds = time.perf_counter() - self._started_at
        moment = f"epoch {trainer.current_epoch + 1}  step {trainer.global_step}  {seconds:.0f} s"
        values = {name: f"{name} {value:.4f}" for name, value in sorted(metrics.items())}
        checkpoint = callback_of(trainer, BestAndLast)
        first = (checkpoint.monitor if checkpoint else "val/loss", "val/loss", "train/loss")
        ordered = [values[name] for name in dict.fromkeys((*first, *values)) if name in values]
        on_terminal = fitting(moment, ordered)
        log.info("%s", "  ".join([moment, *values.values()]), extra={"on_terminal": on_terminal})


def fitting(line: str, parts: list[str]) -> str:
    """Return a line with as many parts after it as fit the width of the terminal."""
    for part in parts:
        if len(line) + 2 + len(part) > terminal().width:
            break
        line = f"{line}  {part}"
    return line
