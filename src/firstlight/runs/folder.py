"""A run's folder and the files in it. Imports nothing heavy."""

import json
import logging
import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from firstlight.errors import UserError
from firstlight.files import locks
from firstlight.files.atomic import UNFINISHED, leftovers, write_atomically
from firstlight.files.regular import regular
from firstlight.version import refuse_other

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

log = logging.getLogger(__name__)

SAMPLE_NOTE = "Measured on a GENERATED SAMPLE: the numbers say nothing about real data."
WANDB_PART = re.compile(r"(offline-)?run-\d{8}_\d{6}-\w+")  # a folder that W&B makes each time a run starts
EXPORTED_FILES = EXPORTED_WEIGHTS, EXPORTED_CONFIG = "model.safetensors", "config.json"  # of `export`, or transformers
# Folders in that of a run, which have no runs.
PARTS_OF_A_RUN = {"checkpoints", "evaluate", "samples", "confusion_matrix", "predictions", "wandb"}
SWEEP_FILE = "multirun.yaml"  # in the folder of a sweep
NOTES = "notes.json"  # in a run's folder: the note and the tags that were added after the training
LOCK = ".lock"  # in a run's folder; the process that trains the run has locked this file
SECONDS_FOR_READERS = 1.0  # a reader of a run locks LOCK for a moment to see whether it is free
ENDED = ("finished", "pruned")  # the statuses of a run that is not trained again
MOMENT = ("step", "epoch", "seconds")  # keys of every line of a history besides the metrics
BYTES_OF_THE_END = 2**16  # of a history: some hundred lines
MOST_BYTES_OF_A_RECORD, MOST_BYTES_OF_NOTES = 2**24, 2**20
LOWER_IS_BETTER = (
    *("loss", "perplexity", "bits_per_character", "last_position_loss", "mean_absolute_error", "calibration_error"),
)


def lower_is_better(metric: str) -> bool:
    """Return whether lower values of a metric, such as val/loss, are better."""
    return metric.rpartition("/")[2] in LOWER_IS_BETTER


def direction(optimized: Iterable[tuple[str | None, str | None]]) -> Callable[[str], bool]:
    """Return a function that returns whether lower values of a metric are better.

    optimized: `optimized_metric` and `optimized_mode` of some runs. Lower values are better of losses and similar
    metrics, and of those that all these runs minimize, in every split.
    """
    modes: dict[str, set[str]] = {}
    for metric, mode in optimized:
        if metric and mode in ("min", "max"):
            modes.setdefault(metric.rpartition("/")[2], set()).add(mode)

    def falls(metric: str) -> bool:
        return lower_is_better(metric) or modes.get(metric.rpartition("/")[2]) == {"min"}

    return falls


def is_of_sample(record: Mapping[str, Any]) -> bool:
    """Return whether the record of a run says that it was trained on generated data."""
    data = record.get("data")
    return isinstance(data, dict) and data.get("source") == "sample"


