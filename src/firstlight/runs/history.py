"""The logger that every run has: its metrics as JSON lines."""

import json
import logging
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only

from firstlight.files.atomic import write_atomically
from firstlight.runs.folder import read_history

log = logging.getLogger(__name__)


class HistoryLogger(Logger):
    """Logger that appends lines of JSON to history.jsonl: the step, the seconds of the fit, the epoch and metrics."""

    name, version = "history", ""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._seconds_before = 0.0
        self._started_at = time.perf_counter()

    def start(self, first_step: int, others: Sequence[Logger] = ()) -> float:
        """Remove the lines of first_step and later, which a resumed run writes again. Return its seconds so far.

        others: the other loggers of the run. That of CSV and those with a method `go_on` receive the lines before
        first_step that they miss, and TensorBoard hides what it has of first_step and later.
        """
        kept = [line for line in read_history(self.path) if line["step"] < first_step]
        self._seconds_before = max((line["seconds"] for line in kept), default=0.0)
        self._started_at = time.perf_counter()
        if getattr(rank_zero_only, "rank", 0) == 0:
            write_atomically(self.path, "".join(json.dumps(line) + "\n" for line in kept))
        for logger in others:
            if isinstance(logger, CSVLogger):
                for step, metrics in map(_metrics_of, kept):
                    logger.log_metrics(metrics, step)
                logger.save()
            elif hasattr(logger, "go_on"):  # those of W&B and Trackio
                logger.go_on(map(_metrics_of, kept), first_step)
            elif isinstance(logger, TensorBoardLogger) and first_step:
                logger.experiment.close()
                logger.experiment.purge_step = first_step  # a mark at the start of its next file
        if first_step:
            log.info("Resumed at step %d", first_step)
        return self._seconds_before

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        seconds = self._seconds_before + time.perf_counter() - self._started_at
        values = {name: value for name, value in metrics.items() if name != "epoch"}
        if not values:
            return
        line = {"step": step, "seconds": round(seconds, 3), "epoch": metrics.get("epoch"), **values}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the hyperparameters are in the run's folder, in .hydra/ and metrics.json."""


def _metrics_of(line: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the step of a line and its metrics."""
    return line["step"], {name: value for name, value in line.items() if name not in ("step", "seconds")}
