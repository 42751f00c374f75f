"""The curve of a run as JSON lines, whatever other loggers there are."""

import json
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only


class HistoryLogger(Logger):
    """Appends {"step", "seconds", "epoch", metrics…} to history.jsonl; seconds count from the start of the fit."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._seconds_before = 0.0
        self._started_at = time.perf_counter()

    @property
    def name(self) -> str:
        return "history"

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def start(self, first_step: int) -> None:
        """Forget what was written at first_step or later: a resumed run writes it again."""
        kept = [line for line in read_history(self.path) if line["step"] < first_step]
        self._seconds_before = max((line["seconds"] for line in kept), default=0.0)
        self._started_at = time.perf_counter()
        self.path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

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
        """The run's folder has them in .hydra/ and metrics.json."""


def read_history(path: Path) -> list[dict[str, Any]]:
    """The lines of a history; a last line that a killed run left half written is passed over."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n") and line.strip()]
