"""The logger of W&B for a run that may be interrupted and resumed. wandb is imported when a logger is made."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.utilities import rank_zero_only


class ResumableWandbLogger(WandbLogger):
    """Lightning's logger for W&B with the number of the training step as W&B's own step.

    By this step, W&B and a resumed run agree on what is logged already, so nothing is logged twice.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("settings", {"quiet": True})  # without W&B's summary, which repeats what the run prints
        super().__init__(*args, **kwargs)
        self._first_step = 0  # metrics of earlier steps are ignored, since W&B has them
        self._step_of_part = 0  # the step of the run that is W&B's step 0 in this part; its server joins the parts

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Log numbers, figures or tables of a step, unless W&B has them."""
        if step is None:
            super().log_metrics(metrics)
        elif step >= self._first_step:
            self.experiment.log({**metrics, "trainer/global_step": step}, step=step - self._step_of_part)

    @rank_zero_only
    def go_on(self, lines: Iterable[tuple[int, Mapping[str, Any]]], last_step: int) -> None:
        """Continue a run: log the numbers that W&B does not have, and ignore those that it has.

        Online, W&B's server knows the last step. Offline, an earlier part of the run may be incomplete because its
        process was killed. This part therefore has all numbers, unless an earlier part has been uploaded.

        lines: the steps in order, with the numbers of each; last_step: the last step that was logged before, which may
            be after the lines; -1 if none was logged.
        """
        run = self.experiment
        self._first_step = run.starting_step
        if run.settings.mode == "offline" and is_uploaded(Path(run.dir).parent, run.id):
            self._first_step = self._step_of_part = last_step + 1
        for step, metrics in lines:
            self.log_metrics(metrics, step)


def parts(folder: Path, run_id: str) -> list[Path]:
    """Return the folders that W&B has made for the parts of an offline run, given the folder of one part."""
    return sorted(folder.parent.glob(f"offline-run-*-{run_id}"))


def is_uploaded(folder: Path, run_id: str) -> bool:
    """Return whether `wandb sync` has uploaded a part of an offline run."""
    return any(list(part.glob("*.synced")) for part in parts(folder, run_id))
