"""A list of runs on the terminal, the newest first."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from socket import gethostname
from typing import Annotated, Literal

import tyro

from firstlight.command_options import parse
from firstlight.errors import UserError
from firstlight.lab.reports.all_runs import existing_run_folders
from firstlight.runs.folder import RunFolder
from firstlight.runs.gather import read_run
from firstlight.runs.summary import Run, shown
from firstlight.sweeps.places import NOWHERE, STATES, Place, places_in
from firstlight.terminal_text import note, say

MOST = 20  # runs without --all
HEADERS = ("when", "task", "model", "score", "status", "where", "folder")
WHERE = HEADERS.index("where")  # a column that is left out if no job is on Slurm or on another computer
Row = tuple[str, ...]
Status = Literal[
    "finished", "running", "interrupted", "pending", "requeued", "pruned", "failed", "incomplete", "unreadable"
]


@dataclass
class RunsOptions:
    """List runs and baselines, the newest first, with the metric that each was optimized for.

    A job on Slurm is shown with its task and its nodes, and one on another computer with its name.

    Args:
        folder: The folder of the runs, such as logs, or the folder of one sweep.
        task: Only runs of this task, such as names.
        status: Only runs with this status. interrupted: also killed; pending and requeued: waiting for Slurm; pruned:
            stopped by the pruner of a search; incomplete: a file is damaged; unreadable: metrics.json is damaged, or a
            version before 0.3 wrote it; the report says which.
        all: List all runs instead of the newest 20.
    """

    folder: Annotated[Path, tyro.conf.Positional] = Path("logs")
    task: str | None = None
    status: Status | None = None
    all: bool = False


def main() -> None:
    """Parse the command line and print the list."""
    options = parse(RunsOptions, "runs")
    folders = newest_first(options.folder)
    found = matching(options, folders)
    rows = list(islice(found, None if options.all else MOST))
    if not rows:
        refuse_task(options, folders)
        say(f"no run below {options.folder} has status={options.status}")
        return
    for line in lines(rows):
        say(line)
    if next(found, None) is not None:
        note(f"these are the newest {len(rows)} runs; --all lists all")


def newest_first(folder: Path) -> list[tuple[float, Path]]:
    """Return the folders of runs with the time at which each was written last. Raises UserError if there are none.

    The folders of jobs that wait for Slurm are among them, which do not exist yet.
    """
    files = [file for depth in ("", "*/", "sweeps/*/") for file in folder.glob(f"{depth}{STATES}")]
    pending = [(file.stat().st_mtime, file.parents[1] / name) for file in files for name in places_in(file.parents[1])]
    waiting = [
        (when, path) for when, path in pending if not path.exists() and place_of(path).status("waiting") != "waiting"
    ]
    try:
        existing = existing_run_folders(folder)
    except UserError:
        if not waiting:
            raise
        existing = []
    found = waiting + [(written_at(path), path) for path in existing]
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def written_at(folder: Path) -> float:
    """Return the time at which a run's record was written last, as seconds since 1970; 0 if the run was removed."""
    for path in (RunFolder(folder).metrics_file, folder):
        with suppress(FileNotFoundError):
            return path.stat().st_mtime
    return 0


_places = cache(places_in)


def place_of(folder: Path) -> Place:
    """Return where Slurm has the job of a folder."""
    return _places(folder.parent).get(folder.name, NOWHERE)


def matching(options: RunsOptions, folders: Sequence[tuple[float, Path]]) -> Iterator[Row]:
    """Yield the row of each run that the options choose."""
    for when, path in folders:
        place, is_there = place_of(path), path.is_dir()
        run = read_run(RunFolder(path), str(path)) if is_there else Run(str(path), "waiting")
        run = replace(run, status=place.status(run.status))
        is_shown = is_there or run.status == "pending"
        if is_shown and options.task in (None, run.task) and options.status in (None, run.status):
            yield row_of(run, when, place)


def row_of(run: Run, when: float, place: Place = NOWHERE) -> Row:
    """Return the cells of a run, in the order of the headers."""
    metric = run.optimized_metric
    value = run.metrics.get(metric) if metric else None
    score = "–" if value is None else f"{metric} {value:.4f}{' (sample)' if run.is_sample else ''}"
    model = shown(run.keys.get("model"))
    written = datetime.fromtimestamp(when).strftime("%Y-%m-%d %H:%M")
    where = str(place) or (run.host if run.host and run.host != gethostname() else "")
    return (written, shown(run.task), model, score, run.status, where, run.folder)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the list: the headers, then a line for each run."""
    has_places = any(row[WHERE] for row in rows)
    table = [row if has_places else (*row[:WHERE], *row[WHERE + 1 :]) for row in (HEADERS, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        yield "  ".join(cell.ljust(length) for cell, length in zip(row, widths, strict=True)).rstrip()


def refuse_task(options: RunsOptions, folders: Sequence[tuple[float, Path]]) -> None:
    """Raise UserError if no run belongs to the task of the options."""
    tasks = {read_run(RunFolder(path), str(path)).task for _, path in folders} - {None}
    if options.task is not None and options.task not in tasks:
        there_are = f"there are runs of {', '.join(sorted(map(str, tasks)))}" if tasks else "no run can be read"
        raise UserError(f"--task {options.task}: no run below {options.folder} has this task; {there_are}")
