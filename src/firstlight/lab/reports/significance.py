"""Intervals of means, tests of two models on the same seeds or texts, and the number of seeds to decide.

The functions of scipy.special do what those of scipy.stats do, which take four times as long to import.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, nctdtr, ndtri, stdtr, stdtrit

LIMITS = (0.025, 0.975)  # of the 95% intervals, as shares of a distribution
DRAWS = 10_000  # of a bootstrap
DRAWN_AT_ONCE = 2_000_000  # numbers in memory
MOST_SEEDS = 10_000  # a difference that requires more counts as none
LEVEL, POWER = 0.05, 0.8


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval. low and high are infinite if the values do not determine an interval.

    count: the number of values, such as seeds or texts, that the estimate is made of.
    """

    value: float
    low: float
    high: float
    count: int

    @property
    def half_width(self) -> float:
        """Half of the interval's length, which is what ± shows. Infinite without an interval."""
        return (self.high - self.low) / 2

    def mapped(self, function: Callable[[float], float]) -> "Estimate":
        """Return the estimate of a monotonic function of the number."""
        low, high = sorted((function(self.low), function(self.high)))
        return Estimate(function(self.value), low, high, self.count)


def mean_interval(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values, such as one per seed, with Student's t interval.

    mean ± t(1 − α/2, n − 1) · s / √n, with the sample standard deviation s (Student 1908). One value has no interval.
    """
    numbers = np.asarray(values, dtype=float)
    mean, count = float(numbers.mean()), len(numbers)
    if count == 1:
        return Estimate(mean, -math.inf, math.inf, 1)
    half = float(stdtrit(count - 1, LIMITS[1]) * numbers.std(ddof=1) / math.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)


@dataclass(frozen=True)
class Difference:
    """The difference first − second with its confidence interval, and the two-sided p-value of no difference.

    p: 1 if the values cannot tell, such as those of one block of texts. freedom: the degrees of freedom of Student's t;
    infinite for a bootstrap, whose percentiles are scaled like those of a normal distribution.
    """

    estimate: Estimate
    p: float
    freedom: float = math.inf

    def half_width(self, level: float) -> float:
        """Return half of the length of the interval at another level than 0.05, such as one that Holm's method uses."""
        return self.standard_error * self._quantile(level)

    @property
    def standard_error(self) -> float:
        """The standard error of the difference."""
        return self.estimate.half_width / self._quantile(LEVEL)

    def _quantile(self, level: float) -> float:
        return float(ndtri(1 - level / 2) if math.isinf(self.freedom) else stdtrit(self.freedom, 1 - level / 2))


def mcnemar(first: ArrayLike, second: ArrayLike) -> float:
    """Return the p-value of McNemar's exact test of two models on the same texts (McNemar 1947; Edwards 1948).

    first, second: (texts,) bool, whether each answer is right. Among the answers that exactly one model got right, each
    model has an even chance if both are equally good, so p = min(1, 2 · P(X ≤ min(b, c))) with X ~ Binomial(b + c, ½).
    """
    right, other = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    only_first, only_second = int((right & ~other).sum()), int((other & ~right).sum())
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    block: int = 1,
    strata: ArrayLike | None = None,
    draws: int = DRAWS,
) -> Difference:
    """Return the difference of two mean losses on the same texts, with its bootstrap interval (Koehn 2004).

    first, second: (units,) the mean loss of each sentence, review or window. weights: (units,) the number of predicted
    tokens of each unit; None: all equal. block: the number of consecutive units that are drawn together, because
    neighboring windows of one text are correlated (Künsch 1989). strata: (units,) the number of the part, such as a
    fold, of each unit; the units of a part are consecutive, and each sample has as many blocks of every part.

    The difference is Σ w (first − second) / Σ w. The interval has the percentiles of its values over `draws` samples of
    blocks with replacement. p is the share of samples that are at least as far from the difference as 0 is.
    """
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    weight = np.ones_like(one) if weights is None else np.asarray(weights, dtype=float)
    inner = np.flatnonzero(np.diff(np.zeros_like(one) if strata is None else np.asarray(strata))) + 1
    ends, generator = [0, *inner.tolist(), len(one)], np.random.default_rng(0)
    parts = [np.arange(start, end, block) for start, end in pairwise(ends)]
    starts = np.concatenate(parts)
    sums, sizes = np.add.reduceat(weight * (one - two), starts), np.add.reduceat(weight, starts)
    value = float(sums.sum() / sizes.sum())
    if len(starts) == len(parts):
        return Difference(Estimate(value, -math.inf, math.inf, 1), 1.0)
    places = np.split(np.arange(len(starts)), np.cumsum([len(part) for part in parts])[:-1])
    drawn = np.sum([_resampled(sums[place], sizes[place], draws, generator) for place in places], axis=0)
    sampled = drawn[0] / drawn[1]
    low, high = np.quantile(sampled, LIMITS)
    as_far = int((np.abs(sampled - value) >= abs(value)).sum())
    return Difference(Estimate(value, float(low), float(high), len(starts)), (as_far + 1) / (draws + 1))


