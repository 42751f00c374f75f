"""A list of runs on the terminal, the newest first."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import tyro

from firstlight.command_options import parse
from firstlight.commands.frame import run_module
from firstlight.errors import UserError
from firstlight.lab.reports.all_runs import existing_run_folders
from firstlight.runs.folder import RunFolder
from firstlight.runs.gather import read_run
from firstlight.runs.summary import Run, shown
from firstlight.terminal_text import note, say

MOST = 20  # runs without --all
HEADERS = ("when", "task", "model", "score", "status", "folder")
Row = tuple[str, ...]


@dataclass
class RunsOptions:
    """List runs and baselines, the newest first, with the metric that each was optimized for.

    Args:
        folder: The folder of the runs, such as logs, or the folder of one sweep.
        task: Only runs of this task, such as names.
        status: Only runs with this status. interrupted: also killed; pruned: stopped by the pruner of a search;
            incomplete: a file is damaged; unreadable: metrics.json is damaged, or a version before 0.3 wrote it; the
            report says which.
        all: List all runs instead of the newest 20.
    """

    folder: Annotated[Path, tyro.conf.Positional] = Path("logs")
    task: str | None = None
    status: Literal["finished", "running", "interrupted", "pruned", "failed", "incomplete", "unreadable"] | None = None
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
    """Return the folders of runs with the time at which each was written last. Raises UserError if there are none."""
    found = [(written_at(path), path) for path in existing_run_folders(folder)]
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def written_at(folder: Path) -> float:
    """Return the time at which a run's record was written last, as seconds since 1970; 0 if the run was removed."""
    for path in (RunFolder(folder).metrics_file, folder):
        with suppress(FileNotFoundError):
            return path.stat().st_mtime
    return 0


def matching(options: RunsOptions, folders: Sequence[tuple[float, Path]]) -> Iterator[Row]:
    """Yield the row of each run that the options choose."""
    for when, path in folders:
        run = read_run(RunFolder(path), str(path))
        if path.is_dir() and options.task in (None, run.task) and options.status in (None, run.status):
            yield row_of(run, when)


def row_of(run: Run, when: float) -> Row:
    """Return the cells of a run, in the order of the headers."""
    metric = run.optimized_metric
    value = run.metrics.get(metric) if metric else None
    score = "–" if value is None else f"{metric} {value:.4f}{' (sample)' if run.is_sample else ''}"
    model = shown(run.keys.get("model"))
    written = datetime.fromtimestamp(when).strftime("%Y-%m-%d %H:%M")
    return (written, shown(run.task), model, score, run.status, run.folder)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the list: the headers, then a line for each run."""
    table = [HEADERS, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADERS))]
    for row in table:
        yield "  ".join(cell.ljust(length) for cell, length in zip(row, widths, strict=True)).rstrip()


def refuse_task(options: RunsOptions, folders: Sequence[tuple[float, Path]]) -> None:
    """Raise UserError if no run belongs to the task of the options."""
    tasks = {read_run(RunFolder(path), str(path)).task for _, path in folders} - {None}
    if options.task is not None and options.task not in tasks:
        there_are = f"there are runs of {', '.join(sorted(map(str, tasks)))}" if tasks else "no run can be read"
        raise UserError(f"--task {options.task}: no run below {options.folder} has this task; {there_are}")


if __name__ == "__main__":
    run_module(__spec__.name)
