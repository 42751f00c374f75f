"""How many seeds a comparison requires."""

import math

from scipy.special import nctdtr, stdtrit

MOST = 10_000  # seeds; a difference that requires more counts as none
LEVEL, POWER = 0.05, 0.8


def seeds_to_decide(difference: float, deviation: float, level: float = LEVEL, power: float = POWER) -> int | None:
    """Return the number of seeds with which a paired t test finds the difference; None if more than MOST are required.

    difference, deviation: the mean and the sample standard deviation of the observed differences of pairs with the same
    seed. The answer is the smallest n ≥ 2 for which the test at the level has the power, from the noncentral t
    distribution with noncentrality √n · |difference| / deviation (Cohen 1988, chapter 2). It assumes that the true
    difference is the observed one, so it is a plan and not a promise. The seeds that exist are part of n.
    Raises ValueError if the deviation is negative.
    """
    if deviation < 0:
        raise ValueError(f"deviation={deviation} must not be negative")
    if difference == 0:
        return None
    if deviation == 0:
        return 2
    effect = abs(difference) / deviation
    if power_of(MOST, effect, level) < power:
        return None
    low, high = 1, 2  # the power of `low` is too small
    while power_of(high, effect, level) < power:
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, effect, level) >= power else (middle, high)
    return high


def power_of(seeds: int, effect: float, level: float = LEVEL) -> float:
    """Return the chance that a two-sided paired t test with so many seeds finds a difference of `effect` deviations.

    Raises ValueError with fewer than two seeds.
    """
    if seeds < 2:
        raise ValueError(f"seeds={seeds} must be at least 2")
    limit, shift = float(stdtrit(seeds - 1, 1 - level / 2)), effect * math.sqrt(seeds)
    upper, lower = float(nctdtr(seeds - 1, shift, limit)), float(nctdtr(seeds - 1, shift, -limit))
    return min(1.0, 1 - upper + (0.0 if math.isnan(lower) else lower))
