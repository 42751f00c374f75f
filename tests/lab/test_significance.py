"""Paired tests, compared with scipy.stats and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from firstlight.lab.reports.significance import holm, mcnemar, paired_bootstrap, paired_seeds, unpaired_seeds


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (5, 5), (3, 14), (121, 86)])
def test_mcnemar_is_a_binomial_test_of_the_disagreements(only_first: int, only_second: int) -> None:
    agreed = 11
    first = np.array([True] * only_first + [False] * only_second + [True] * agreed)
    second = np.array([False] * only_first + [True] * only_second + [True] * agreed)
    found = mcnemar(first, second)
    disagreed = only_first + only_second
    expected = stats.binomtest(only_first, disagreed).pvalue if disagreed else 1.0
    assert found.p == pytest.approx(expected)
    assert (found.only_first, found.only_second, found.total) == (only_first, only_second, disagreed + agreed)
    assert found.difference == pytest.approx(first.mean() - second.mean())


def test_paired_values_must_match() -> None:
    with pytest.raises(ValueError, match="two equal, non-empty lists"):
        mcnemar([True, False], [True])
    with pytest.raises(ValueError, match="two equal, non-empty lists"):
        paired_bootstrap([], [])
    with pytest.raises(ValueError, match="two equal, non-empty lists"):
        paired_bootstrap([1.0, 2.0], [1.0, 3.0], weights=[1.0])


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


def test_seeds_are_paired_by_students_test() -> None:
    first, second = [0.80, 0.83, 0.82, 0.86], [0.79, 0.80, 0.82, 0.83]
    expected = stats.ttest_rel(first, second)
    found = paired_seeds(first, second)
    assert found.p == pytest.approx(expected.pvalue)
    limits = expected.confidence_interval(0.95)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((limits.low, limits.high))


def test_different_seeds_are_compared_by_welchs_test() -> None:
    first, second = [0.80, 0.83, 0.82, 0.86, 0.85], [0.79, 0.70, 0.82]
    expected = stats.ttest_ind(first, second, equal_var=False)
    found = unpaired_seeds(first, second)
    assert found.p == pytest.approx(expected.pvalue)
    limits = expected.confidence_interval(0.95)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((limits.low, limits.high))


def test_one_seed_decides_nothing() -> None:
    assert paired_seeds([0.9], [0.1]).p == 1.0
    assert unpaired_seeds([0.9], [0.1, 0.2]).p == 1.0
    assert math.isinf(paired_seeds([0.9], [0.1]).estimate.half_width)


def test_seeds_without_spread_are_equal_or_different() -> None:
    assert paired_seeds([0.5, 0.5], [0.5, 0.5]).p == 1.0
    assert paired_seeds([0.75, 0.75], [0.5, 0.5]).p == 0.0
    assert unpaired_seeds([0.75, 0.75], [0.5, 0.5]).p == 0.0
    rounded = paired_seeds([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2])
    assert (rounded.p, rounded.estimate.value, rounded.estimate.half_width) == (1.0, 0.0, 0.0)


def test_holms_correction_is_that_of_its_definition() -> None:
    # The example of the documentation of R's p.adjust: sorted p-values times 4, 3, 2, 1, never decreasing.
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []
