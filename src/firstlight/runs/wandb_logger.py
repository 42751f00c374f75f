"""The logger of W&B for a run that may be interrupted and go on. wandb is imported only when a logger is made."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.utilities import rank_zero_only


class ResumableWandbLogger(WandbLogger):
    """Lightning's logger for W&B with the number of the training step as W&B's own step.

    By it W&B and a run that goes on agree on what is logged already, so nothing is logged twice.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._first_step = 0  # what is from before it is passed over
        self._step_of_part = 0  # what W&B's step 0 of this part of the run is; its server adds up the parts

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Log numbers, figures or tables of a step, unless W&B has them."""
        if step is None:
            super().log_metrics(metrics)
        elif step >= self._first_step:
            self.experiment.log({**metrics, "trainer/global_step": step}, step=step - self._step_of_part)

    @rank_zero_only
    def go_on(self, lines: Iterable[tuple[int, Mapping[str, Any]]], last_step: int) -> None:
        """Continue a run: log what W&B lacks of its numbers, and pass over what it has.

        Online, W&B's server says where it stands. Offline, an earlier part of the run may have been cut short when its
        process was killed, so this part has all numbers. If an earlier part is uploaded already, it has the rest.

        lines: the steps in order, with the numbers of each; last_step: the last step that was logged before, -1 if none
            was, which may lie behind the lines.
        """
        run = self.experiment
        self._first_step = run.starting_step
        if run.settings.mode == "offline" and is_uploaded(Path(run.dir).parent, run.id):
            self._first_step = self._step_of_part = last_step + 1
        for step, metrics in lines:
            self.log_metrics(metrics, step)


def parts(folder: Path, run_id: str) -> list[Path]:
    """Return the folders that W&B has made for the parts of an offline run, given that of one part."""
    return sorted(folder.parent.glob(f"offline-run-*-{run_id}"))


def is_uploaded(folder: Path, run_id: str) -> bool:
    """Return whether `wandb sync` has uploaded a part of an offline run."""
    return any(list(part.glob("*.synced")) for part in parts(folder, run_id))
