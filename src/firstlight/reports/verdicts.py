"""Whether one setting is better than another: paired over seeds and paired over the texts of the validation split.

A setting is better only if both tests say so: that over seeds, because another seed gives other results, and that over
texts, because another split would. All tests of a table are corrected together by Holm's method.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from firstlight.reports.rows import SEED, Run, shown

if TYPE_CHECKING:
    from firstlight.comparison.outcomes import Outcomes
    from firstlight.comparison.paired import Difference

LEVEL = 0.05
MOST_BLOCKS = 500  # of a bootstrap; neighboring units are drawn together
DRAWS = 4000  # of a bootstrap; the smallest p-value is then 0.00025
SHARES = ("accuracy", "macro_f1")  # metrics in points of a hundred

Load = Callable[[Run], "Outcomes | None"]
BySeed = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class Comparison:
    """A comparison of two settings by one metric, before the correction for several comparisons.

    value: the mean of the first minus that of the second. over_seeds, over_texts: the tests; None if there are fewer
    than two seeds, or no saved predictions of the same texts. deviation: of the differences of pairs, None if unknown.
    """

    value: float
    over_seeds: "Difference | None"
    over_texts: "Difference | None"
    deviation: float | None
    seeds: int

    @property
    def p(self) -> float:
        """The larger p-value of both tests, so that both must agree. 1 without a test over seeds."""
        if self.over_seeds is None:
            return 1.0
        return max(self.over_seeds.p, 0.0 if self.over_texts is None else self.over_texts.p)

    @property
    def half_width(self) -> float | None:
        """Half of the wider interval of both; None without an interval over seeds."""
        if self.over_seeds is None:
            return None
        return max(each.estimate.half_width for each in (self.over_seeds, self.over_texts) if each is not None)


@dataclass(frozen=True)
class Verdict:
    """The answer of a comparison: better, worse or undecided, and why it is undecided.

    value: the first setting minus the second. p: corrected for all comparisons of the table. more_seeds: about how many
    more seeds would decide; None if that is not known.
    """

    word: str
    value: float
    half_width: float | None
    p: float
    more_seeds: int | None = None
    why: str = ""


def by_seed(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each seed."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(shown(run.keys.get(SEED)), []).append(run)
    return found


def compare(first: BySeed, second: BySeed, metric: str, load: Load) -> Comparison:
    """Return the comparison of two settings. first, second: their counted runs by seed.

    Equal seeds are paired. Two settings without two common seeds are compared as independent samples. A baseline that
    counts has one result for every seed.
    """
    common = [seed for seed in first if seed in second]
    if _is_without_seed(second) and not _is_without_seed(first):
        second, common = {seed: next(iter(second.values())) for seed in first}, list(first)
    if len(common) >= 2 or (common and min(len(first), len(second)) < 2):
        first, second = {seed: first[seed] for seed in common}, {seed: second[seed] for seed in common}
    one, two = ([fmean(run.metrics[metric] for run in runs) for runs in each.values()] for each in (first, second))
    is_paired = first.keys() == second.keys()
    over_seeds = _over_seeds(one, two, is_paired=is_paired)
    return Comparison(
        over_seeds.estimate.value if over_seeds else fmean(one) - fmean(two),
        over_seeds,
        over_texts(first, second, metric, load),
        _deviation(one, two, is_paired=is_paired),
        min(len(one), len(two)),
    )


def _is_without_seed(runs: BySeed) -> bool:
    return all(run.is_baseline for each in runs.values() for run in each)


def _over_seeds(one: list[float], two: list[float], *, is_paired: bool) -> "Difference | None":
    from firstlight.comparison.paired import paired_seeds, unpaired_seeds  # imports NumPy

    if min(len(one), len(two)) < 2:
        return None
    return paired_seeds(one, two) if is_paired else unpaired_seeds(one, two)


def _deviation(one: list[float], two: list[float], *, is_paired: bool) -> float | None:
    if min(len(one), len(two)) < 2:
        return None
    if is_paired:
        return stdev(a - b for a, b in zip(one, two, strict=True))
    return math.hypot(stdev(one), stdev(two))


def over_texts(first: BySeed, second: BySeed, metric: str, load: Load) -> "Difference | None":
    """Return the test over texts: McNemar's for the classes of two runs, a paired bootstrap otherwise."""
    from firstlight.comparison.paired import mcnemar, paired_bootstrap  # imports NumPy

    found = [[load(run) for runs in each.values() for run in runs] for each in (first, second)]
    one, two = ([each for each in outcomes if each is not None] for outcomes in found)
    if len(one) < len(found[0]) or len(two) < len(found[1]) or len({each.key for each in (*one, *two)}) != 1:
        return None
    if one[0].values(metric) is None:
        return None
    means = [sum(each.values(metric) for each in outcomes) / len(outcomes) for outcomes in (one, two)]  # type: ignore[misc]
    block = -(-len(one[0].rows) // MOST_BLOCKS)
    difference = paired_bootstrap(means[0], means[1], one[0].tokens, block=block, draws=DRAWS)
    if len(one) == len(two) == 1 and one[0].is_of_classes and metric.endswith("/accuracy"):
        return replace(difference, p=mcnemar(one[0].correct, two[0].correct).p)
    return difference


def verdicts(comparisons: Sequence[Comparison], *, falls: bool) -> list[Verdict]:
    """Return the verdicts on several comparisons of one table, whose p-values are corrected together.

    falls: whether lower values of the metric are better.
    """
    if not comparisons:
        return []
    from firstlight.comparison.paired import holm  # imports NumPy

    corrected = holm([each.p for each in comparisons])
    return [_verdict(each, p, len(comparisons), falls=falls) for each, p in zip(comparisons, corrected, strict=True)]


def _verdict(found: Comparison, p: float, tests: int, *, falls: bool) -> Verdict:
    if p < LEVEL and found.value != 0:
        word = "better" if (found.value < 0) == falls else "worse"
        return Verdict(word, found.value, found.half_width, p, why="" if found.over_texts else "by seeds only")
    more, why = None, ""
    if found.value == 0:
        why = "the means are equal"
    elif found.over_seeds is None:
        why = "two seeds of each are required"
        if found.over_texts is not None and found.over_texts.p < LEVEL:
            why = "these two runs differ, but " + why
    elif found.over_texts is not None and found.over_texts.p * tests >= LEVEL:
        why = "the validation split has too few texts for this difference"
    else:
        more, why = _more_seeds(found, tests)
    return Verdict("undecided", found.value, found.half_width, p, more, why)


def _more_seeds(found: Comparison, tests: int) -> tuple[int | None, str]:
    """Return about how many more seeds would decide, and the words for it."""
    from firstlight.comparison.seeds import seeds_to_decide

    assert found.deviation is not None, "there is a test over seeds"
    needed = seeds_to_decide(found.value, found.deviation, LEVEL / tests)
    if needed is None:
        return None, "no number of seeds would show a difference"
    more = max(1, needed - found.seeds)
    return more, f"about {more:,} more seed{'' if more == 1 else 's'} would decide"


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


def short_verdict(verdict: Verdict, metric: str) -> str:
    """Return a verdict for a narrow column, such as `worse by 1.9 ± 0.6 points` or `undecided, +5 seeds`."""
    if verdict.word != "undecided":
        return f"{verdict.word} by {difference_text(verdict.value, verdict.half_width, metric)}"
    return "undecided" + (f", +{verdict.more_seeds:,} seeds" if verdict.more_seeds else "")


def verdict_text(verdict: Verdict, metric: str) -> str:
    """Return a verdict, such as `worse by 1.9 ± 0.6 points` or `undecided (0.3 ± 1.1 points; about 5 more seeds …)`."""
    size = difference_text(verdict.value, verdict.half_width, metric)
    if verdict.word == "undecided":
        return f"undecided ({'; '.join(filter(None, (size, verdict.why)))})"
    return f"{verdict.word} by {size}" + (f" ({verdict.why})" if verdict.why else "")