def _resampled(sums: np.ndarray, sizes: np.ndarray, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Return the sums and sizes of `draws` samples of blocks that are drawn with replacement, (2, draws)."""
    count, found = len(sums), []
    at_once = max(1, DRAWN_AT_ONCE // count)
    for done in range(0, draws, at_once):
        drawn = generator.integers(0, count, size=(min(at_once, draws - done), count), dtype=np.int32)
        found.append([sums[drawn].sum(axis=1), sizes[drawn].sum(axis=1)])
    return np.concatenate(found, axis=1)


def paired_seeds(first: Sequence[float], second: Sequence[float], blocks: Sequence[int] | None = None) -> Difference:
    """Return the difference of two means over pairs of runs with Student's t test.

    first, second: (pairs,) the results of the two settings; equal places have the same seed and the same other
    settings. blocks: (pairs,) the number of the other settings of each pair; None: all are equal. The difference may
    depend on the other settings, so its variance is that within the blocks, with pairs − blocks degrees of freedom: the
    main effect of a factorial experiment (Box, Hunter & Hunter 2005, chapter 5). One block must have two pairs.
    """
    differences = _differences(first, second)
    count = len(differences)
    number = np.unique(np.zeros(count) if blocks is None else np.asarray(blocks), return_inverse=True)[1]
    sizes = np.bincount(number)
    value, freedom = float(differences.mean()), count - len(sizes)
    within = differences - (np.bincount(number, differences) / sizes)[number]
    error = math.sqrt(float(within @ within) / freedom / count)
    return _by_t(value, error, freedom, count)


def corrected_folds(first: Sequence[float], second: Sequence[float], share: float) -> Difference:
    """Return the mean difference over folds with the corrected resampled t test (Nadeau & Bengio 2003).

    first, second: (folds,) the results of two settings on the same folds. share: test texts per training text. Two
    folds share most of their training texts, so that their differences are correlated. The variance of the mean is
    therefore (1 / folds + share) · s², with folds − 1 degrees of freedom, in place of s² / folds.
    """
    differences = _differences(first, second)
    count = len(differences)
    value, error = float(differences.mean()), math.sqrt((1 / count + share) * float(differences.var(ddof=1)))
    return _by_t(value, error, count - 1, count)


def _differences(first: Sequence[float], second: Sequence[float]) -> np.ndarray:
    """Return the differences, with those that only floating point makes unequal set equal."""
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    differences = one - two
    smallest = 1e-12 * float(np.abs([one, two]).max())
    differences[np.abs(differences) < smallest] = 0.0
    return np.full_like(differences, differences.mean()) if np.ptp(differences) < smallest else differences


def unpaired_seeds(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Return the difference of two means over different seeds with Welch's t test (Welch 1947).

    The degrees of freedom are those of Welch and Satterthwaite. Each setting must have at least two seeds.
    """
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    value, count = float(one.mean() - two.mean()), min(len(one), len(two))
    parts = [float(each.var(ddof=1)) / len(each) for each in (one, two)]
    variance, squares = sum(parts), parts[0] ** 2 / (len(one) - 1) + parts[1] ** 2 / (len(two) - 1)
    return _by_t(value, math.sqrt(variance), variance**2 / squares if squares else count - 1, count)


def _by_t(value: float, error: float, freedom: float, count: int) -> Difference:
    """Return a difference with the interval and the two-sided p-value of Student's t. error: its standard error.

    Without any spread, p is 0, or 1 for no difference.
    """
    half = float(stdtrit(freedom, LIMITS[1])) * error
    p = 2 * float(stdtr(freedom, -abs(value / error))) if error else float(value == 0)
    return Difference(Estimate(value, value - half, value + half, count), p, freedom)


def seeds_to_decide(difference: float, deviation: float, level: float = LEVEL) -> int | None:
    """Return the number of seeds with which a paired t test finds the difference; None if MOST_SEEDS are too few.

    difference, deviation: the mean and the sample standard deviation of the observed differences of pairs with the same
    seed. The answer is the smallest n ≥ 2 for which the test at the level has a power of 80%, from the noncentral t
    distribution with noncentrality √n · |difference| / deviation (Cohen 1988, chapter 2). It assumes that the true
    difference is the observed one, so it is a plan and not a promise. The seeds that exist are part of n.
    """
    if difference == 0:
        return None
    if deviation == 0:
        return 2
    effect = abs(difference) / deviation
    tried = range(2, MOST_SEEDS + 1)
    place = bisect_left(tried, True, key=lambda seeds: power_of(seeds, effect, level) >= POWER)
    return tried[place] if place < len(tried) else None


def power_of(seeds: int, effect: float, level: float = LEVEL) -> float:
    """Return the chance that a two-sided paired t test with so many seeds finds a difference of `effect` deviations."""
    limit, shift = float(stdtrit(seeds - 1, 1 - level / 2)), effect * math.sqrt(seeds)
    upper, lower = float(nctdtr(seeds - 1, shift, limit)), float(nctdtr(seeds - 1, shift, -limit))
    return min(1.0, 1 - upper + (0.0 if math.isnan(lower) else lower))


def crossings(sizes: Sequence[int], differences: Sequence[float], half_widths: Sequence[float]) -> list[Estimate]:
    """Return the sizes at which a difference of two lines changes its sign, with their intervals.

    sizes: ascending. half_widths: of the intervals of the differences. Only an interval without 0 decides a sign. Two
    decided sizes of opposite signs, with none between, show a crossing. The differences and their half widths are
    interpolated in the logarithm of the size, and the interval of a crossing has all sizes whose interval has 0.
    """
    logs, differ, half = np.log(sizes), np.asarray(differences, dtype=float), np.asarray(half_widths, dtype=float)
    decided, found = np.flatnonzero(abs(differ) > half), []
    for one, two in pairwise(decided):
        if differ[one] * differ[two] < 0:
            line = np.linspace(logs[one], logs[two], 1001)
            distance = abs(np.interp(line, logs, differ))
            middle = int(distance.argmin())
            inside = np.append(line[distance <= np.interp(line, logs, half)], line[middle])
            low, high = float(np.exp(inside.min())), float(np.exp(inside.max()))
            found.append(Estimate(float(np.exp(line[middle])), low, high, int(two - one + 1)))
    return found
