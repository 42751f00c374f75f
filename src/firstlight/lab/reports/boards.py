"""Groups of runs, ranked within each task by a validation metric. Reads no files and imports no heavy library."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

from firstlight.lab.reports.verdicts import Verdict
from firstlight.runs.summary import KEYS, SEED, Run, Value, brief, grouped, shown

Direction = Callable[[str], bool]  # returns whether lower values of a metric are better


@dataclass(frozen=True)
class Spread:
    """Mean, sample standard deviation and half of the 95% t interval over seeds. Both are None for a single value."""

    mean: float
    deviation: float | None
    half_width: float | None = None


@dataclass(frozen=True)
class Group:
    """Runs with equal values of the group's keys, the best first. rank: None if no run is counted.

    differ: the keys besides the seed in which counted runs differ, because the user pools them by --group-by.
    """

    keys: dict[str, Value]
    counted: tuple[Run, ...]
    others: tuple[Run, ...]
    spreads: dict[str, Spread]
    seeds: int
    rank: int | None = None
    differ: tuple[str, ...] = ()

    @property
    def best(self) -> Run | None:
        return self.counted[0] if self.counted else None

    @property
    def parameters(self) -> list[int]:
        """The distinct numbers of parameters, in ascending order."""
        return sorted({run.parameters for run in self.counted if run.parameters is not None})


@dataclass(frozen=True)
class Board:
    """Ranking of the runs of one task that can be compared.

    Runs on generated data have a separate board. So have runs that see their target, and runs with another split, other
    data or a part of the data. note: what sets the runs of such a board apart; "" for the others.

    metric: the metric for the ranking; None if no run has an optimized metric. keys: the keys that define the groups.
    swept: all keys with different values among the counted runs. metrics: the metrics of the counted runs, in this
    order: the ranking metric, other validation metrics, test metrics.

    finding: the result in a sentence. reference: the place of the group with which the others are compared. verdicts:
    one for each group; None for the reference and for groups that are not compared.
    """

    task: str
    is_sample: bool
    note: str
    metric: str | None
    falls: bool
    keys: tuple[str, ...]
    swept: tuple[str, ...]
    groups: tuple[Group, ...]
    metrics: tuple[str, ...]
    finding: str = ""
    reference: int | None = None
    verdicts: tuple[Verdict | None, ...] = ()

    @property
    def name(self) -> str:
        notes = [note for note in ("GENERATED SAMPLE" if self.is_sample else "", self.note) if note]
        return f"{self.task} ({', '.join(notes)})" if notes else self.task

    def verdict(self, group: Group) -> Verdict | None:
        """Return the verdict on a group; None if it was not compared."""
        return self.verdicts[group.rank - 1] if self.verdicts and group.rank is not None else None

    @property
    def runs(self) -> list[Run]:
        """All runs of the board, the best first. Runs that are not counted are last."""
        counted = [run for group in self.groups for run in group.counted]
        counted.sort(key=lambda run: run.metrics[str(self.metric)], reverse=not self.falls)
        return counted + [run for group in self.groups for run in group.others]


def boards(
    runs: Sequence[Run], falls: Direction, metric: str | None = None, group_by: Sequence[str] | None = None
) -> list[Board]:
    """Return the boards of all tasks. Unreadable runs, which have no task, are not on a board.

    metric: the metric for the ranking; None: the optimized metric of the runs of each task. group_by: the keys that
    define the groups; None: all keys except the seed.
    """
    known = (run for run in runs if run.task is not None)
    of_tasks = grouped(known, lambda run: (str(run.task), _is_on_sample(run, runs)))
    together: dict[tuple[str, bool, str], list[Run]] = {}
    for (task, is_sample), members in of_tasks.items():
        for run, note in zip(members, notes_of(members, group_by or ()), strict=True):
            together.setdefault((task, is_sample, note), []).append(run)
    return [
        board_of(members, falls, metric or common_metric(members), group_by, note)
        for (_, _, note), members in sorted(together.items(), key=lambda each: each[0])
    ]


def _is_on_sample(run: Run, runs: Sequence[Run]) -> bool:
    """Return whether a run belongs to the runs on generated data. A run without known data joins the others."""
    known = [run] if run.source is not None else [each for each in runs if each.task == run.task and each.source]
    return bool(known) and all(each.is_sample for each in known)


def notes_of(runs: Sequence[Run], pooled: Sequence[str] = ()) -> Iterator[str]:
    """Yield for each run of a task what sets it apart from the others, or "" for the runs that can be compared.

    The others have the data and the split of most counted runs. A property that is not known is no difference. pooled:
    keys that the user names in --group-by, which set no run apart.
    """
    usual_data = _usual(runs, lambda run: run.fingerprint)
    same = [run for run in runs if run.fingerprint in (usual_data, None)]
    keys = sorted({key for run in same for key in run.split})
    usual = {key: _usual(same, lambda run: run.split.get(key)) for key in keys}  # noqa: B023  (called at once)
    usual_size = _usual(same, lambda run: run.sizes.get("validation"))
    largest = max((run.sizes.get("train", 0) for run in same), default=0)
    names = {run.fingerprint: Path(run.data_path).name for run in runs if run.fingerprint and run.data_path}
    for run in runs:
        found = {key: note for key, note in run.apart.items() if key not in pooled}
        size, training = run.sizes.get("validation"), run.sizes.get("train", largest)
        own = {"data.fold"} if run.split.get("data.folds") else set[str]()  # each fold is named
        unusual = own | {key for key, value in run.split.items() if value != usual.get(key, value)}
        others = [f"{key}={shown(value)}" for key, value in run.split.items() if key in unusual]
        if run.fingerprint not in (usual_data, None):
            name = names.get(run.fingerprint, "")
            is_alone = name and list(names.values()).count(name) == 1
            found["data"] = f"data {name if is_alone else f'{name} {run.fingerprint}'.lstrip()}"
        elif others or size not in (usual_size, None):
            found["split"] = ", ".join(sorted(others)) or f"{size:,} in validation"
        elif training < largest and not found and "data.max_train_rows" not in pooled:
            found["train"] = f"{training:,} in training"
        yield ", ".join(found.values())


def _usual(runs: Sequence[Run], value: Callable[[Run], Value]) -> Value:
    """Return the most frequent known value of the counted runs, or of all runs if none is counted."""
    known = [value(run) for run in runs if run.is_counted] or [value(run) for run in runs]
    counts = Counter(each for each in known if each is not None)
    return min(counts, key=lambda each: (-counts[each], shown(each)), default=None)


def common_metric(runs: Sequence[Run]) -> str | None:
    """Return the most frequent optimized metric of the counted runs, or of all runs if none is counted."""
    metric = _usual(runs, lambda run: run.optimized_metric)
    return None if metric is None else str(metric)


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


def board_of(
    runs: Sequence[Run], falls: Direction, metric: str | None, group_by: Sequence[str] | None = None, note: str = ""
) -> Board:
    """Return the ranking of some runs of one task, which can be compared."""
    different = swept_keys(runs)
    swept = swept_keys([run for run in runs if not reason(run, metric)] or runs)
    keys = [key for key in group_by if key != "task"] if group_by is not None else swept
    dividing = keys if group_by is not None else different
    members = grouped(runs, lambda run: run.values(dividing)).values()
    is_falling = metric is not None and falls(metric)
    groups = [_group(keys, dividing, group, metric, is_falling) for group in members]
    groups.sort(key=lambda group: _order(group, metric, is_falling))
    ranked = tuple(replace(group, rank=place if group.counted else None) for place, group in enumerate(groups, start=1))
    known = {name for group in ranked for run in group.counted for name in run.metrics}
    metrics = tuple(sorted(known, key=lambda name: (name != metric, not name.startswith("val/"), name)))
    task, is_sample = str(runs[0].task), any(run.is_sample for run in runs)
    return Board(task, is_sample, note, metric, is_falling, tuple(keys), tuple(swept), ranked, metrics)


def _group(
    keys: Sequence[str], dividing: Sequence[str], runs: list[Run], metric: str | None, is_falling: bool
) -> Group:
    """Return the group of some runs. dividing: the keys that name a group without a counted run."""
    counted = [run for run in runs if not reason(run, metric)]
    counted.sort(key=lambda run: run.metrics[str(metric)], reverse=not is_falling)
    names = sorted({name for run in counted for name in run.metrics})
    spreads = {name: spread for name in names if (spread := spread_of(counted, name))}
    seeds = len({shown(run.keys.get(SEED)) for run in counted})
    others = tuple(run for run in runs if reason(run, metric))
    named = keys if counted else dict.fromkeys([*keys, *dividing])
    values = {key: runs[0].keys.get(key) for key in named}
    return Group(values, tuple(counted), others, spreads, seeds, differ=tuple(swept_keys(counted)))


def spread_of(runs: Sequence[Run], metric: str) -> Spread | None:
    """Return mean, deviation and interval of the finite values of a metric over seeds.

    Runs with all keys equal, including the seed, count as one run.
    """
    finite = (run for run in runs if math.isfinite(run.metrics.get(metric, math.nan)))
    repeated = grouped(finite, lambda run: tuple(sorted((key, shown(each)) for key, each in run.keys.items())))
    values = [fmean(run.metrics[metric] for run in each) for each in repeated.values()]
    if len(values) < 2:
        return Spread(values[0], None) if values else None
    from firstlight.lab.reports.significance import mean_interval  # imports NumPy, which single runs do not require

    return Spread(fmean(values), stdev(values), mean_interval(values).half_width)


def _order(group: Group, metric: str | None, is_falling: bool) -> tuple[bool, float, list[str]]:
    label, spread = [shown(value) for value in group.keys.values()], group.spreads.get(metric or "")
    if spread is None:
        return True, 0.0, label
    return False, spread.mean if is_falling else -spread.mean, label


def label_of(run: Run, board: Board) -> str:
    """Return a short name of a run on its board, from the keys with different values and the seed."""
    name = short_name({key: run.keys.get(key) for key in (*board.swept, SEED)})
    return f"[generated sample] {name}" if run.is_sample else name


def short_name(keys: dict[str, Value]) -> str:
    """Return a name such as `tiny · dropout 0.1 · lr 0.001`: names as they are, numbers with the end of their key."""
    known = {key: value for key, value in keys.items() if value is not None}
    if known.get("method") == known.get("model"):  # a baseline has both
        known.pop("method", None)
    return " · ".join(named(*each) for each in known.items()) or "all runs"


def named(key: str, value: Value) -> str:
    """Return a value with its key, such as `dropout 0.1`; a size or an experiment without it, as `small`."""
    return shown(value) if key in ("model", "experiment") else f"{last_part(key)} {brief(value)}"


def last_part(key: str) -> str:
    """Return the last part of a key, such as `lr`; for a class or a function, that of its section, such as `model`."""
    return key.removesuffix("._target_").rpartition(".")[2]


def not_counted(found: Sequence[Board], runs: Sequence[Run]) -> Iterator[tuple[Run, str]]:
    """Yield each run that is not counted, with the reason."""
    for board in found:
        for group in board.groups:
            yield from ((run, reason(run, board.metric)) for run in group.others)
    yield from ((run, run.why) for run in runs if run.task is None)
