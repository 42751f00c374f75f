"""The progress of a sweep: a live table on a terminal, lines in a log, and the results at the end."""

import logging
import shlex
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from firstlight.console import Console
from firstlight.errors import Interrupted
from firstlight.invocation import invocation
from firstlight.runs.folder import SAMPLE_NOTE, is_of_sample, lower_is_better, read_history
from firstlight.runs.identity import plain
from firstlight.sweeps.jobs import ENDED, Job, status_of
from firstlight.sweeps.launchers import OUTPUT
from firstlight.sweeps.screen import LAUNCHERS, live_table, silenced
from firstlight.terminal_text import say

log = logging.getLogger(__name__)

SECONDS_BETWEEN = 1.0  # between two reads of the folders
ORDER = ("running", "failed", "interrupted", "finished", "pruned", "waiting")
STYLES = {"running": "bold", "failed": "red", "interrupted": "yellow", "finished": "green", "pruned": "dim"}
BORDERS = 4  # lines of a table besides its rows
BETWEEN_COLUMNS = 16  # characters of the five columns' borders and margins
NARROWEST_NAME, LAST_FINISHED = 12, 3
LATEST_OF_WANDB = "wandb/latest-run"  # a link in the folder of a job

Record = tuple[Job, dict[str, Any]]  # a job and its record
Row = tuple[str, Job, dict[str, Any]]  # a job, its status now and its record


