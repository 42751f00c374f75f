"""The checkpoint from which a run resumes: the last one, or if it is damaged or missing, the newest complete one."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.kind.load import open_checkpoint
from firstlight.lit.checkpoint import METADATA, DamagedCheckpoint
from firstlight.runs.folder import RunFolder, read_history

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Found:
    """A checkpoint from which a run resumes: its file and its content."""

    path: Path
    content: dict[str, Any]

    def __post_init__(self) -> None:
        """Raise DamagedCheckpoint unless the checkpoint says where in the training it was written."""
        try:
            _ = self.step, self.epochs_done, self.ends_a_step
        except (LookupError, TypeError, ValueError, ArithmeticError):
            raise DamagedCheckpoint(f"{self.path}: the state of the training is missing or broken") from None

    @property
    def step(self) -> int:
        """The number of steps before the checkpoint."""
        return int(self.content["global_step"])

    @property
    def epochs_begun(self) -> int:
        """The number of epochs that have begun, including the one in which the checkpoint was written."""
        return int(self.content["loops"]["fit_loop"]["epoch_progress"]["current"]["ready"])

    @property
    def epochs_done(self) -> int:
        """The number of epochs of which all batches are trained."""
        is_complete = self.content["loops"]["fit_loop"]["epoch_loop.batch_progress"]["is_last_batch"]
        return self.epochs_begun - (not is_complete)

    @property
    def ends_a_step(self) -> bool:
        """Whether no gradients are accumulated. best.ckpt may come from a validation in the middle of a step."""
        progress = self.content["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        per_step = self.metadata["config"]["trainer"]["accumulate_grad_batches"]
        return bool(progress["is_last_batch"]) or progress["current"]["ready"] % per_step == 0

    @property
    def metadata(self) -> dict[str, Any]:
        """The checkpoint's metadata: what it has in addition to weights."""
        return self.content[METADATA]


def newest_checkpoint(folder: RunFolder, *, keeps_checkpoints: bool) -> Found | None:
    """Return the checkpoint from which a run resumes, or None if the run ended before it wrote one.

    It logs a warning if that is not the last checkpoint.

    keeps_checkpoints: Whether the run has a callback that writes them.

    Raises UserError if the run had checkpoints and none is complete, and for one that this version cannot read.
    """
    others: list[Found] = []
    problems: list[str] = []
    for path in (folder.last_checkpoint, folder.previous_checkpoint, folder.best_checkpoint):
        if not path.is_file():
            problems.append(f"{path.name} is missing")
            continue
        try:
            found = Found(path, open_checkpoint(path))
        except DamagedCheckpoint:
            problems.append(f"{path.name} is damaged")
            continue
        if path == folder.last_checkpoint:
            return found
        if found.ends_a_step:
            others.append(found)
    if others:
        newest = max(others, key=lambda each: each.step)
        _say("%s: %s; the run resumes from %s, at step %d", folder.path, problems[0], newest.path, newest.step)
        return newest
    if folder.checkpoints() or (keeps_checkpoints and _had_checkpoints(folder)):
        problem = f"{folder.path} cannot be resumed, and its history is kept: {', '.join(problems)}"
        raise UserError(f"{problem}; restore one of them from a copy, or start a new run without resume=")
    if folder.is_run():
        _say("%s: the run ended before its first checkpoint; it starts again at step 0", folder.path)
    return None


def refuse_nothing_left(config: DictConfig, folder: RunFolder) -> None:
    """Raise UserError if a run has reached trainer.max_steps, trainer.max_epochs or epochs."""
    try:
        start = Found(folder.last_checkpoint, open_checkpoint(folder.last_checkpoint))
    except DamagedCheckpoint:
        return  # newest_checkpoint reports it
    for key, done in (("max_steps", start.step), ("max_epochs", start.epochs_done)):
        limit, name = config.trainer.get(key), f"trainer.{key}"
        if limit is None and key == "max_epochs" and config.trainer.max_steps == -1:
            is_same = config.epochs == start.metadata["config"].get("epochs")
            limit, name = start.metadata.get(key, -1) if is_same else config.epochs, "epochs"
        if limit is not None and 0 <= limit <= done:
            problem = f"{name}={limit}: no step is left to train, since {folder.path} has ended at step {start.step}"
            raise UserError(f"{problem}; raise {name} to train it further")


def _had_checkpoints(folder: RunFolder) -> bool:
    """Return whether the run had written a checkpoint. The first one is written at the first validation or before."""
    if folder.last_checkpoint.parent.is_dir() and not folder.leftovers():
        return True
    history = read_history(folder.history_file)
    validated = [line["step"] for line in history if any(key.startswith("val/") for key in line)]
    return bool(validated) and any(line["step"] > min(validated) for line in history)


_say = rank_zero_only(log.warning)
