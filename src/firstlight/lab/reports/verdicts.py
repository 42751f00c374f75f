"""Whether one setting is better than another: paired over seeds and paired over the texts of the validation split.

A setting is better only if both tests say so: that over seeds, because another seed gives other results, and that over
texts, because other texts would. Two baselines, which have no seed, are compared over the texts only. All tests of a
table are corrected together by Holm's method.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from firstlight.runs.summary import SEED, Run, grouped, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from firstlight.lab.reports.significance import Difference
    from firstlight.runs.predictions import Predictions

LEVEL = 0.05
TOO_FEW_SEEDS = "two seeds of each are required"
MOST_BLOCKS = 500  # of a bootstrap; neighboring units are drawn together
DRAWS = 4000  # of a bootstrap; the smallest p-value is then 0.00025
DRAWS_PER_TEST = 40  # so that the smallest p-value times the number of tests is at most 0.025
SHARES = ("accuracy", "macro_f1")  # metrics in points of a hundred

Load = Callable[[Run], "Predictions | None"]
Unit = tuple[tuple[str, ...], str]  # the values of the other swept keys, and the seed
Units = Mapping[Unit, Sequence[Run]]


@dataclass(frozen=True)
class Comparison:
    """A comparison of two settings by one metric, before the correction for several comparisons.

    value: the mean of the first minus that of the second. over_seeds, over_texts: the tests; None if there are fewer
    than two seeds, or no saved predictions of the same texts. deviation: of the differences of pairs, None if unknown.
    seeds: the number of pairs; cells: the number of other settings with which they were trained. has_seeds: whether a
    seed changes one of the results, which is not the case for two baselines.
    """

    value: float
    over_seeds: "Difference | None"
    over_texts: "Difference | None"
    deviation: float | None
    seeds: int
    cells: int = 1
    has_seeds: bool = True

    @property
    def tests(self) -> "list[Difference]":
        """The tests that must all show the difference; [] if a test that is required cannot be made."""
        if self.has_seeds and self.over_seeds is None:
            return []
        return [each for each in (self.over_seeds if self.has_seeds else None, self.over_texts) if each is not None]

    @property
    def p(self) -> float:
        """The larger p-value of both tests, so that both must agree. 1 without a test that is required."""
        return max((each.p for each in self.tests), default=1.0)

    def half_width(self, level: float) -> float | None:
        """Return half of the wider interval of both tests at a level; None without a test that is required."""
        return max((each.half_width(level) for each in self.tests), default=None)


@dataclass(frozen=True)
class Verdict:
    """The answer of a comparison: better, worse or undecided, and why it is undecided.

    value: the first setting minus the second. half_width: of its interval at the level at which the comparison was
    tested, so that a decided interval excludes 0. p: corrected for all comparisons of the table. more_seeds: about how
    many more seeds would decide; None if that is not known.
    """

    word: str
    value: float
    half_width: float | None
    p: float
    more_seeds: int | None = None
    why: str = ""

    @property
    def lacks_seeds(self) -> bool:
        """Whether it is undecided because a setting has only one seed."""
        return self.why.endswith(TOO_FEW_SEEDS)

    def reversed(self) -> "Verdict":
        """Return the verdict on the second setting against the first."""
        word = {"better": "worse", "worse": "better"}.get(self.word, self.word)
        return replace(self, word=word, value=-self.value)

    def text(self, metric: str) -> str:
        """Return such as `worse by 1.9 ± 0.6 points` or `undecided (0.3 ± 1.1 points; about 5 more seeds …)`."""
        size = difference_text(self.value, self.half_width, metric)
        if self.word == "undecided":
            return f"undecided ({'; '.join(filter(None, (size, self.why)))})"
        return f"{self.word} by {size}" + (f" ({self.why})" if self.why else "")

    def short_text(self, metric: str) -> str:
        """Return such as `worse by 1.9 ± 0.6 points` or `undecided, one seed`, for a narrow column."""
        if self.word != "undecided":
            return f"{self.word} by {difference_text(self.value, self.half_width, metric)}"
        if self.lacks_seeds:
            return "undecided, one seed"
        if not self.more_seeds:
            return "undecided"
        return f"undecided, +{self.more_seeds:,} seed{'' if self.more_seeds == 1 else 's'}"


def by_unit(runs: Sequence[Run], keys: Sequence[str] = ()) -> dict[Unit, list[Run]]:
    """Return the runs of each seed and each combination of the values of some keys, the cells of the sweep."""
    return grouped(runs, lambda run: (run.values(keys), shown(run.keys.get(SEED))))


def compare(first: Units, second: Units, metric: str, load: Load, num_tests: int = 1) -> Comparison:
    """Return the comparison of two settings. first, second: their counted runs by unit. num_tests: of the same table.

    Runs with the same seed and equal other keys are paired, and the other keys are blocks, so that the effect of a key
    is estimated from all pairs of a sweep. Two settings without two common units are compared as independent samples. A
    baseline that counts has one result for every unit. Two baselines are compared over the texts only.
    """
    if _is_without_seed(second) and not _is_without_seed(first):
        second = dict.fromkeys(first, next(iter(second.values())))
    elif _is_without_seed(first) and not _is_without_seed(second):
        first = dict.fromkeys(second, next(iter(first.values())))
    common = [unit for unit in first if unit in second]
    if len(common) >= 2 or (common and min(len(first), len(second)) < 2):
        first, second = {unit: first[unit] for unit in common}, {unit: second[unit] for unit in common}
    one, two = ([fmean(run.metrics[metric] for run in runs) for runs in each.values()] for each in (first, second))
    cells = list(dict.fromkeys(cell for cell, _ in first))
    blocks = [cells.index(cell) for cell, _ in first] if first.keys() == second.keys() else None
    over_seeds, deviation = _over_seeds(one, two, blocks)
    value = over_seeds.estimate.value if over_seeds else fmean(one) - fmean(two)
    of_texts = over_texts(first, second, metric, load, max(DRAWS, DRAWS_PER_TEST * num_tests))
    has_seeds = not (_is_without_seed(first) and _is_without_seed(second))
    return Comparison(value, over_seeds, of_texts, deviation, min(len(one), len(two)), len(cells), has_seeds)


def _is_without_seed(runs: Units) -> bool:
    return all(run.is_baseline for each in runs.values() for run in each)


def _over_seeds(
    one: list[float], two: list[float], blocks: list[int] | None
) -> "tuple[Difference | None, float | None]":
    """Return the test over seeds and the deviation of the differences; None for both with fewer than two seeds.

    blocks: the number of the cell of each pair; None: the results are not paired.
    """
    if min(len(one), len(two)) < 2:
        return None, None
    from firstlight.lab.reports.significance import paired_seeds, unpaired_seeds  # imports NumPy

    if blocks is None:
        return unpaired_seeds(one, two), math.hypot(stdev(one), stdev(two))
    if len(one) == len(set(blocks)):
        return None, None
    found = paired_seeds(one, two, blocks)
    return found, found.standard_error * math.sqrt(len(one))


def over_texts(
    first: Units, second: Units, metric: str, load: Load, draws: int = DRAWS, strata: "NDArray[np.int64] | None" = None
) -> "Difference | None":
    """Return the test over texts: McNemar's for the classes of two runs, a paired bootstrap otherwise.

    The estimate has the unit of the metric. strata: (units,) the number of the part, such as a fold, of each unit.
    """
    from firstlight.lab.reports.significance import mcnemar, paired_bootstrap  # imports NumPy

    found = [[load(run) for runs in each.values() for run in runs] for each in (first, second)]
    one, two = ([each for each in predictions if each is not None] for predictions in found)
    if len(one) < len(found[0]) or len(two) < len(found[1]) or len({each.key for each in (*one, *two)}) != 1:
        return None
    if one[0].values(metric) is None:
        return None
    means = [sum(each.values(metric) for each in predictions) / len(predictions) for predictions in (one, two)]  # type: ignore[misc]
    block = -(-len(one[0].rows) // MOST_BLOCKS)
    difference = paired_bootstrap(means[0], means[1], one[0].tokens, block=block, strata=strata, draws=draws)
    if metric.endswith("/perplexity"):
        levels = [float((mean * one[0].tokens).sum() / one[0].tokens.sum()) for mean in means]
        factor = 2 * math.exp(fmean(levels))  # of the difference of two perplexities
        difference = replace(difference, estimate=difference.estimate.mapped(lambda nats: factor * math.sinh(nats / 2)))
    elif metric.endswith("/bits_per_character"):
        metrics = next(run.metrics for runs in first.values() for run in runs)
        per_nat = metrics[metric] / metrics[f"{metric.rpartition('/')[0]}/loss"]
        difference = replace(difference, estimate=difference.estimate.mapped(lambda nats: per_nat * nats))
    if len(one) == len(two) == 1 and one[0].is_of_classes and metric.endswith("/accuracy"):
        return replace(difference, p=mcnemar(one[0].correct, two[0].correct))
    return difference


def verdicts(comparisons: Sequence[Comparison], *, falls: bool) -> list[Verdict]:
    """Return the verdicts on several comparisons of one table, whose p-values are corrected together.

    falls: whether lower values of the metric are better. A comparison that cannot be tested is not counted as a test.
    """
    tested = [place for place, each in enumerate(comparisons) if each.tests]
    tested.sort(key=lambda place: comparisons[place].p)
    corrected = dict(zip(tested, holm([comparisons[place].p for place in tested]), strict=True))
    undecided = sum(p >= LEVEL for p in corrected.values())
    factors = {place: max(len(tested) - rank, undecided) for rank, place in enumerate(tested)}
    return [
        _verdict(each, corrected.get(place, 1.0), factors.get(place, undecided or 1), falls=falls)
        for place, each in enumerate(comparisons)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of several tests, corrected by Holm's method (Holm 1979), in the same order.

    The smallest is multiplied by the number of tests, the next by one less, and so on; none becomes smaller than one
    before it, or larger than 1. With them, the chance of any false "better" among all tests is at most the level.
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected


def _verdict(found: Comparison, p: float, factor: int, *, falls: bool) -> Verdict:
    """Return the verdict on a comparison.

    p: corrected; factor: the number by which Holm's method multiplies its p-value, or for an undecided comparison the
    p-value that would be decided next.
    """
    half_width = found.half_width(LEVEL / factor)
    if p < LEVEL and found.value != 0:
        word = "better" if (found.value < 0) == falls else "worse"
        return Verdict(word, found.value, half_width, p, why="" if found.over_texts else "by seeds only")
    more, why = None, ""
    if found.value == 0:
        why = "the means are equal"
    elif not found.has_seeds and found.over_texts is None:
        why = "both have no saved predictions of the same texts"
    elif found.has_seeds and found.over_seeds is None:
        why = TOO_FEW_SEEDS
        if found.over_texts is not None and found.over_texts.p < LEVEL:
            why = "these two runs differ, but " + why
    elif found.over_texts is not None and found.over_texts.p * factor >= LEVEL:
        why = "more seeds will not help: the validation split is too small"
    else:
        from firstlight.lab.reports.significance import seeds_to_decide  # imports NumPy

        assert found.deviation is not None, "there is a test over seeds"
        why = "no number of seeds would show a difference"
        if (needed := seeds_to_decide(found.value, found.deviation, LEVEL / factor)) is not None:
            more = max(1, -(-(needed - found.seeds) // found.cells))
            why = f"about {more:,} more seed{'' if more == 1 else 's'} would decide"
    return Verdict("undecided", found.value, half_width, p, more, why)


def difference_text(value: float, half_width: float | None, metric: str) -> str:
    """Return a difference without its sign, such as `1.9 ± 0.6 points` or `0.045 ± 0.012`."""
    is_share = metric.rpartition("/")[2] in SHARES
    scale, unit = (100, " points") if is_share else (1, "")
    size = abs(value) * scale
    if half_width is None or not math.isfinite(half_width):
        return f"{size:.2g}{unit}"
    half = half_width * scale
    digits = 3 if half == 0 else min(max(1 - math.floor(math.log10(half)), 0), 8)
    if is_share and (half >= 0.05 or half == 0):
        digits = 1
    return f"{size:.{digits}f} ± {half:.{digits}f}{unit}"


def crossing_text(first: str, second: str, at: Mapping[int, Verdict]) -> str:
    """Return where the learning curves of two settings cross, if this is known.

    at: the verdicts on the first against the second, by the number of training rows, ascending.
    """
    from firstlight.lab.reports.significance import crossings  # imports NumPy

    words = [verdict.word for verdict in at.values()]
    # the interval of an undecided difference has 0
    halves = [max(each.half_width or 0, abs(each.value) * (each.word == "undecided")) for each in at.values()]
    if found := crossings(list(at), [verdict.value for verdict in at.values()], halves):
        places = "; ".join(f"{each.value:,.0f} [{each.low:,.0f}, {each.high:,.0f}]" for each in found)
        return f"{first} and {second} cross at this number of training rows: {places}."
    if len(set(words)) == 1 and words[0] != "undecided":
        span = f"from {min(at):,} to {max(at):,} training rows"
        return f"{first} is {words[0]} than {second} at all {len(at)} sizes. The lines do not cross {span}."
    seen = "; ".join(f"{size:,} {word}" for size, word in zip(at, words, strict=True)) or "no size in common"
    return f"It is undecided whether {first} and {second} cross. {first} against {second}: {seen}."
