"""All runs below a folder while they train: a table that is refreshed in place, or lines in a pipe or a file."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from rich.live import Live
from rich.text import Text

from firstlight.console import Console, is_watched
from firstlight.errors import UserError
from firstlight.lab.reports.listing import Condition, Listed, lines
from firstlight.lab.reports.tables import duration
from firstlight.runs.folder import RunFolder, last_lines, run_folders
from firstlight.runs.gather import read_run
from firstlight.runs.summary import Run, number
from firstlight.terminal_text import say

SECONDS_BETWEEN = 1.0  # between two looks at the files
LOOKS_BETWEEN_SEARCHES = 5  # for new runs
RECENT = 60.0  # the last seconds of a training, whose speed is shown
COLUMNS = ("status", "step", "metric", "speed", "to go", "run")
RUNNING = "running"


def watch(folder: Path, wanted: Sequence[Condition]) -> None:
    """Show the runs below a folder until Ctrl-C. Raises UserError if the folder does not exist."""
    if not folder.is_dir():
        raise UserError(f"{folder}: the folder does not exist; name the folder of your runs, such as logs")
    watched, console, shown = Watch(folder, wanted), Console(), dict[str, tuple[str, ...]]()
    with ExitStack() as stack:
        live = stack.enter_context(Live(console=console, auto_refresh=False)) if is_watched() else None
        while True:
            rows = watched.rows()
            if live is not None:
                live.update(table(rows, console.height), refresh=True)
            for row in rows if live is None else ():
                status, _, value, *_, name = row
                if shown.get(name) != (status, value):  # for a line in each second is too much
                    shown[name] = status, value
                    say("  ".join(row), flush=True)
            time.sleep(SECONDS_BETWEEN)


class Watch:
    """The runs below a folder. The files of a run are read again if they have changed, or while it trains."""

    def __init__(self, folder: Path, wanted: Sequence[Condition]) -> None:
        self.folder, self.wanted, self._looks = folder, wanted, 0
        self._known: dict[Path, tuple[list[int], Run, tuple[str, ...]]] = {}  # times of the files, the run, its cells

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the runs at this moment: of those that train, then of the others, the newest first."""
        if self._looks % LOOKS_BETWEEN_SEARCHES == 0:
            new = ([0], Run("", RUNNING), ())
            self._known = {path: self._known.get(path, new) for path in run_folders(self.folder)}
        self._looks += 1
        for path, (times, run, _) in self._known.items():
            files = (RunFolder(path).metrics_file, RunFolder(path).history_file, RunFolder(path).notes_file)
            with suppress(FileNotFoundError):  # the run is removed at this moment
                now = [file.stat().st_mtime_ns for file in files if file.exists()]
                if now != times or run.status == RUNNING:
                    run = read_run(RunFolder(path), str(path), most=0)
                    self._known[path] = now, run, cells_of(run)
        found = sorted(self._known.values(), key=lambda each: (each[1].status != RUNNING, -max(each[0], default=0)))
        return [cells for _, run, cells in found if Listed(run, Path(run.folder)).fulfills(self.wanted)]


def cells_of(run: Run) -> tuple[str, ...]:
    """Return the cells of a run, in the order of COLUMNS. While it trains, they are those of its history."""
    end = last_lines(RunFolder(Path(run.folder)).history_file)
    metric, steps, speed, to_go = run.optimized_metric or "", run.steps, None, None
    if run.status == RUNNING and end:
        last = end[-1]
        recent = [line for line in end if last["seconds"] - RECENT <= line["seconds"] < last["seconds"]]
        first = recent[0] if recent else {"step": -1, "seconds": 0.0}
        steps, speed = last["step"] + 1, (last["step"] - first["step"]) / max(last["seconds"] - first["seconds"], 1e-9)
        to_go = max(0, run.total_steps - steps) / speed if speed and run.total_steps else None
    value = run.metrics.get(metric, next((line[metric] for line in reversed(end) if metric in line), None))
    return (
        run.status,
        "–" if steps is None else f"{steps:,}" + (f" of {run.total_steps:,}" if run.total_steps else ""),
        "–" if value is None else f"{metric} {value:.4f}",
        f"{number(speed)} steps/s" if speed else "–",
        duration(to_go),
        run.folder,
    )


def table(rows: Sequence[tuple[str, ...]], height: int) -> Text:
    """Return as many rows as a terminal has lines for, and a line with the number of runs by status."""
    shown = rows[: max(1, height - 3)]
    counts = [f"{count} {status}" for status, count in Counter(row[0] for row in rows).items()]
    left = [f"{len(rows) - len(shown)} of them not shown"] if len(shown) < len(rows) else []
    below = ", ".join([*counts, *left]) or "no runs"
    return Text("\n".join([*lines([COLUMNS, *shown]), below]), no_wrap=True, overflow="ellipsis")
