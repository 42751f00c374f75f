"""The progress of a sweep: a live table on a terminal, lines in a log, and the results at the end."""

import logging
import shlex
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import OmegaConf
from rich.console import ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from firstlight.config.checks import is_number
from firstlight.console import Console
from firstlight.errors import Interrupted
from firstlight.invocation import invocation
from firstlight.runs.folder import ENDED, SAMPLE_NOTE, is_of_sample, last_lines
from firstlight.runs.summary import grouped
from firstlight.sweeps.jobs import Job
from firstlight.sweeps.places import NOWHERE, Place, places_in
from firstlight.sweeps.screen import OUTPUT, live_table
from firstlight.terminal_text import say

log = logging.getLogger(__name__)

SECONDS_BETWEEN = 1.0  # between two reads of the folders
ORDER = ("running", "failed", "interrupted", "requeued", "finished", "pruned", "pending", "waiting")
STYLES = {"running": "bold", "failed": "red", "interrupted": "yellow", "finished": "green", "pruned": "dim"}
MOST_ROWS = 500  # of the table at the end, because a table of 10,000 takes five seconds
BORDERS = 4  # lines of a table besides its rows
BETWEEN_COLUMNS = 16  # characters of the five columns' borders and margins
NARROWEST_NAME = 12  # characters


class Row(NamedTuple):
    """A job at a moment. status: one of ORDER; record: the content of its metrics.json, {} before it has started."""

    status: str
    job: Job
    record: dict[str, Any]
    place: Place = NOWHERE

    @property
    def metric(self) -> float | None:
        """The optimized metric in the record; None before it is known."""
        value = (self.record.get("metrics") or {}).get(self.job.metric)
        return value if is_number(value) else None


