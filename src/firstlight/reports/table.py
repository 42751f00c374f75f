"""Groups of runs, ranked within each task by a validation metric. Reads no files and imports no heavy library."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from firstlight.reports.rows import KEYS, Run, Value, shown

SEED = "seed"
Direction = Callable[[str], bool]  # returns whether lower values of a metric are better


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation. The deviation of a single value is None."""

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class Group:
    """Runs with equal values of the group's keys, the best first. rank: None if no run is counted."""

    keys: dict[str, Value]
    counted: tuple[Run, ...]
    others: tuple[Run, ...]
    spreads: dict[str, Spread]
    seeds: int
    rank: int | None = None

    @property
    def best(self) -> Run | None:
        return self.counted[0] if self.counted else None

    @property
    def seconds(self) -> float | None:
        """The mean fit time in seconds."""
        known = [run.fit_seconds for run in self.counted if run.fit_seconds is not None]
        return fmean(known) if known else None

    @property
    def parameters(self) -> list[int]:
        """The distinct numbers of parameters, in ascending order."""
        return sorted({run.parameters for run in self.counted if run.parameters is not None})


@dataclass(frozen=True)
class Board:
    """Ranking of the runs of one task. Runs on generated data have a separate board.

    metric: the metric for the ranking; None if no run has an optimized metric. keys: the keys that define the groups.
    swept: all keys with different values. metrics: the metrics of the counted runs, in this order: the ranking metric,
    other validation metrics, test metrics.
    """

    task: str
    is_sample: bool
    metric: str | None
    falls: bool
    keys: tuple[str, ...]
    swept: tuple[str, ...]
    groups: tuple[Group, ...]
    metrics: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.task} (GENERATED SAMPLE)" if self.is_sample else self.task

    @property
    def runs(self) -> list[Run]:
        """All runs of the board in the order of the groups. Runs that are not counted are last."""
        counted = [run for group in self.groups for run in group.counted]
        return counted + [run for group in self.groups for run in group.others]


def boards(
    runs: Sequence[Run], falls: Direction, metric: str | None = None, group_by: Sequence[str] | None = None
) -> list[Board]:
    """Return the boards of all tasks. Unreadable runs, which have no task, are not on a board.

    metric: the metric for the ranking; None: the optimized metric of the runs of each task. group_by: the keys that
    define the groups; None: all keys except the seed.
    """
    together: dict[tuple[str, bool], list[Run]] = {}
    for run in runs:
        if run.task is not None:
            together.setdefault((run.task, _is_on_sample(run, runs)), []).append(run)
    return [
        _board(task, is_sample, members, falls, metric or common_metric(members), group_by)
        for (task, is_sample), members in sorted(together.items())
    ]


def common_metric(runs: Iterable[Run]) -> str | None:
    """Return the most frequent optimized metric of the counted runs, or of all runs if none is counted."""
    runs = list(runs)
    names = [run.optimized_metric for run in runs if run.is_counted] or [run.optimized_metric for run in runs]
    known = Counter(name for name in names if name is not None)
    return min(known, key=lambda name: (-known[name], name), default=None)


def swept_keys(runs: Sequence[Run]) -> list[str]:
    """Return the keys except the seed with different values, in the order of a record, then by name.

    A key without a value in a baseline, such as dropout, is not a difference.
    """
    found = dict.fromkeys(KEYS) | dict.fromkeys(sorted({key for run in runs for key in run.keys}))

    def values(key: str) -> set[str]:
        return {shown(run.keys.get(key)) for run in runs if not (run.is_baseline and run.keys.get(key) is None)}

    return [key for key in found if key != SEED and len(values(key)) > 1]


def reason(run: Run, metric: str | None) -> str:
    """Return the reason why a run is not counted in the ranking by a metric, or "" if it is counted."""
    if not run.is_counted:
        return run.why or run.status
    if metric is None or metric not in run.metrics:
        return f"it has no {metric or 'metric for the ranking'}"
    return "" if math.isfinite(run.metrics[metric]) else f"{metric} is {run.metrics[metric]}"


