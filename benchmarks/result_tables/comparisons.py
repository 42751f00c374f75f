"""Intervals of a line, and paired tests of two lines, from their records."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from firstlight.lab.reports.significance import Difference, Estimate, mcnemar, paired_bootstrap
from firstlight.lab.reports.verdicts import holm
from result_tables.plan import PAIRS, SHARES, Column
from result_tables.records import correct_of
from result_tables.runs import Record

LEVEL = 0.05
DRAWS = 2000  # of a bootstrap
OF_LOSSES = ("loss", "perplexity", "bits_per_character")


@dataclass(frozen=True)
class Verdict:
    """How much better the first of two lines is. p: corrected for the number of tests in a table, if `corrected`."""

    benefit: Estimate
    unit: str
    p: float

    @property
    def word(self) -> str:
        """Better, worse or undecided, at the level 5%."""
        if self.p >= LEVEL:
            return "undecided"
        return "better" if self.benefit.value > 0 else "worse"


def value_of(record: Record, column: Column) -> float | None:
    """Return the metric of a column, or None if the record does not have it."""
    evaluation = record["evaluations"].get(column.evaluation, {})
    if column.metric == PAIRS and evaluation:
        return float(_hits(evaluation["units"], column).mean())
    value: float | None = evaluation.get("metrics", {}).get(column.metric)
    return value


def interval(records: Sequence[Record], column: Column) -> Estimate:
    """Return the mean over the runs of a line with the 95% interval of the split: how it may differ on other texts.

    It is Wilson's interval of an accuracy; otherwise a bootstrap over blocks of the text.
    """
    units = [_units(record, column) for record in records]
    if column.metric in SHARES:
        shares = _mean([_hits(each, column) for each in units])
        found = binomtest(round(float(shares.sum())), len(shares))
        limits = found.proportion_ci(method="wilson")
        return Estimate(found.statistic, float(limits.low), float(limits.high), len(shares))
    if column.metric in OF_LOSSES:
        losses = _losses(units)
        mean = _bootstrap(losses, np.zeros_like(losses), units[0]).estimate
        if column.metric == "perplexity":
            return mean.mapped(math.exp)
        return _scaled(mean, _per_nat(records[0], column))
    scores = _drawn_bleu([each[column.metric] for each in units])
    return _estimate(scores[0], scores[1:], len(units[0][column.metric]))


def compare(first: Sequence[Record], second: Sequence[Record], column: Column) -> Verdict:
    """Return how much better the first line is than the second, on the same texts.

    The benefit has the 95% interval of a bootstrap over the texts or blocks, with the mean over the seeds of each
    line. The p-value combines one test for each pair of runs (`combined`): McNemar's exact test for accuracies,
    otherwise a paired bootstrap. Runs with the same seed are a pair; a line with a single run is paired with each run
    of the other.
    """
    one, two = ([_units(record, column) for record in records] for records in (first, second))
    p = combined([_p_of(one[i], two[j], column) for i, j in paired_places(first, second)])
    if column.metric in SHARES:
        left, right = (_mean([_hits(each, column) for each in units]) for units in (one, two))
        found = paired_bootstrap(left, right, draws=DRAWS)
        return Verdict(_scaled(found.estimate, 100), "points", p)
    if column.metric in OF_LOSSES:
        estimate = _bootstrap(_losses(one), _losses(two), one[0]).estimate
        if column.metric != "perplexity":
            unit = "nats" if column.metric == "loss" else "bits"
            return Verdict(_scaled(estimate, -_per_nat(first[0], column)), unit, p)
        return Verdict(estimate.mapped(lambda nats: 100 * (1 - math.exp(nats))), "%", p)
    scores = _drawn_bleu([each[column.metric] for each in one]) - _drawn_bleu([each[column.metric] for each in two])
    return Verdict(_estimate(scores[0], scores[1:], len(one[0][column.metric])), "BLEU", p)


def are_on_same_texts(first: Sequence[Record], second: Sequence[Record], column: Column) -> bool:
    """Return whether two lines were evaluated on the same texts, so that they can be compared text by text."""
    return len({_units(record, column)["key"] for record in (*first, *second)}) == 1


def corrected(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return verdicts whose p-values are corrected for the number of tests in a table by Holm's method."""
    found = holm([verdict.p for verdict in verdicts])
    return [replace(verdict, p=p) for verdict, p in zip(verdicts, found, strict=True)]


def paired_places(first: Sequence[Record], second: Sequence[Record]) -> list[tuple[int, int]]:
    """Return the pairs of runs to test: those of equal seeds, or all pairs if one line has a single run."""
    every = list(product(range(len(first)), range(len(second))))
    same = [(i, j) for i, j in every if first[i]["seed"] == second[j]["seed"]]
    return every if len(first) == 1 or len(second) == 1 or not same else same


def bleu_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the BLEU, from 0 to 100, of sums of counts: (…, 10) -> (…). Their order is that of a record.

    It is that of sacrebleu for a corpus in which n-grams of each length match (Papineni et al. 2002).
    """
    matches, totals, length, reference = counts[..., :4], counts[..., 4:8], counts[..., 8], counts[..., 9]
    with np.errstate(divide="ignore"):
        precision = np.log(matches / totals).mean(axis=-1)
    return 100 * np.exp(np.minimum(0, 1 - reference / length) + precision)


def _units(record: Record, column: Column) -> Record:
    units: Record = record["evaluations"][column.evaluation]["units"]
    return units


def _hits(units: Record, column: Column) -> NDArray[np.bool_]:
    """Return whether each text, or each pair of consecutive texts, was classified correctly."""
    correct = correct_of(units)
    return correct[::2] & correct[1::2] if column.metric == PAIRS else correct


def _same(units: Sequence[Record]) -> None:
    keys = {each["key"] for each in units}
    assert len(keys) == 1, f"the records have other texts and cannot be compared: {', '.join(keys)}"


def _mean(rows: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
    return np.mean([each.astype(float) for each in rows], axis=0)


def _losses(units: Sequence[Record]) -> NDArray[np.float64]:
    """Return the mean loss of each block over some runs, (blocks,)."""
    _same(units)
    return np.mean([each["losses"] for each in units], axis=0) / np.array(units[0]["tokens"])


def _bootstrap(first: NDArray[np.float64], second: NDArray[np.float64], units: Record) -> Difference:
    return paired_bootstrap(first, second, np.array(units["tokens"], dtype=float), draws=DRAWS)


def _per_nat(record: Record, column: Column) -> float:
    """Return the factor from nats per token to the metric: 1 for a loss. Bits per character depend on the tokens."""
    metrics = record["evaluations"][column.evaluation]["metrics"]
    return float(metrics[column.metric] / metrics["loss"])


def combined(p_values: Sequence[float]) -> float:
    """Return a p-value for several tests that may depend on one another, such as tests on the same texts.

    The k-th smallest of m p-values times m / k is valid whatever the dependence (Rüger 1978). k is the upper median, so
    that more than half of the tests must agree: with three tests the result is 1.5 times the median. Raises ValueError
    without p-values.

    >>> combined([0.01, 0.02, 0.8])
    0.03
    """
    if not p_values:
        raise ValueError("p_values is empty; at least one test is required")
    number, place = len(p_values), len(p_values) // 2 + 1
    return min(1.0, sorted(p_values)[place - 1] * number / place)


def _p_of(first: Record, second: Record, column: Column) -> float:
    """Return the p-value of two runs on the same texts."""
    _same([first, second])
    if column.metric in SHARES:
        return mcnemar(_hits(first, column), _hits(second, column))
    if column.metric in OF_LOSSES:
        return _bootstrap(_losses([first]), _losses([second]), first).p
    scores = _drawn_bleu([first[column.metric]]) - _drawn_bleu([second[column.metric]])
    as_far = int((np.abs(scores[1:] - scores[0]) >= abs(scores[0])).sum())
    return (as_far + 1) / (DRAWS + 1)


def _drawn_bleu(runs: Sequence[Sequence[Sequence[int]]]) -> NDArray[np.float64]:
    """Return the mean BLEU of some runs, then that of DRAWS samples of blocks with replacement: (1 + DRAWS,)."""
    counts = np.array(runs, dtype=float)  # (runs, blocks, 10)
    drawn = np.random.default_rng(0).integers(counts.shape[1], size=(DRAWS, counts.shape[1]))
    times = np.stack([np.bincount(each, minlength=counts.shape[1]) for each in drawn])  # (DRAWS, blocks)
    weights = np.concatenate((np.ones((1, counts.shape[1])), times))
    return bleu_of(weights @ counts).mean(axis=0)


def _estimate(value: float, drawn: NDArray[np.float64], count: int) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(value), float(low), float(high), count)


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return estimate.mapped(lambda value: factor * value)