class InFolder:
    """The path of a file in the folder of a run, as an attribute of RunFolder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: "RunFolder", owner: type) -> Path:
        return run.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, with the paths of its files."""

    path: Path

    metrics_file = InFolder("metrics.json")
    history_file = InFolder("history.jsonl")
    config_file = InFolder("config.yaml")
    notes_file = InFolder(NOTES)
    overrides_file = InFolder(".hydra/overrides.yaml")
    vocabulary_file = InFolder("vocabulary.txt")
    known_documents_file = InFolder("training_documents.txt")
    wandb_id_file = InFolder("wandb_id.txt")  # W&B's id of this run, by which a resumed run is the same run there
    best_checkpoint = InFolder("checkpoints/best.ckpt")
    last_checkpoint = InFolder("checkpoints/last.ckpt")
    previous_checkpoint = InFolder("checkpoints/previous.ckpt")  # what was last.ckpt before the last write

    def checkpoints(self) -> list[Path]:
        """Return the existing checkpoints, complete or damaged."""
        named = (self.last_checkpoint, self.previous_checkpoint, self.best_checkpoint)
        return [path for path in named if path.is_file()]

    @property
    def kept_checkpoints(self) -> dict[int, Path]:
        """The checkpoints that `callbacks.checkpoint.keep_every` kept, by their steps, in order."""
        paths = sorted((self.path / "checkpoints").glob("step_*.ckpt"))
        steps = ((path.stem.removeprefix("step_"), path) for path in paths)
        return {int(step): path for step, path in steps if step.isdecimal()}

    def is_run(self) -> bool:
        """Return whether a training run has written a record here."""
        return self.metrics_file.is_file()

    def is_job(self) -> bool:
        """Return whether the run is a job of a sweep. Hydra's file of a sweep is next to the folders of its jobs."""
        return (self.path.parent / SWEEP_FILE).is_file()

    def read(self, *, may_be_later: bool = False) -> dict[str, Any]:
        """Return the content of metrics.json.

        Raises UserError if the file is missing, broken, too large, or of a version that this one does not read.

        may_be_later: whether the record of a later version is returned.
        """
        try:
            record = json.loads(regular(self.metrics_file, MOST_BYTES_OF_A_RECORD).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{self.path} is not a run folder: it has no metrics.json") from None
        except UserError:
            raise
        except (ValueError, RecursionError) as error:
            problem = f"{self.metrics_file} is cut short or broken ({error})"
            raise UserError(f"{problem}; the run must be trained again") from error
        if not isinstance(record, dict) or not isinstance(record.get("metrics") or {}, dict):
            raise UserError(f"{self.metrics_file} is broken (it is not an object with metrics); train the run again")
        versions = record.get("versions")
        if isinstance(versions, dict):  # a job that never began has none
            refuse_other(versions.get("firstlight"), self.metrics_file, may_be_later=may_be_later)
        return record

    def write(self, record: dict[str, Any]) -> None:
        """Replace metrics.json, completely or not at all."""
        write_atomically(self.metrics_file, json.dumps(record, indent=2, allow_nan=True) + "\n")

    def notes(self) -> dict[str, Any]:
        """Return the note and the tags that were added after the training; {} without any, or if they are damaged."""
        with suppress(FileNotFoundError, UserError, ValueError, RecursionError):
            match json.loads(regular(self.notes_file, MOST_BYTES_OF_NOTES).read_text(encoding="utf-8")):
                case {"note": str(text), "tags": [*tags]} if all(isinstance(tag, str) for tag in tags):
                    return {"note": text, "tags": tags}
        return {}

    def annotate(self, note: str, tags: Sequence[str]) -> None:
        """Write the note and the tags of the run, completely or not at all."""
        write_atomically(self.notes_file, json.dumps({"note": note, "tags": list(tags)}, indent=2) + "\n")

    @property
    def size(self) -> int:
        """The number of bytes of all files in the folder, without those that are removed at this moment."""
        size = 0
        for file in (Path(where, name) for where, _, names in os.walk(self.path) for name in names):
            with suppress(FileNotFoundError):
                size += file.lstat().st_size
        return size

    def is_empty(self) -> bool:
        """Return whether the folder has no files but those that Hydra writes before a run."""
        return {file.name for file in self.path.iterdir()} <= {".hydra", "train.log"}

    def remove_leftovers(self) -> None:
        """Delete the unfinished files of processes that were killed while they wrote them."""
        for unfinished in {*self.leftovers(), *leftovers(self.path)}:
            unfinished.unlink()
        folder = self.path / "checkpoints"
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    def leftovers(self) -> list[Path]:
        """Return the unfinished checkpoints of processes that were killed while they wrote them."""
        return list((self.path / "checkpoints").glob(".*.ckpt-*"))

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder for one training process. The lock ends with the process, however it ends."""
        return locked(self.path, "is training this run")

    def is_locked(self) -> bool:
        """Return whether a process is training this run."""
        return locks.is_taken(self.path / LOCK)

    def status_of(self, record: Mapping[str, Any]) -> str:
        """Return the status in a record of this run; interrupted if it says running, and no process trains the run."""
        status = str(record.get("status", "waiting"))
        return "interrupted" if status == "running" and not self.is_locked() else status


def read_history(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a history, without the last line if a killed run has left it incomplete.

    Raises UserError, with the number of the line, for a line that is not a JSON object with a step and seconds.
    """
    return parsed_history(path, regular(path).read_bytes()) if path.exists() else []


def last_lines(path: Path) -> list[dict[str, Any]]:
    """Return the last complete lines of a history; [] if it is missing or damaged. It may be written meanwhile."""
    with suppress(FileNotFoundError, UserError), regular(path).open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - BYTES_OF_THE_END))
        content = file.read()
        return parsed_history(path, content[content.find(b"\n") + 1 :] if file.tell() > len(content) else content)
    return []


