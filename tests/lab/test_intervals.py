"""Intervals of means and accuracies, compared with scipy.stats."""

import math

import pytest
from scipy import stats

from firstlight.lab.reports.significance import accuracy_interval, mean_interval


def test_the_interval_of_a_mean_is_students() -> None:
    values = [0.81, 0.84, 0.79, 0.86, 0.83]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = mean_interval(values)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.value == pytest.approx(sum(values) / 5)
    assert found.half_width == pytest.approx((expected.high - expected.low) / 2)
    assert found.count == 5


def test_another_confidence_is_possible() -> None:
    expected = stats.ttest_1samp([1.0, 2.0, 4.0], 0).confidence_interval(0.8)
    assert mean_interval([1.0, 2.0, 4.0], 0.8).low == pytest.approx(expected.low)


def test_one_value_has_no_interval() -> None:
    found = mean_interval([0.5])
    assert (found.value, found.low, found.high) == (0.5, -math.inf, math.inf)
    assert math.isinf(found.half_width)


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [math.inf]])
def test_a_mean_requires_finite_values(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value is required, and all must be finite"):
        mean_interval(values)


@pytest.mark.parametrize(("correct", "total"), [(0, 7), (7, 7), (2113, 2500), (1, 3)])
def test_the_interval_of_an_accuracy_is_wilsons(correct: int, total: int) -> None:
    expected = stats.binomtest(correct, total).proportion_ci(0.95, method="wilson")
    found = accuracy_interval(correct, total)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.value == correct / total


@pytest.mark.parametrize(("correct", "total"), [(3, 2), (-1, 2), (0, 0)])
def test_an_impossible_accuracy_is_refused(correct: int, total: int) -> None:
    with pytest.raises(ValueError, match=rf"correct={correct} must be between 0 and total={total}"):
        accuracy_interval(correct, total)