class Progress:
    """Watches the folders of jobs while a launcher runs them, whichever launcher it is and wherever the jobs run.

    On a terminal a table stays at the bottom; elsewhere a line is logged whenever a job has ended.
    """

    def __init__(
        self,
        folder: Path,
        jobs: Sequence[Job],
        total: int,
        errors: Mapping[Path, str],
        *,
        plan: str = "",
        quiet: bool = False,
    ) -> None:
        """Read the records of the jobs.

        folder: of the sweep; jobs: may grow up to total meanwhile; errors: by the folder of a job, may grow too; plan:
        how many jobs run at a time; quiet: show nothing but failures.
        """
        self.plan = plan
        self.folder, self.jobs, self.total, self.errors, self.quiet = folder, jobs, total, errors, quiet
        self._records: dict[Path, dict[str, Any]] = {}
        self._ended: dict[Path, None] = {}  # finished and pruned, in this order
        records = list(self.records())
        self._ended_before = len(self._ended) + len(errors)
        self._before = {job.folder.path: record for job, record in records if status_of(record) not in ENDED}
        self._started_at = time.perf_counter()
        self._said = ""
        self._live: Live | None = None
        self._is_interrupted = False
        self._stop = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> "Progress":
        self._stack.enter_context(silenced(LAUNCHERS))
        if self.quiet:
            return self
        done = f" ({', '.join(ended_text(self._counts(self.records())))})" if self._ended else ""
        say(f"{self.total} jobs{done} in {self.folder}{f', {self.plan}' if self.plan else ''}", flush=True)
        if sys.stdout.isatty():
            self._live = self._stack.enter_context(
                live_table(lambda: self, per_second=1 / SECONDS_BETWEEN, other_output=self.folder / OUTPUT)
            )
        else:
            self.say()
            thread = threading.Thread(target=self._say_until_stopped, daemon=True)
            thread.start()
            self._stack.callback(thread.join)
            self._stack.callback(self._stop.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_interrupted = isinstance(error, KeyboardInterrupt | Interrupted)
        if self._live is not None and self._is_interrupted:
            self._live.transient = False  # the table stays on the screen
        self._stack.close()
        if self._is_interrupted:
            counts = self._counts(self.records())
            pruned = f", {counts['pruned']} were pruned" if counts["pruned"] else ""
            say(
                f"Interrupted: {counts['finished']} of {self.total} jobs are finished{pruned}. "
                "The same command continues the sweep."
            )
            raise error if isinstance(error, Interrupted) else Interrupted(signal.SIGINT)

    def say(self) -> None:
        """Log the progress of the sweep, unless a table shows it or it has not changed since the last line."""
        if self.quiet or self._live is not None:
            return
        records = list(self.records())
        counts = self.summary(records, with_time=False)
        if counts != self._said:
            self._said = counts
            log.info("%s", self.summary(records))

    def _say_until_stopped(self) -> None:
        while not self._stop.wait(SECONDS_BETWEEN):
            self.say()

    def records(self) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Yield every job with its record. The record of a job that has ended is read once."""
        for job in list(self.jobs):
            path = job.folder.path
            if path not in self._ended:
                self._records[path] = job.record()
                if status_of(self._records[path]) in ENDED:
                    self._ended[path] = None
            yield job, self._records[path]

    @staticmethod
    def _counts(records: Iterable[Record]) -> Counter[str]:
        return Counter(status_of(record) for _, record in records)

    def status(self, job: Job, record: dict[str, Any]) -> str:
        """Return the status of a job now."""
        return "failed" if job.folder.path in self.errors else job.folder.status_of(record)

    def _has_failed(self, job: Job, record: dict[str, Any]) -> bool:
        """Return whether a job failed in this sweep, also where its launcher has not returned yet."""
        return status_of(record) == "failed" and record != self._before.get(job.folder.path)

    def summary(
        self, records: Sequence[Record] | None = None, *, with_time: bool = True, with_best: bool = True
    ) -> str:
        """Return the number of jobs by status, the best jobs so far, and an estimate of the time that is left.

        records: what `records` yielded; None: they are read.
        """
        records = list(self.records()) if records is None else records
        done = [(job, record) for job, record in records if status_of(record) == "finished"]
        failed = len({*self.errors, *(job.folder.path for job, record in records if self._has_failed(job, record))})
        counts = self._counts(records)
        left = max(0, self.total - sum(counts[status] for status in ENDED) - failed)
        parts = [f"{self.total} jobs: {', '.join(ended_text(counts))}", f"{failed} failed", f"{left} to go"]
        parts += best_of(done) if with_best else []
        ended = self.total - left - self._ended_before
        if with_time and left and ended > 0 and not self._is_interrupted:
            seconds = (time.perf_counter() - self._started_at) / ended * left
            parts.append(f"about {shown_seconds(seconds)} left")
        return ", ".join(parts)

    def rows(self) -> list[Row]:
        """Return a row for each job, in the order of the jobs."""
        return [(self.status(job, record), job, record) for job, record in self.records()]

    def chosen(self, rows: Sequence[Row], room: int) -> list[Row]:
        """Return as many rows as there is room for: jobs that run or failed, the last that ended, then others."""
        ended = {path: -number for number, path in enumerate(self._ended)}
        rows = sorted(rows, key=lambda row: (_place(row[0]), ended.get(row[1].folder.path, 0)))
        first = [row for row in rows if _place(row[0]) < _place("finished")]
        others = rows[len(first) :]
        first = first[: room - min(LAST_FINISHED, room // 2, len(self._ended))]
        return [*first, *others[: room - len(first)]]

    def __rich_console__(self, console: Any, options: ConsoleOptions) -> RenderResult:
        """Yield the table, in which as many jobs are shown as the terminal has lines for, and the lines below it."""
        rows = self.rows()
        best = best_of([row[1:] for row in rows if row[0] == "finished"])
        below = [self.summary([row[1:] for row in rows], with_best=False), *best][: max(1, console.height // 4)]
        room = console.height - BORDERS - len(below) - 1  # the line above the table remains on the screen
        if len(rows) > room:
            shown = self.chosen(rows, max(1, room - 1))
            below = [rest_of(rows, shown), *below]
        else:
            shown = rows
        yield table_of(shown, metric_name(self.jobs), console.width)
        yield from (Text(line, no_wrap=True, overflow="ellipsis") for line in below)

    def show_results(self, *, with_best: bool = True) -> None:
        """Print the table of all jobs, the best of each task, and the command that compares them."""
        if self.quiet or not self.jobs:
            return
        console = Console()
        rows = self.rows()
        console.print(table_of(rows, metric_name(self.jobs), console.width))
        done = [row[1:] for row in rows if row[0] == "finished"]
        lines = [*best_of(done), *best_means(done)] if with_best else best_means(done)
        if self._live is not None:  # elsewhere the last line of the log has it
            lines.insert(0, self.summary([row[1:] for row in rows], with_best=False))
        for line in lines:
            console.print(line, soft_wrap=True)
        if any(is_of_sample(record) for _, record in done):
            console.print(SAMPLE_NOTE, style="bold", soft_wrap=True)
        console.print(f"To compare the jobs:\n  {invocation('report')} {shlex.quote(str(self.folder))}", soft_wrap=True)
        upload = upload_command(self.folder)
        if upload is not None:
            console.print(f"To upload the jobs to W&B, which were kept offline:\n  {upload}", soft_wrap=True)


def upload_command(folder: Path) -> str | None:
    """Return the command that uploads the newest W&B folder of each job; None if no job was kept offline."""
    newest = (link.resolve() for link in folder.glob(f"*/{LATEST_OF_WANDB}"))
    if not any(path.name.startswith("offline-run-") for path in newest):
        return None
    return f"wandb sync {shlex.quote(str(folder))}/*/{LATEST_OF_WANDB}"


def _place(status: str) -> int:
    return ORDER.index(status) if status in ORDER else len(ORDER)


def ended_text(counts: Counter[str]) -> list[str]:
    """Return how many jobs are finished, and how many were pruned if there are any."""
    return [f"{counts[status]} {status}" for status in ENDED if counts[status] or status == "finished"]


def rest_of(rows: Sequence[Row], shown: Sequence[Row]) -> str:
    """Return how many jobs of which status are not shown: `and 7 more: 2 finished, 5 waiting`."""
    left = Counter(status for status, _, _ in rows) - Counter(status for status, _, _ in shown)
    counts = (f"{left[status]} {status}" for status in sorted(left, key=_place))
    return f"and {left.total()} more: {', '.join(counts)}"


def table_of(rows: Sequence[Row], metric: str, width: int) -> Table:
    """Return a table with a line for each job, at most width characters wide."""
    cells = [cells_of(status, job, record, with_metric=not metric) for status, job, record in rows]
    headers = ("job", "status", "step", metric or "metric", "time")
    others = [max(len(line[column]) for line in [headers, *cells]) for column in range(1, len(headers))]
    room = max(NARROWEST_NAME, width - BETWEEN_COLUMNS - sum(others))
    table = Table()
    for name in headers:
        is_text = name in ("job", "status")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis")
    for name, status, *numbers in cells:
        table.add_row(shortened(name, room), Text(status, STYLES.get(status, "")), *numbers)
    return table


def cells_of(status: str, job: Job, record: dict[str, Any], *, with_metric: bool) -> tuple[str, ...]:
    """Return the cells of a job. with_metric: write the name of its metric before the value."""
    step, value, seconds = now_of(job, record)
    shown = "" if value is None else f"{value:.4f}"
    if shown and with_metric:
        shown = f"{job.config.optimized_metric} {shown}"
    return (job.name, status, "" if step is None else f"{step:,}", shown, shown_seconds(seconds))


def shortened(name: str, width: int) -> str:
    """Return a name of at most width characters, whose middle is left out where it is longer."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def metric_name(jobs: Sequence[Job]) -> str:
    """Return the metric that the jobs are compared by; "" where they have several."""
    names = {str(job.config.optimized_metric) for job in list(jobs)}
    return names.pop() if len(names) == 1 else ""


def metric_of(job: Job, record: dict[str, Any]) -> float | None:
    """Return the optimized metric in the record of a job; None before it is known."""
    value = (record.get("metrics") or {}).get(job.config.optimized_metric)
    return None if value is None else float(value)


Done = Sequence[tuple[Job, dict[str, Any]]]


def scored_by_task(done: Done) -> Iterator[tuple[str, Callable[..., Any], list[tuple[float, Job]]]]:
    """Yield the metric of each task, `min` or `max`, and the values with their jobs."""
    found: dict[tuple[str, str], list[tuple[float, Job]]] = {}
    for job, record in done:
        if (value := metric_of(job, record)) is not None:
            found.setdefault((record["task"], job.config.optimized_metric), []).append((value, job))
    for (_, metric), scored in found.items():
        yield metric, min if is_minimized(scored[0][1].config) else max, scored


def best_of(done: Done) -> list[str]:
    """Return a line on the best of the finished jobs of each task."""
    lines = []
    for metric, choose, scored in scored_by_task(done):
        value, job = choose(scored, key=lambda pair: pair[0])
        lines.append(f"best {metric} {value:.4f} ({job.name})")
    return lines


def best_means(done: Done) -> list[str]:
    """Return a line on the setting of each task with the best mean over seeds, if several have several seeds."""
    from firstlight.lab.reports.significance import mean_interval  # imports SciPy, which the start does not require

    lines = []
    for metric, choose, scored in scored_by_task(done):
        values: dict[str, list[float]] = {}
        for value, job in scored:
            setting = " ".join(each for each in job.varied if not each.startswith("seed="))
            if setting != job.name:
                values.setdefault(setting, []).append(value)
        means = {setting: mean_interval(each) for setting, each in values.items() if len(each) > 1}
        if len(means) > 1:
            setting = choose(means, key=lambda setting: means[setting].value)
            mean = means[setting]
            interval = f"{mean.value:.4f} ± {mean.half_width:.2g}"
            lines.append(f"best mean {metric} {interval} over {mean.count} seeds ({setting})")
    return lines


def is_minimized(config: DictConfig) -> bool:
    """Return whether the optimized metric should fall, by optimized_mode or else by its name."""
    mode = config.optimized_mode
    return lower_is_better(config.optimized_metric) if mode == "auto" else bool(mode == "min")


def now_of(job: Job, record: dict[str, Any]) -> tuple[int | None, float | None, float | None]:
    """Return the current step, the latest metric and the seconds of a job. Each is None while it is unknown."""
    if status_of(record) in ENDED:
        return record.get("steps"), metric_of(job, record), (record.get("seconds") or {}).get("fit")
    history = read_history(job.folder.history_file)
    metric = job.config.optimized_metric
    value = next((line[metric] for line in reversed(history) if metric in line), None)
    last = history[-1] if history else {}
    return last.get("step"), value, last.get("seconds")


def shown_seconds(seconds: float | None) -> str:
    """Return `7 s`, `12 min` or `3.5 h`."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show_plan(jobs: Sequence[Job], plan: str = "") -> None:
    """Print every job of a sweep with the parameters of its network and its status, and run none.

    plan: how many jobs would run at a time.
    """
    table = Table()
    table.add_column("job")
    table.add_column("parameters", justify="right")
    table.add_column("status")
    for job, count in zip(jobs, parameter_counts(jobs), strict=True):
        table.add_row(job.name, f"{count:,}", {"waiting": "planned"}.get(job.status, job.status))
    console = Console()
    at_a_time = f", {plan}" if plan else ""
    console.print(
        f"{len(jobs)} jobs in {jobs[0].folder.path.parent}{at_a_time}; dry_run=true runs none", soft_wrap=True
    )
    console.print(table)


def parameter_counts(jobs: Sequence[Job]) -> Iterator[int]:
    """Yield the number of weights of each job's network. The data is prepared once for all jobs that share it."""
    import torch
    from hydra.utils import instantiate

    from firstlight.lit.networks import build_network
    from firstlight.networks.size import num_parameters

    sizes: dict[str, tuple[dict[str, int], int]] = {}
    for job in jobs:
        key = str(plain(job.config)["data"] | {"seed": None})
        if key not in sizes:
            data = instantiate(job.config.data, _convert_="object")
            data.prepare_data()
            data.setup("fit")
            sizes[key] = data.network_sizes(), data.num_counted
        of_network, num_counted = sizes[key]
        with torch.device("meta"):
            network = build_network(OmegaConf.to_object(job.config.model), **of_network)
        yield num_parameters(network) + num_counted