def parsed_history(path: Path, content: bytes) -> list[dict[str, Any]]:
    """Return the complete lines of a history with this content, as `read_history` does."""
    lines = content.splitlines(keepends=True)
    return [_line(path, i, line) for i, line in enumerate(lines, 1) if line.endswith(b"\n") and line.strip()]


def _line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Return a line of a history as a dict."""
    remedy = "delete this line, or train the run again"
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}:{number} is broken ({error}); {remedy}") from error
    is_moment = isinstance(values, dict) and isinstance(values.get("step"), int)
    if not is_moment or not isinstance(values.get("seconds"), int | float):
        raise UserError(f"{path}:{number} has no step or no seconds; {remedy}")
    return values


@contextmanager
def locked(folder: Path, what_for: str) -> Iterator[None]:
    """Make a folder and lock it for one process.

    Raises UserError if another process has locked it. what_for: what that process does, for the message.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + SECONDS_FOR_READERS
    while (lock := locks.take(folder / LOCK)) is None:
        if time.monotonic() >= end:
            raise UserError(f"{folder}: another process {what_for}; wait for it, or stop it")
        time.sleep(0.01)
    try:
        yield
    finally:
        locks.release(lock)


def refuse_links(folder: Path, part: str = "", ended: Collection[str] = ()) -> None:
    """Raise UserError for a link in a run's folder, or in a part of it, that leads out of the folder.

    What is written there would go elsewhere, and another person may have made the link. ended: the names of folders in
    which nothing is written any more.
    """
    real, start = folder.resolve(), folder / part
    for path in (start, *_paths_below(start, ended)):
        if path.is_symlink() and path != folder and not path.resolve().is_relative_to(real):
            raise UserError(f"{path} is a link to {path.readlink()}, outside the run; replace it by what it names")


def _paths_below(folder: Path, ended: Collection[str]) -> Iterator[Path]:
    """Yield every path below a folder, except those in ended folders and in W&B's folders of earlier parts of a run.

    W&B links its own log into them, and nothing is written to them again.
    """
    for where, names, files in os.walk(folder):
        yield from (Path(where) / name for name in (*names, *files))
        if Path(where) == folder:
            names[:] = [name for name in names if name not in ended]
        if Path(where) in (folder / "wandb", folder / "figures" / "wandb"):
            names[:] = [name for name in names if not WANDB_PART.fullmatch(name)]


def as_typed(path: Path) -> Path:
    """Return a path as you would type it in the current folder."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def all_runs(log_dir: Path) -> list[RunFolder]:
    """Return every run below log_dir, single or in a sweep, the newest first."""
    found = []
    for run in map(RunFolder, run_folders(log_dir) if log_dir.is_dir() else ()):
        with suppress(FileNotFoundError):  # it has no record, or was removed meanwhile
            if (run.path / ".hydra").is_dir():  # which a baseline does not have
                found.append((run.metrics_file.stat().st_mtime, run))
    return [run for _, run in sorted(found, key=lambda pair: pair[0], reverse=True)]


def run_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders that contain a run, complete or not, or a baseline.

    Hidden folders are not searched, but may be runs themselves, unless they are being removed.
    """
    for where, names, files in os.walk(folder, onerror=lambda error: log.warning("ignored: %s", error)):
        is_run = "metrics.json" in files or ".hydra" in names
        if is_run:
            yield Path(where)
        has_parts = is_run or "checkpoints" in names  # those of a Trainer may be evaluated too
        hidden = {name for name in names if name.startswith(".") and not _is_hidden_run(Path(where, name))}
        names[:] = [name for name in names if name not in hidden and not (has_parts and name in PARTS_OF_A_RUN)]


def _is_hidden_run(path: Path) -> bool:
    return path.suffix != UNFINISHED and (path / "metrics.json").is_file()


def is_finite(value: Any) -> TypeGuard[float]:
    """Return whether a value of a record is a finite number, which can be compared."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def history_table(path: Path) -> "DataFrame":
    """Return the lines of a history as a DataFrame, as `Run.history` describes it. Raises UserError."""
    import pandas  # imported here because the import takes half a second

    lines = list(read_history(path))
    names = sorted({name for line in lines for name in line} - set(MOMENT))
    types = {"step": "int64", "epoch": "Int64", "seconds": "float64"} | dict.fromkeys(names, "float64")
    try:
        table = pandas.DataFrame(lines).reindex(columns=list(types))
        return table.groupby("step", as_index=False).last().astype(types)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{path} is damaged ({error}); train the run again") from error
