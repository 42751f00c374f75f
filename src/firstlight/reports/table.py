"""Runs in groups, ranked within each task by a validation metric. Nothing of files, nothing heavy."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from firstlight.reports.rows import KEYS, Run, Value, shown

SEED = "seed"
Direction = Callable[[str], bool]  # whether a metric should fall


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation; the deviation of one value is None."""

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class Group:
    """Runs that are equal in the keys of a group, the best first. rank: None where no run could be counted."""

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
        """The mean time of a fit."""
        known = [run.fit_seconds for run in self.counted if run.fit_seconds is not None]
        return fmean(known) if known else None

    @property
    def parameters(self) -> list[int]:
        """The numbers of weights that occur, in order."""
        return sorted({run.parameters for run in self.counted if run.parameters is not None})


@dataclass(frozen=True)
class Board:
    """What is ranked together: the runs of one task, those on generated data apart.

    metric: what ranks them; None where no run names one. keys: what tells groups apart; swept: all that differs.
    metrics: those of the runs that count: the ranking one, the others of validation, those of test.
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
        """Every run of the board, in the order of the ranking; those that do not count come last."""
        counted = [run for group in self.groups for run in group.counted]
        return counted + [run for group in self.groups for run in group.others]


def boards(
    runs: Sequence[Run], falls: Direction, metric: str | None = None, group_by: Sequence[str] | None = None
) -> list[Board]:
    """The runs of each task, grouped and ranked. Runs that have no task, being unreadable, are on no board.

    metric: what ranks every task; None: what the runs of a task were optimized for. group_by: the keys of a group;
    None: every key but the seed.
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
    """What most of the runs were optimized for, of those that count if there are any."""
    runs = list(runs)
    names = [run.optimized_metric for run in runs if run.is_counted] or [run.optimized_metric for run in runs]
    known = Counter(name for name in names if name is not None)
    return min(known, key=lambda name: (-known[name], name), default=None)


def swept_keys(runs: Sequence[Run]) -> list[str]:
    """The keys but the seed that differ between runs, in the order of a record, then by name.

    What a baseline has no value of, such as a dropout, does not differ.
    """
    found = dict.fromkeys(KEYS) | dict.fromkeys(sorted({key for run in runs for key in run.keys}))

    def values(key: str) -> set[str]:
        return {shown(run.keys.get(key)) for run in runs if not (run.is_baseline and run.keys.get(key) is None)}

    return [key for key in found if key != SEED and len(values(key)) > 1]


def reason(run: Run, metric: str | None) -> str:
    """Why a run is not counted in the ranking by a metric; "" if it is."""
    if not run.is_counted:
        return run.why or run.status
    if metric is None or metric not in run.metrics:
        return f"it has no {metric or 'metric to rank it by'}"
    return "" if math.isfinite(run.metrics[metric]) else f"{metric} is {run.metrics[metric]}"


def _is_on_sample(run: Run, runs: Sequence[Run]) -> bool:
    """Whether a run belongs to those on generated data; one that ended before its data was known joins the others."""
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
    """Mean and deviation of a metric; the runs that repeat one another, seed and all, weigh as one."""
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
    """A short name of a run on its board: what differs, and the seed."""
    name = short_name({key: run.keys.get(key) for key in (*board.swept, SEED)})
    return f"[generated sample] {name}" if run.is_sample else name


def short_name(keys: dict[str, Value]) -> str:
    """`tiny · dropout 0.1 · lr 0.001`: words by themselves, numbers with the last part of their key."""
    parts = []
    for key, value in keys.items():
        if value is not None:
            is_word = key in ("model", "experiment")
            parts.append(shown(value) if is_word else f"{key.rpartition('.')[2]} {shown(value)}")
    return " · ".join(parts) or "all runs"


def not_counted(found: Sequence[Board], runs: Sequence[Run]) -> Iterator[tuple[Run, str]]:
    """Every run that is in no mean, with the reason."""
    for board in found:
        for group in board.groups:
            yield from ((run, reason(run, board.metric)) for run in group.others)
    yield from ((run, run.why) for run in runs if run.task is None)
