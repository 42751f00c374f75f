"""How far a sweep is: a live table on a terminal, lines in a log, and the results at the end."""

import logging
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Group
from rich.live import Live
from rich.table import Table

from firstlight.console import Console
from firstlight.runs.folder import lower_is_better, read_history
from firstlight.runs.identity import plain
from firstlight.sweeps.jobs import Job, status_of

log = logging.getLogger(__name__)

SECONDS_BETWEEN = 1.0  # two looks at the folders
LINES_AROUND_THE_TABLE = 8  # of a terminal, left to what the jobs say
ORDER = ("running", "failed", "interrupted", "finished", "waiting")


class Progress:
    """Watches the folders of jobs while a launcher runs them, whichever it is and wherever they run.

    On a terminal it keeps a table at the bottom; elsewhere it writes a line whenever a job has ended.
    """

    def __init__(self, jobs: Sequence[Job], total: int, errors: Mapping[Path, str]) -> None:
        """jobs: may grow up to total while it watches, as errors may (by the job's folder)."""
        self.jobs, self.total, self.errors = jobs, total, errors
        self._records: dict[Path, dict[str, Any]] = {}
        finished = [job for job, record in self.records() if status_of(record) == "finished"]
        self._ended_before = len(finished) + len(errors)
        self._before = {job.folder.path: record for job, record in self.records() if status_of(record) != "finished"}
        self._started_at = time.perf_counter()
        self._said = ""
        self._stop = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> "Progress":
        self.say()
        if sys.stdout.isatty():
            options: dict[str, Any] = {"refresh_per_second": 1 / SECONDS_BETWEEN, "transient": True}
            # A console of its own: Lightning's bar and summary clear what the shared one shows.
            self._stack.enter_context(Live(console=Console(), get_renderable=self.table, **options))
        else:
            thread = threading.Thread(target=self._say_until_stopped, daemon=True)
            thread.start()
            self._stack.callback(thread.join)
            self._stack.callback(self._stop.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def say(self) -> None:
        """A line on how far the sweep has come, unless it says what the last one said."""
        counts = self.summary(with_time=False)
        if counts != self._said:
            self._said = counts
            log.info("%s", self.summary())

    def _say_until_stopped(self) -> None:
        while not self._stop.wait(SECONDS_BETWEEN):
            self.say()

    def records(self) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Every job with its record; what is finished is not read again."""
        for job in list(self.jobs):
            path = job.folder.path
            if status_of(self._records.get(path, {})) != "finished":
                self._records[path] = job.record()
            yield job, self._records[path]

    def status(self, job: Job, record: dict[str, Any]) -> str:
        """What a job does now: one that says it runs, as it did before this sweep began, was killed."""
        if job.folder.path in self.errors:
            return "failed"
        return "interrupted" if status_of(record) == "running" and self._is_old(job, record) else status_of(record)

    def _is_old(self, job: Job, record: dict[str, Any]) -> bool:
        """Whether a record is as it was when this sweep began."""
        return record == self._before.get(job.folder.path)

    def _has_failed(self, job: Job, record: dict[str, Any]) -> bool:
        """Whether a job failed in this sweep; those of a launcher that runs many at once say so in their folders."""
        return status_of(record) == "failed" and not self._is_old(job, record)

    def summary(self, *, with_time: bool = True) -> str:
        """How far a sweep has come, what is best so far, and how long the rest may take."""
        records = list(self.records())
        done = [(job, record) for job, record in records if status_of(record) == "finished"]
        failed = len({*self.errors, *(job.folder.path for job, record in records if self._has_failed(job, record))})
        left = max(0, self.total - len(done) - failed)
        parts = [f"{self.total} jobs: {len(done)} finished", f"{failed} failed", f"{left} to go"]
        parts += best_of(done)
        ended = len(done) + failed - self._ended_before
        if with_time and left and ended > 0:
            seconds = (time.perf_counter() - self._started_at) / ended * left
            parts.append(f"about {shown_seconds(seconds)} left")
        return ", ".join(parts)

    def table(self) -> Group:
        """The summary, then the jobs that run, those that failed, and as many others as the terminal has lines for."""
        rows = [(self.status(job, record), job, record) for job, record in self.records()]
        rows.sort(key=lambda row: ORDER.index(row[0]) if row[0] in ORDER else len(ORDER))
        room = max(3, Console().height - LINES_AROUND_THE_TABLE)
        table = Table()
        for name in ("job", "status"):
            table.add_column(name, no_wrap=True, overflow="ellipsis")
        for name in ("step", metric_name(self.jobs), "seconds"):
            table.add_column(name, justify="right", no_wrap=True)
        for status, job, record in rows[:room]:
            step, value, seconds = now_of(job, record)
            shown = "" if value is None else f"{value:.4f}"
            table.add_row(job.name, status, "" if step is None else f"{step:,}", shown, shown_seconds(seconds))
        more = [f"and {len(rows) - room} more"] if len(rows) > room else []
        return Group(self.summary(), table, *more)


def metric_name(jobs: Sequence[Job]) -> str:
    """The metric that the jobs are compared by."""
    names = {str(job.config.optimized_metric) for job in list(jobs)}
    return names.pop() if len(names) == 1 else "optimized metric"


def metric_of(job: Job, record: dict[str, Any]) -> float | None:
    """The optimized metric in the record of a job; None where there is none yet."""
    value = (record.get("metrics") or {}).get(job.config.optimized_metric)
    return None if value is None else float(value)


def best_of(done: Sequence[tuple[Job, dict[str, Any]]]) -> list[str]:
    """The best job of each task among those that are finished, as far as they have the metric that they are for."""
    scored: dict[tuple[str, str], list[tuple[float, Job]]] = {}
    for job, record in done:
        value = metric_of(job, record)
        if value is not None:
            scored.setdefault((record["task"], job.config.optimized_metric), []).append((value, job))
    best = []
    for (_, metric), pairs in scored.items():
        choose = min if is_minimized(pairs[0][1].config) else max
        value, job = choose(pairs, key=lambda pair: pair[0])
        best.append(f"best {metric} {value:.4f} ({job.name})")
    return best


def is_minimized(config: DictConfig) -> bool:
    """Whether the optimized metric should fall, by optimized_mode or else by its name."""
    mode = config.optimized_mode
    return lower_is_better(config.optimized_metric) if mode == "auto" else bool(mode == "min")


def now_of(job: Job, record: dict[str, Any]) -> tuple[int | None, float | None, float | None]:
    """The step of a job, its latest metric and its seconds, as far as they are known."""
    if status_of(record) == "finished":
        return record.get("steps"), metric_of(job, record), (record.get("seconds") or {}).get("fit")
    history = read_history(job.folder.history_file)
    metric = job.config.optimized_metric
    value = next((line[metric] for line in reversed(history) if metric in line), None)
    last = history[-1] if history else {}
    return last.get("step"), value, last.get("seconds")


def shown_seconds(seconds: float | None) -> str:
    """`7 s`, `12 min` or `3.5 h`."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show_plan(jobs: Sequence[Job]) -> None:
    """What a sweep would do: every job, its parameters, and whether it is done already."""
    table = Table(title=f"{len(jobs)} jobs in {jobs[0].folder.path.parent}; dry_run=true runs none")
    table.add_column("job")
    table.add_column("parameters", justify="right")
    table.add_column("status")
    for job, count in zip(jobs, parameter_counts(jobs), strict=True):
        is_killed = job.status == "running" and not job.folder.is_locked()
        table.add_row(job.name, f"{count:,}", "interrupted" if is_killed else job.status)
    Console().print(table)


def parameter_counts(jobs: Sequence[Job]) -> Iterator[int]:
    """The weights of each job's network; its data is prepared for that, once for all that share it."""
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


def show_results(jobs: Sequence[Job], errors: Mapping[Path, str]) -> None:
    """Every job with its metric, or why it has none."""
    if not jobs:
        return
    table = Table(title=f"{jobs[0].folder.path.parent}")
    table.add_column("job")
    table.add_column("status")
    table.add_column(metric_name(jobs), justify="right")
    table.add_column("seconds", justify="right")
    for job in jobs:
        record = job.record()
        value = metric_of(job, record)
        status = "failed" if job.folder.path in errors else status_of(record)
        seconds = (record.get("seconds") or {}).get("fit")
        shown = errors.get(job.folder.path, "" if value is None else f"{value:.4f}")
        table.add_row(job.name, status, shown, "" if seconds is None else f"{seconds:.0f}")
    Console().print(table)
