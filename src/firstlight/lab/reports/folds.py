"""Cross-validation: the test predictions of all folds, joined to one for each text, and paired tests with them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from firstlight.lab.reports import significance
from firstlight.lab.reports.all_runs import FOLDS, SEEDS, SavedPredictions, has_folds
from firstlight.lab.reports.boards import Board, common_metric, short_name, swept_keys
from firstlight.lab.reports.tables import Column, Section, Table
from firstlight.lab.reports.verdicts import LEVEL, MOST_BLOCKS, SHARES, Load, by_unit, holm, over_texts
from firstlight.runs.predictions import COUNTS, Predictions
from firstlight.runs.summary import SAMPLE_MARK, SEED, Run, grouped, shown

NUMBER, FOLD = FOLDS[:2]  # of the folds, and which of them is the test split
MOST_SETTINGS = 12  # of a task that are compared
MOST_GROUPS = 20  # of rows, of which the accuracy is shown
OF_GROUPS = "Validation accuracy of each group, ± half of its 95% interval over the texts."
REMEDY = "train with test=true, or run `evaluate RUN --split test` for a classifier"
EXPLANATION = (
    "Each text is predicted by models that were not trained on it, and its result is the mean over the seeds. ± is "
    "half of a 95% interval. p over texts is that of a bootstrap within the folds, and t over folds is the corrected "
    "resampled t test of Nadeau and Bengio (2003). Better and worse mean that both are significant (5%, Holm)."
)
OF_DIFFERENCES = (
    *(Column("setting", is_left=True), Column("it is", is_left=True), Column("than", is_left=True)),
    *("difference", "p over texts", "t over folds", "p over folds"),
)


class NotPooledError(Exception):
    """The runs of a setting are no complete cross-validation. The message says why."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """The results of a setting on all folds.

    runs: by seed and fold. key: what decides the texts of each fold. of_folds: (folds,) the test metric of each fold,
    the mean over the seeds. estimate: of the metric. joined: the predictions of all folds by the folder of the first
    run of a seed; {} if some are not saved. strata: (units,) the number of the fold of each unit.
    """

    name: str
    runs: list[list[Run]]
    key: str
    of_folds: list[float]
    estimate: significance.Estimate
    joined: dict[str, Predictions]
    strata: NDArray[np.int64]


def cross_validation(
    runs: Sequence[Run], load: Load, falls: Callable[[str], bool], metric: str | None = None
) -> Section:
    """Return the section of a report on the folds of each task.

    load: returns the saved test predictions of a run, or None. metric: in place of the optimized one of each task.
    """
    of_folds = (run for run in runs if run.is_counted and run.split.get(NUMBER))
    tasks = grouped(of_folds, lambda run: f"{run.task} ({SAMPLE_MARK})" if run.is_sample else str(run.task))
    sentences, tables = [EXPLANATION], []
    for task, members in tasks.items():
        name = "test/" + (metric or common_metric(members) or "val/loss").rpartition("/")[2]
        found, problems = _settings(members, load, name)
        found.sort(key=lambda each: each.estimate.value, reverse=not falls(name))
        pairs = list(combinations(found[:MOST_SETTINGS], 2))
        problems += [f"{one.name} and {two.name} have other folds" for one, two in pairs if one.key != two.key]
        sentences += [f"{task}: {problem}." for problem in problems]
        tables.append(Table(task, ("setting", "texts", "folds", "seeds", name), [_row(each, name) for each in found]))
        rows = _differences([(one, two) for one, two in pairs if one.key == two.key], name, falls=falls(name))
        tables.append(Table(f"{task}: paired differences", OF_DIFFERENCES, list(rows)))
        named = [(each.name, list(each.joined.values())) for each in found]
        tables.append(_of_groups(f"{task}: test accuracy of each group", named))
    return Section("Cross-validation", sentences, [table for table in tables if table.rows])


def _settings(runs: Sequence[Run], load: Load, metric: str) -> tuple[list[Pooled], list[str]]:
    """Return the pooled settings of the runs of a task, and what is wrong with others."""
    keys = [key for key in swept_keys(runs) if key not in (FOLD, *SEEDS)]
    found, problems = [], list[str]()
    for group in grouped(runs, lambda run: (run.fingerprint, *run.values(keys))).values():
        name = short_name({key: group[0].keys.get(key) for key in dict.fromkeys(("model", *keys))})
        try:
            found.append(_pooled(name, group, load, metric, problems))
        except NotPooledError as error:
            problems.append(f"{name} is not pooled: {error}")
    return found, problems


def _pooled(name: str, runs: Sequence[Run], load: Load, metric: str, problems: list[str]) -> Pooled:
    """Return the results of the runs of one setting. problems: gets sentences on what is not used."""
    folds: list[dict[str, Run]] = [{} for _ in range(int(str(runs[0].split[NUMBER])))]
    for run in runs:
        same, seed = folds[int(str(run.split[FOLD]))], shown(run.keys.get(SEED))
        if seed in same:
            problems.append(f"{run.folder} replaces {same[seed].folder}, which has the same fold and seed")
        same[seed] = run
    if missing := [str(fold) for fold, found in enumerate(folds) if not found]:
        raise NotPooledError(f"these of its {len(folds)} folds are not finished: {', '.join(missing)}")
    seeds = [seed for seed in folds[0] if all(seed in found for found in folds)]
    if others := sorted({*chain(*folds)} - {*seeds}):
        problems.append(f"{name}: without all folds and not used: seed {', '.join(others)}")
    if not seeds:
        raise NotPooledError("no seed has all folds")
    chosen = [[found[seed] for found in folds] for seed in seeds]
    parts = [[each for run in row if (each := load(run)) is not None] for row in chosen]
    is_saved = all(len(each) == len(folds) for each in parts)
    if not is_saved or metric.endswith("bits_per_character") or parts[0][0].values(metric) is None:
        if lacking := [run.folder for run in chain(*chosen) if metric not in run.metrics]:
            raise NotPooledError(f"{lacking[0]} has no {metric} and no saved predictions of the test; {REMEDY}")
        why = f"{metric} is no mean of the texts" if is_saved else f"not all test predictions are saved; {REMEDY}"
        problems.append(f"{name}: the texts are not compared, because {why}")
        means = np.mean([[run.metrics[metric] for run in row] for row in chosen], axis=0).tolist()
        key = str([(run.fingerprint, run.sizes.get("test"), *map(run.split.get, FOLDS)) for run in chosen[0]])
        return Pooled(name, chosen, key, means, significance.mean_interval(means), {}, np.zeros(0, np.int64))
    strata = np.repeat(np.arange(len(folds)), [len(part.rows) for part in parts[0]])
    joined = {row[0].folder: _joined(each, strata) for row, each in zip(chosen, parts, strict=True)}
    first = next(iter(joined.values()))
    if any(each.key != first.key for each in joined.values()):
        raise NotPooledError("the seeds have other texts in the same fold")
    mean = np.mean([each.values(metric) for each in joined.values()], axis=0)  # type: ignore[arg-type]
    block, tokens = -(-len(strata) // MOST_BLOCKS), first.tokens
    estimate = significance.paired_bootstrap(mean, np.zeros_like(mean), tokens, block=block, strata=strata).estimate
    of_folds = np.bincount(strata, mean * tokens) / np.bincount(strata, tokens)
    if metric.endswith("/perplexity"):
        estimate, of_folds = estimate.mapped(math.exp), np.exp(of_folds)
    return Pooled(name, chosen, first.key, of_folds.tolist(), estimate, joined, strata)


def _joined(parts: Sequence[Predictions], strata: NDArray[np.int64]) -> Predictions:
    """Return the predictions of all folds as one. Raises NotPooledError if a text is in several folds.

    The texts of a classifier are independent, and those of a fold are shuffled, so that a block of the bootstrap is no
    neighborhood. A text that is not divided into rows has pieces that are counted from 0 in every fold.
    """
    names = [name for name in (*COUNTS, "losses", "groups") if getattr(parts[0], name) is not None]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    has_rows = parts[0].is_of_classes or any(part.rows[-1] >= len(part.rows) for part in parts)
    if has_rows and (twice := len(strata) - len(np.unique(arrays["rows"]))):
        raise NotPooledError(f"{twice:,} texts are in several folds")
    if parts[0].is_of_classes:
        order = np.lexsort((np.random.default_rng(0).permutation(len(strata)), strata))
        arrays = {name: array[order] for name, array in arrays.items()}
    return Predictions(key=" ".join(part.key for part in parts), **arrays)


def _row(pooled: Pooled, metric: str) -> list[str]:
    """Return the row of a setting in the table of results."""
    texts = f"{len(pooled.strata):,}" if pooled.joined else "–"
    seeds = "–" if pooled.runs[0][0].is_baseline else str(len(pooled.runs))
    return [pooled.name, texts, str(len(pooled.of_folds)), seeds, _size(pooled.estimate, metric)]


def _differences(pairs: Sequence[tuple[Pooled, Pooled]], metric: str, *, falls: bool) -> Iterator[list[str]]:
    """Yield the rows of the table of differences. Their p-values, the larger of both tests, are corrected together."""
    tests = []
    for one, two in pairs:
        first, second = (by_unit([row[0] for row in each.runs]) for each in (one, two))
        joined, sizes = one.joined | two.joined, one.runs[0][0].sizes
        texts = over_texts(first, second, metric, lambda run: joined.get(run.folder), strata=one.strata)  # noqa: B023
        share = sizes["test"] / sizes["train"] if {"test", "train"} <= {*sizes} else 1 / (len(one.of_folds) - 1)
        tests.append((texts, significance.corrected_folds(one.of_folds, two.of_folds, share)))
    corrected = holm([max(texts.p if texts else 0, folds.p) for texts, folds in tests])
    for (one, two), (texts, folds), p in zip(pairs, tests, corrected, strict=True):
        estimate = (texts or folds).estimate
        word = "undecided" if p >= LEVEL else "better" if (estimate.value < 0) == falls else "worse"
        t = folds.estimate.value / folds.standard_error if folds.standard_error else math.inf
        p_values = [f"{texts.p:.2g}" if texts else "–", f"{t:.2f}", f"{folds.p:.2g}"]
        yield [one.name, word, two.name, _size(estimate, metric, "+"), *p_values]


def groups_section(boards: Sequence[Board], folder: Path) -> Section:
    """Return the section on the validation accuracy of each group of `data.group_column`, by predictions in a folder.

    It has no tables if no run has groups. Cross-validations are left out.
    """
    load = SavedPredictions(folder)  # a report says which files are missing where it compares the runs
    tables = []
    for each in boards:
        if not has_folds(each.runs):
            settings = [(short_name(one.keys), [*map(load, one.counted)]) for one in each.groups[:MOST_SETTINGS]]
            tables.append(_of_groups(each.name, settings))
    return Section("Groups of data.group_column", [OF_GROUPS], [table for table in tables if table.rows])


def _of_groups(title: str, settings: Sequence[tuple[str, Sequence[Predictions | None]]]) -> Table:
    """Return the table with a row for each group, and a column for each setting whose predictions have groups."""
    named: list[tuple[str, dict[str, list[float]]]] = []
    for name, seeds in settings:
        if seeds and (first := seeds[0]) is not None and (names := first.groups) is not None:
            hits = np.mean([each.correct for each in seeds if each is not None and each.key == first.key], axis=0)
            named.append((name, {group: hits[names == group].tolist() for group in np.unique(names).tolist()}))
    rows = []
    for group in list(dict.fromkeys(group for _, found in named for group in found))[:MOST_GROUPS]:
        own = [found.get(group, []) for _, found in named]
        cells = [_size(significance.mean_interval(each), "accuracy") if len(each) > 1 else "–" for each in own]
        rows.append([group, f"{max(map(len, own)):,}", *cells])
    return Table(title, ("group", "texts", *(name for name, _ in named)), rows)


def _size(estimate: significance.Estimate, metric: str, sign: str = "") -> str:
    """Return a metric with half of its interval, such as `79.25 ± 0.74%`. sign: that of a difference."""
    if metric.rpartition("/")[2] in SHARES:
        unit = " points" if sign else "%"
        return f"{100 * estimate.value:{sign}.2f} ± {100 * estimate.half_width:.2f}{unit}"
    return f"{estimate.value:{sign}.4g} ± {estimate.half_width:.2g}"
