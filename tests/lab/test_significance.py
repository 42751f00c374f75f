"""Intervals, paired tests and the number of seeds, compared with scipy.stats, closed forms and published tables."""

import math

import numpy as np
import pytest
from scipy import stats

from firstlight.lab.reports.significance import (
    Estimate,
    mcnemar,
    mean_interval,
    paired_bootstrap,
    paired_seeds,
    seeds_to_decide,
    unpaired_seeds,
)
from firstlight.lab.reports.verdicts import holm


def limits(found: Estimate) -> tuple[float, float]:
    return found.low, found.high


def test_the_interval_of_a_mean_is_students() -> None:
    values = [0.81, 0.84, 0.79, 0.86, 0.83]
    found = mean_interval(values)
    assert limits(found) == pytest.approx(tuple(stats.ttest_1samp(values, 0).confidence_interval(0.95)))
    assert (found.value, found.count) == (pytest.approx(np.mean(values)), 5)
    assert found.half_width == pytest.approx((found.high - found.low) / 2)


def test_one_value_has_no_interval() -> None:
    assert limits(mean_interval([0.5])) == (-math.inf, math.inf)


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (5, 5), (3, 14), (121, 86)])
def test_mcnemar_is_a_binomial_test_of_the_disagreements(only_first: int, only_second: int) -> None:
    agreed = [True] * 11
    first = [True] * only_first + [False] * only_second + agreed
    second = [False] * only_first + [True] * only_second + agreed
    disagreed = only_first + only_second
    expected = stats.binomtest(only_first, disagreed).pvalue if disagreed else 1.0
    assert mcnemar(first, second) == pytest.approx(expected)


def test_the_bootstrap_of_many_texts_is_the_normal_interval() -> None:
    generator = np.random.default_rng(3)
    second = generator.gamma(2, size=701)
    first = second + generator.normal(0.05, 0.4, size=701)
    differences = first - second
    error = differences.std(ddof=1) / math.sqrt(701)
    found = paired_bootstrap(first, second, draws=4000)
    assert found.estimate.value == pytest.approx(differences.mean())
    assert found.estimate.half_width == pytest.approx(1.96 * error, rel=0.05)
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(differences.mean()) / error), abs=0.01)


def test_the_bootstrap_weighs_texts_by_their_tokens() -> None:
    found = paired_bootstrap([1.0, 3.0], [0.0, 0.0], weights=[30, 10], draws=100)
    assert found.estimate.value == pytest.approx(1.5)
    assert (found.estimate.low, found.estimate.high) == (1.0, 3.0)


def test_blocks_of_equal_neighbors_count_as_one() -> None:
    generator = np.random.default_rng(5)
    losses = generator.normal(size=53)
    repeated = np.repeat(losses, 4)
    zeros = np.zeros_like(repeated)
    alone = paired_bootstrap(losses, np.zeros(53), draws=2000)
    blocks = paired_bootstrap(repeated, zeros, block=4, draws=2000)
    single = paired_bootstrap(repeated, zeros, draws=2000)
    assert blocks.estimate.half_width == pytest.approx(alone.estimate.half_width)
    assert single.estimate.half_width == pytest.approx(alone.estimate.half_width / 2, rel=0.1)


def test_a_bootstrap_is_repeatable_and_one_block_decides_nothing() -> None:
    first, second = [1.0, 2.0, 4.0], [0.0, 2.0, 5.0]
    assert paired_bootstrap(first, second, draws=50) == paired_bootstrap(first, second, draws=50)
    whole = paired_bootstrap(first, second, block=3, draws=50)
    assert whole.p == 1.0
    assert math.isinf(whole.estimate.half_width)


def test_seeds_without_spread_are_equal_or_different() -> None:
    assert paired_seeds([0.5, 0.5], [0.5, 0.5]).p == 1.0
    assert paired_seeds([0.75, 0.75], [0.5, 0.5]).p == 0.0
    assert unpaired_seeds([0.75, 0.75], [0.5, 0.5]).p == 0.0
    assert unpaired_seeds([0.5, 0.5], [0.5, 0.5, 0.5]).p == 1.0
    rounded = paired_seeds([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2])
    assert (rounded.p, rounded.estimate.value, rounded.estimate.half_width) == (1.0, 0.0, 0.0)


def test_holms_correction_is_that_of_its_definition() -> None:
    # The example of the documentation of R's p.adjust: sorted p-values times 4, 3, 2, 1, never decreasing.
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("second", "test", "expected"),
    [
        ([0.79, 0.80, 0.82, 0.83, 0.84], paired_seeds, stats.ttest_rel),
        ([0.79, 0.70, 0.82], unpaired_seeds, lambda one, two: stats.ttest_ind(one, two, equal_var=False)),
    ],
)
def test_equal_seeds_have_students_paired_test_and_different_ones_welchs(second, test, expected) -> None:
    first = [0.80, 0.83, 0.82, 0.86, 0.85]
    found, wanted = test(first, second), expected(first, second)
    assert found.p == pytest.approx(wanted.pvalue)
    assert limits(found.estimate) == pytest.approx(tuple(wanted.confidence_interval(0.95)))


@pytest.mark.parametrize(("effect", "seeds"), [(0.2, 199), (0.5, 34), (-0.8, 15), (1.0, 10)])
def test_the_number_of_seeds_agrees_with_published_tables(effect: float, seeds: int) -> None:
    # G*Power and R's power.t.test(type="paired"): two-sided, level 0.05, power 0.8.
    assert seeds_to_decide(effect * 0.01, 0.01) == seeds


def test_no_difference_is_never_found_and_one_without_spread_with_two_seeds() -> None:
    assert [seeds_to_decide(*each) for each in ((0.0, 0.1), (1e-6, 1.0), (0.1, 0.0), (100.0, 0.01))] == [
        *(None, None, 2, 2)
    ]
