"""Intervals of a mean over seeds and of an accuracy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

CONFIDENCE = 0.95


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


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of independent values, such as one per seed, with Student's t interval.

    mean ± t(1 − α/2, n − 1) · s / √n, with the sample standard deviation s (Student 1908). One value has no interval.
    Raises ValueError without values, or if a value is not finite.
    """
    numbers = _finite(values)
    mean, count = float(numbers.mean()), len(numbers)
    if count == 1:
        return Estimate(mean, -math.inf, math.inf, 1)
    half = float(stdtrit(count - 1, (1 + confidence) / 2) * numbers.std(ddof=1) / math.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)


def accuracy_interval(correct: int, total: int, confidence: float = CONFIDENCE) -> Estimate:
    """Return the accuracy of `correct` of `total` answers with its Wilson interval (Wilson 1927, without continuity).

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n). It measures how far another split of the same size could
    differ; seeds are not part of it. Raises ValueError if correct is not between 0 and total, or total is 0.
    """
    if not 0 <= correct <= total or total == 0:
        raise ValueError(f"correct={correct} must be between 0 and total={total}, and total must be at least 1")
    share, z = correct / total, float(ndtri((1 + confidence) / 2))
    center = share + z * z / (2 * total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return Estimate(share, max(0.0, (center - half) / scale), min(1.0, (center + half) / scale), total)


def _finite(values: Sequence[float]) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    if numbers.size == 0 or not np.isfinite(numbers).all():
        raise ValueError(f"values={list(values)[:5]}: at least one value is required, and all must be finite")
    return numbers