@dataclass(eq=False)
class Progress:
    """Watches the folders of jobs while a launcher runs them, whichever launcher it is and wherever the jobs run.

    On a terminal a table stays at the bottom; elsewhere a line is logged whenever a job has ended.

    folder: of the sweep; jobs: may grow up to total meanwhile; errors: by the folder of a job, may grow too; plan: how
    many jobs run at a time; quiet: show nothing but failures.
    """

    folder: Path
    jobs: Collection[Job]
    total: int
    errors: Mapping[Path, str]
    plan: str = ""
    quiet: bool = False

    def __post_init__(self) -> None:
        """Read the records of the jobs."""
        self._ended: dict[Path, None] = {}  # the folders of finished and pruned jobs, in the order of their ends
        self._failed_before = {job.folder.path: job.record() for job in self.jobs if job.status == "failed"}
        self._left_before = self.counts(self.rows())["left"]
        self._left_in_log: int | None = None
        self._started_at = time.perf_counter()
        self._live: Live | None = None
        self._stop = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> "Progress":
        if self.quiet:
            return self
        say(f"{self.total} jobs in {self.folder}{f', {self.plan}' if self.plan else ''}", flush=True)
        if sys.stdout.isatty():
            table = live_table(lambda: self, per_second=1 / SECONDS_BETWEEN, other_output=self.folder / OUTPUT)
            self._live = self._stack.enter_context(table)
        else:
            self.say()
            thread = threading.Thread(target=self._say_until_stopped, daemon=True)
            thread.start()
            self._stack.callback(thread.join)
            self._stack.callback(self._stop.set)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        is_interrupted = isinstance(error, KeyboardInterrupt | Interrupted)
        if self._live is not None and is_interrupted:
            self._live.transient = False  # the table stays on the screen
        self._stack.close()
        if is_interrupted:
            finished = self.counts(self.rows())["finished"]
            say(f"Interrupted: {finished} of {self.total} jobs are finished. The same command continues the sweep.")
            raise error if isinstance(error, Interrupted) else Interrupted(signal.SIGINT)

    def say(self) -> None:
        """Log the progress of the sweep, unless a table shows it or no job has ended since the last line."""
        if self.quiet or self._live is not None:
            return
        rows = self.rows()
        left = self.counts(rows)["left"]
        if left != self._left_in_log:
            self._left_in_log = left
            log.info("%s", ", ".join(self.lines(rows)))

    def _say_until_stopped(self) -> None:
        while not self._stop.wait(SECONDS_BETWEEN):
            self.say()

    def rows(self) -> list[Row]:
        """Return a row for each job."""
        places = places_in(self.folder)
        return [self._row(job, places.get(job.folder.path.name, NOWHERE)) for job in list(self.jobs)]

    def _row(self, job: Job, place: Place) -> Row:
        path, record = job.folder.path, job.record()
        status = job.folder.status_of(record)
        if status in ENDED:
            self._ended.setdefault(path)
        if path in self.errors:
            status = "failed"
        elif status not in ORDER or record == self._failed_before.get(path):
            status = "waiting"  # it runs again
        return Row(place.status(status), job, record, place)

    def counts(self, rows: Sequence[Row]) -> Counter[str]:
        """Return the number of jobs by status, and as `left` the number of those that have neither ended nor failed."""
        counts = Counter(row.status for row in rows)
        counts["failed"] += len(self.errors.keys() - {row.job.folder.path for row in rows})  # these could not run
        counts["left"] = max(0, self.total - sum(counts[status] for status in (*ENDED, "failed")))
        return counts

    def lines(self, rows: Sequence[Row]) -> list[str]:
        """Return the number of jobs by status with the time that is left, then a line on the best job of each task."""
        counts = self.counts(rows)
        left, pruned = counts["left"], f"{counts['pruned']} pruned, " if counts["pruned"] else ""
        line = f"{self.total} jobs: {counts['finished']} finished, {pruned}{counts['failed']} failed, {left} to go"
        if left and left < self._left_before:
            seconds = (time.perf_counter() - self._started_at) / (self._left_before - left) * left
            line += f", about {shown_seconds(seconds)} left"
        return [line, *best_of(rows)]

    def most_relevant_first(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of jobs that run, that failed and that ended, the last of these first; then the others."""
        ended = {path: -number for number, path in enumerate(self._ended)}
        return sorted(rows, key=lambda row: (ORDER.index(row.status), ended.get(row.job.folder.path, 0)))

    def __rich_console__(self, console: Any, options: ConsoleOptions) -> RenderResult:
        """Yield the table, in which as many jobs are shown as the terminal has lines for, and the lines below it."""
        rows = shown = self.rows()
        below = self.lines(rows)[: max(1, console.height // 4)]
        room = console.height - BORDERS - len(below) - 1  # the line above the table remains on the screen
        if len(rows) > room:
            shown = self.most_relevant_first(rows)[: max(1, room - 1)]
            below = [f"and {len(rows) - len(shown)} more", *below]
        yield table_of(shown, console.width)
        yield from (Text(line, no_wrap=True, overflow="ellipsis") for line in below)

    def show_results(self) -> None:
        """Print the table of the jobs, the best of each task, and the command that compares them."""
        console, rows = Console(soft_wrap=True), self.rows()
        if self.quiet or not rows:
            return
        shown = rows if len(rows) <= MOST_ROWS else self.most_relevant_first(rows)[:MOST_ROWS]
        console.print(table_of(shown, console.width))
        if len(shown) < len(rows):
            console.print(f"and {len(rows) - len(shown):,} more")
        counts = self.lines(rows)[:1] if self._live is not None else []  # elsewhere the last line of the log has them
        for line in [*counts, *best_of(rows, with_means=True)]:
            console.print(line)
        if any(is_of_sample(row.record) for row in rows if row.status == "finished"):
            console.print(SAMPLE_NOTE, style="bold")
        console.print(f"To compare the jobs:\n  {invocation('report')} {shlex.quote(str(self.folder))}")


def table_of(rows: Sequence[Row], width: int) -> Table:
    """Return a table with a line for each job, at most width characters wide."""
    cells = [cells_of(row) for row in rows]
    metrics = ", ".join(sorted({row.job.metric for row in rows}))
    headers = ("job", "status", "step", metrics, "time")
    others = [max(len(line[column]) for line in [headers, *cells]) for column in range(1, len(headers))]
    room = max(NARROWEST_NAME, width - BETWEEN_COLUMNS - sum(others))
    table = Table()
    for name in headers:
        is_text = name in ("job", "status")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis")
    for name, status, *numbers in cells:
        table.add_row(shortened(name, room), Text(status, STYLES.get(status.partition(" ")[0], "")), *numbers)
    return table


def cells_of(row: Row) -> tuple[str, ...]:
    """Return the cells of a job, with values of its history while it runs."""
    metric = row.job.metric
    if row.record.get("status") in ENDED:
        step, value, seconds = row.record.get("steps"), row.metric, (row.record.get("seconds") or {}).get("fit")
    else:
        history = last_lines(row.job.folder.history_file)
        value = next((line[metric] for line in reversed(history) if metric in line), None)
        step, seconds = (history[-1]["step"], history[-1]["seconds"]) if history else (None, None)
    shown_step, shown_value = f"{step:,}" if is_number(step) else "", f"{value:.4f}" if is_number(value) else ""
    status = f"{row.status}  {row.place}".rstrip()
    return (row.job.name, status, shown_step, shown_value, shown_seconds(seconds))


def shortened(name: str, width: int) -> str:
    """Return a name of at most width characters, whose middle is left out where it is longer."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def best_of(rows: Sequence[Row], *, with_means: bool = False) -> list[str]:
    """Return a line on the best of the finished jobs of each task.

    with_means: also a line on the setting with the best mean over seeds, if several settings have several seeds.
    """
    finished = (row for row in rows if row.status == "finished" and row.metric is not None)
    lines = []
    for (_, metric), same in grouped(finished, lambda row: (row.record["task"], row.job.metric)).items():
        scored = [(value, row.job) for row in same if (value := row.metric) is not None]
        choose = min if scored[0][1].is_minimized else max
        value, job = choose(scored, key=lambda pair: pair[0])
        lines.append(f"best {metric} {value:.4f} ({job.name})")
        means = means_over_seeds(scored) if with_means else {}
        if len(means) > 1:
            setting = choose(means, key=lambda setting: means[setting].value)
            mean = means[setting]
            interval = f"{mean.value:.4f} ± {mean.half_width:.2g}"
            lines.append(f"best mean {metric} {interval} over {mean.count} seeds ({setting})")
    return lines


def means_over_seeds(scored: Sequence[tuple[float, Job]]) -> dict[str, Any]:
    """Return the mean of each setting with several seeds, with its interval."""
    from firstlight.lab.reports.significance import mean_interval  # imports SciPy, which the start does not require

    values: dict[str, list[float]] = {}
    for value, job in scored:
        setting = " ".join(each for each in job.varied if not each.startswith("seed="))
        if setting != job.name:
            values.setdefault(setting, []).append(value)
    return {setting: mean_interval(each) for setting, each in values.items() if len(each) > 1}


def shown_seconds(seconds: Any) -> str:
    """Return `7 s`, `12 min` or `3.5 h`; "" for a value that is not a number."""
    if not is_number(seconds):
        return ""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show_plan(jobs: Sequence[Job], plan: str = "") -> None:
    """Print every job of a sweep with the parameters of its network and its status, and run none.

    plan: how many jobs would run at a time.
    """
    table = Table("job")
    table.add_column("parameters", justify="right")
    table.add_column("status")
    for job, count in zip(jobs, parameter_counts(jobs), strict=True):
        table.add_row(job.name, f"{count:,}", {"waiting": "planned"}.get(job.status, job.status))
    at_a_time = f", {plan}" if plan else ""
    say(f"{len(jobs)} jobs in {jobs[0].folder.path.parent}{at_a_time}; dry_run=true runs none")
    Console().print(table)


def parameter_counts(jobs: Sequence[Job]) -> Iterator[int]:
    """Yield the number of weights of each job's network. The data is prepared once for all jobs that share it."""
    import torch
    from hydra.utils import instantiate

    from firstlight.lit.networks import build_network
    from firstlight.networks.layers import num_parameters

    sizes: dict[str, tuple[dict[str, int], int]] = {}
    for job in jobs:
        key = job.data_key
        if key not in sizes:
            data = instantiate(job.config.data, _convert_="object")
            data.ensure_setup()
            sizes[key] = data.network_sizes(), data.num_counted
        of_network, num_counted = sizes[key]
        with torch.device("meta"):
            network = build_network(OmegaConf.to_object(job.config.model), **of_network)
        yield num_parameters(network) + num_counted
