"""Why one run is better than another: their settings, results, curves, and the predictions that changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstlight.lab.reports.boards import Direction, common_metric, notes_of
from firstlight.lab.reports.changed_predictions import (
    A,
    B,
    classes_of_matrices,
    tables_of_classes,
    texts_of_tokens,
    why_of_classes,
    why_of_tokens,
)
from firstlight.lab.reports.tables import Table
from firstlight.lab.reports.text import duration
from firstlight.lab.reports.verdicts import LEVEL, by_seed, difference_text, over_texts
from firstlight.runs.gather import thinned
from firstlight.runs.summary import Run, Value, number, shown

if TYPE_CHECKING:
    from firstlight.runs.predictions import Predictions

MOST_STEPS = 8  # rows of the table of curves


@dataclass(frozen=True)
class Pair:
    """A comparison of two runs. sentences: what it shows, the most important first."""

    first: Run
    second: Run
    metric: str
    sentences: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


Settings = Mapping[str, Value]


def pair(
    runs: tuple[Run, Run],
    settings: tuple[Settings, Settings],
    predictions: "tuple[Predictions | None, Predictions | None]",
    classes: Sequence[str],
    falls: Direction,
    metric: str | None = None,
) -> Pair:
    """Return the comparison of two runs of one task, which have finished.

    settings: those that decide what each run computes. predictions: the saved predictions of each run. classes: the
    names of the classes of a classifier. metric: the metric that decides; None: the one that the runs were optimized
    for.
    """
    first, second = runs
    metric = metric or common_metric(runs) or next(iter(sorted(first.metrics.keys() & second.metrics.keys())), "")
    found = Pair(first, second, metric)
    found.sentences.extend(_apart(runs))
    found.sentences.extend(_result(runs, predictions, metric, is_falling=falls(metric)))
    found.tables.append(Table("Settings that differ", ("key", A, B), _settings(runs, settings)))
    found.tables.append(Table("Results", ("", A, B, f"{B} − {A}"), _results(first, second)))
    found.tables.append(Table(f"{metric} over steps", ("step", A, B), _curve(first, second, metric)))
    one, two = predictions
    if one is None or two is None or one.key != two.key:
        found.sentences.append(_why_unpaired(one, two))
        found.tables.append(classes_of_matrices(first, second))
    elif one.is_of_classes:
        found.sentences.append(why_of_classes(one, two, classes))
        found.tables.extend(tables_of_classes(one, two, classes))
    else:
        found.sentences.append(why_of_tokens(one, two))
        found.tables.append(texts_of_tokens(one, two))
    found.tables[:] = [table for table in found.tables if table.rows]
    return found


def _apart(runs: Sequence[Run]) -> list[str]:
    """Return why two runs cannot be ranked against each other."""
    notes = notes_of(runs)
    named = [f"{name}: {note}" for name, note in zip((A, B), notes, strict=True) if note]
    return [f"The numbers cannot be compared: {', '.join(named)}."] if notes[0] != notes[1] else []


def _result(
    runs: tuple[Run, Run],
    predictions: "tuple[Predictions | None, Predictions | None]",
    metric: str,
    *,
    is_falling: bool,
) -> list[str]:
    first, second = runs
    if metric not in first.metrics or metric not in second.metrics:
        return []
    value = second.metrics[metric] - first.metrics[metric]
    named = f"{number(second.metrics[metric])} against {number(first.metrics[metric])}"
    if value == 0:
        return [f"{A} and {B} have the same {metric}, {named}."]
    word = "better" if (value < 0) == is_falling else "worse"
    known = dict(zip((first.folder, second.folder), predictions, strict=True))
    difference = over_texts(by_seed([second]), by_seed([first]), metric, lambda run: known[run.folder])
    if difference is None:
        return [f"{B} is {word} than {A}: {metric} is {named}. Whether the texts show a difference cannot be tested."]
    size = difference_text(value, difference.estimate.half_width, metric)
    p = "p < 0.001" if difference.p < 0.001 else f"p = {difference.p:.2g}"
    is_shown = difference.p < LEVEL
    tested = "another split would probably show it too" if is_shown else "on another split the order may be reversed"
    return [
        f"{B} is {word} than {A} by {size}: {metric} is {named}; {tested} ({p}).",
        "Two runs cannot tell settings from seeds: train several seeds of each and compare the groups.",
    ]


def _settings(runs: tuple[Run, Run], settings: tuple[Settings, Settings]) -> list[list[str]]:
    first, second = ({**run.keys, **own} for run, own in zip(runs, settings, strict=True))
    keys = [key for key in dict.fromkeys([*first, *second]) if shown(first.get(key)) != shown(second.get(key))]
    rows = [[key, shown(first.get(key)), shown(second.get(key))] for key in keys]
    for name in ("source", "fingerprint"):
        values = [getattr(run, name) for run in runs]
        if values[0] != values[1]:
            rows.append([f"data {name}", *map(shown, values)])
    return rows


def _results(first: Run, second: Run) -> list[list[str]]:
    names = sorted(first.metrics.keys() | second.metrics.keys(), key=lambda name: (not name.startswith("val/"), name))
    numbers = [(name, first.metrics.get(name), second.metrics.get(name)) for name in names]
    numbers += [(name, getattr(first, name), getattr(second, name)) for name in ("parameters", "steps", "tokens")]
    rows = [
        [name, *("–" if value is None else number(value) for value in (one, two)), _change(one, two)]
        for name, one, two in numbers
        if one is not None or two is not None
    ]
    rows.append(["fit time", duration(first.fit_seconds), duration(second.fit_seconds), ""])
    return rows


def _change(one: float | None, two: float | None) -> str:
    if one is None or two is None or one == two:
        return ""
    return f"{'+' if two > one else '−'}{number(abs(two - one))}"


def _curve(first: Run, second: Run, metric: str) -> list[list[str]]:
    """Return a metric at some of the steps that a run has logged."""
    curves = [run.curves.get(metric) for run in (first, second)]
    by_step = [dict(zip(curve.steps, curve.values, strict=True)) if curve else {} for curve in curves]
    steps = sorted({step for each in by_step for step in each})
    return [
        [f"{step:,}", *(number(each[step]) if step in each else "" for each in by_step)]
        for step in thinned(steps, MOST_STEPS)
    ]


def _why_unpaired(one: "Predictions | None", two: "Predictions | None") -> str:
    if one is not None and two is not None:
        return f"{A} and {B} were validated on other texts or other tokens, so their predictions cannot be paired."
    missing = " and ".join(name for name, each in ((A, one), (B, two)) if each is None)
    verb = "have" if one is None and two is None else "has"
    version = "which runs of this version write"
    return f"{missing} {verb} no predictions/validation.npz, {version}; no prediction is compared."