def _is_on_sample(run: Run, runs: Sequence[Run]) -> bool:
    """Return whether a run belongs to the runs on generated data. A run without known data joins the others."""
    if run.source is not None:
        return run.is_sample
    known = {other.is_sample for other in runs if other.task == run.task and other.source is not None}
    return known == {True}


def _board(
    task: str, is_sample: bool, runs: list[Run], falls: Direction, metric: str | None, group_by: Sequence[str] | None
) -> Board:
    swept = swept_keys(runs)
    keys = [key for key in group_by if key != "task"] if group_by is not None else swept
    members: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        members.setdefault(tuple(shown(run.keys.get(key)) for key in keys), []).append(run)
    is_falling = metric is not None and falls(metric)
    groups = [_group(keys, group, metric, is_falling) for group in members.values()]
    groups.sort(key=lambda group: _order(group, metric, is_falling))
    ranked = tuple(replace(group, rank=place if group.counted else None) for place, group in enumerate(groups, start=1))
    known = {name for group in ranked for run in group.counted for name in run.metrics}
    metrics = sorted(known, key=lambda name: (name != metric, not name.startswith("val/"), name))
    return Board(task, is_sample, metric, is_falling, tuple(keys), tuple(swept), ranked, tuple(metrics))


def _group(keys: Sequence[str], runs: list[Run], metric: str | None, is_falling: bool) -> Group:
    counted = [run for run in runs if not reason(run, metric)]
    if metric is not None:
        counted.sort(key=lambda run: run.metrics[metric], reverse=not is_falling)
    names = sorted({name for run in counted for name in run.metrics})
    spreads = {name: spread for name in names if (spread := spread_of(counted, name))}
    seeds = len({shown(run.keys.get(SEED)) for run in counted})
    others = tuple(run for run in runs if reason(run, metric))
    return Group({key: runs[0].keys.get(key) for key in keys}, tuple(counted), others, spreads, seeds)


def spread_of(runs: Sequence[Run], metric: str) -> Spread | None:
    """Return mean and deviation of a metric. Runs with all keys equal, including the seed, count as one run."""
    repeated: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for run in runs:
        value = run.metrics.get(metric)
        if value is not None and math.isfinite(value):
            repeated.setdefault(tuple(sorted((key, shown(each)) for key, each in run.keys.items())), []).append(value)
    values = [fmean(each) for each in repeated.values()]
    if not values:
        return None
    return Spread(fmean(values), stdev(values) if len(values) > 1 else None)


def _order(group: Group, metric: str | None, is_falling: bool) -> tuple[bool, float, list[str]]:
    label = [shown(value) for value in group.keys.values()]
    if metric is None or metric not in group.spreads:
        return True, 0.0, label
    mean = group.spreads[metric].mean
    return False, mean if is_falling else -mean, label


def label_of(run: Run, board: Board) -> str:
    """Return a short name of a run on its board, from the keys with different values and the seed."""
    name = short_name({key: run.keys.get(key) for key in (*board.swept, SEED)})
    return f"[generated sample] {name}" if run.is_sample else name


def short_name(keys: dict[str, Value]) -> str:
    """Return a name such as `tiny · dropout 0.1 · lr 0.001`: names as they are, numbers with the end of their key."""
    parts = []
    for key, value in keys.items():
        if value is not None:
            is_word = key in ("model", "experiment")
            parts.append(shown(value) if is_word else f"{key.rpartition('.')[2]} {shown(value)}")
    return " · ".join(parts) or "all runs"


def not_counted(found: Sequence[Board], runs: Sequence[Run]) -> Iterator[tuple[Run, str]]:
    """Yield each run that is not counted, with the reason."""
    for board in found:
        for group in board.groups:
            yield from ((run, reason(run, board.metric)) for run in group.others)
    yield from ((run, run.why) for run in runs if run.task is None)
