"""The removal of runs and of their checkpoints, except those that are still needed."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.filesize import decimal
from rich.prompt import Confirm

from firstlight.errors import UserError
from firstlight.files.atomic import UNFINISHED
from firstlight.lab.reports.listing import Condition, Listed, lines
from firstlight.runs.folder import RunFolder
from firstlight.runs.gather import run_of
from firstlight.terminal_text import note, say

ACTIVE = ("running", "pending", "requeued")
KEPT = {  # reasons, by the status that a condition must name to remove such runs
    "finished": "reports count it; add status=finished to remove it",
    "interrupted": "it can be resumed; add status=interrupted to remove it",
}


def remove(
    runs: Iterable[Listed], wanted: list[Condition], others: Iterable[Path], *, only_checkpoints: bool, is_certain: bool
) -> None:
    """Remove the runs that fulfill the conditions, after a question. Raises UserError if nobody can answer it.

    Runs that train, or from whose weights another run was trained, are kept. Finished and interrupted runs are kept
    unless a condition names their status.

    others: all runs that may need them. only_checkpoints: whether to remove only the spare checkpoints of finished
    runs. is_certain: whether to ask nothing.
    """
    named = {each.value for each in wanted if each.key == "status" and each.sign == "="}
    needed = {} if only_checkpoints else needed_by(others)
    found: dict[Path, list[Path]] = {}
    for each in runs:
        status, user = each.run.status, needed.get(place_of(each.path))
        if not each.fulfills(wanted) or (only_checkpoints and status != "finished"):
            continue
        if status in ACTIVE or RunFolder(each.path).is_locked():
            say(f"kept: {each.path}: a process trains it")
        elif only_checkpoints:
            found[each.path] = spare_checkpoints(RunFolder(each.path))
        elif user or (status in KEPT and status not in named):
            say(f"kept: {each.path}: {f'{user} was trained from its weights' if user else KEPT[status]}")
        else:
            found[each.path] = [each.path]
    sizes = {path: sum(map(_size, files)) for path, files in found.items() if files}
    if not sizes:
        say("nothing is removed")
        return
    what = "spare checkpoints" if only_checkpoints else "run"
    for line in lines([(what, decimal(size), str(path)) for path, size in sizes.items()]):
        say(line)
    total = decimal(sum(sizes.values()))
    if not is_certain and not sys.stdin.isatty():
        raise UserError(f"no terminal can answer whether to free {total}, so nothing is removed; add --yes")
    if is_certain or Confirm.ask(f"Remove this, and free {total}?", default=False):
        freed = sum(size for path, size in sizes.items() if _removed(path, found[path]))
        say(f"freed {decimal(freed)}")


def spare_checkpoints(run: RunFolder) -> list[Path]:
    """Return the checkpoints besides the best, or besides the last of a run without validation."""
    kept = run.best_checkpoint if run.best_checkpoint.is_file() else run.last_checkpoint
    return [path for path in (*run.checkpoints(), *run.kept_checkpoints.values()) if path != kept]


def place_of(path: Path | str) -> tuple[str, ...]:
    """Return the last parts of a path, by which a run is found although a folder above it was moved or renamed."""
    return Path(path).absolute().parts[-3:]


def needed_by(runs: Iterable[Path]) -> dict[tuple[str, ...], Path]:
    """Return for the place of each run that others name in init_from or as a teacher one of these others."""
    found: dict[tuple[str, ...], Path] = {}
    for path in runs:
        try:
            record = RunFolder(path).read(may_be_later=True)
            typed = run_of(str(path), record).keys.get("init_from")
        except UserError:
            continue  # a damaged run names no other
        teacher = record.get("teacher")
        names = [typed, record.get("init_from"), *((teacher.get("runs") or ()) if isinstance(teacher, dict) else ())]
        found |= {place_of(name): path for name in names if isinstance(name, str)}
    return found


def _size(path: Path) -> int:
    return RunFolder(path).size if path.is_dir() else path.stat().st_size


def _removed(run: Path, files: Sequence[Path]) -> bool:
    """Remove a run, or some files of it, and return whether they are removed: not if a process trains it now."""
    try:
        with RunFolder(run).locked():
            for file in files:
                if file.is_dir():  # a run that is not yet removed completely is hidden
                    shutil.rmtree(file.rename(file.with_name(f".{file.name}{UNFINISHED}")))
                else:
                    file.unlink()
    except UserError as error:
        note(str(error))
        return False
    return True
