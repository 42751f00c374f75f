"""The number of seeds that decides a comparison, against published tables and the definition."""

import numpy as np
import pytest
from scipy import stats

from firstlight.lab.reports.significance import power_of, seeds_to_decide


@pytest.mark.parametrize(("effect", "seeds"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_the_number_agrees_with_published_tables(effect: float, seeds: int) -> None:
    # G*Power and R's power.t.test(type="paired"): two-sided, level 0.05, power 0.8.
    assert seeds_to_decide(effect * 0.01, 0.01) == seeds
    assert seeds_to_decide(-effect * 0.01, 0.01) == seeds


def test_the_power_is_that_of_the_noncentral_t_distribution() -> None:
    limit = stats.t.ppf(0.975, 6)
    expected = stats.nct.sf(limit, 6, 0.9 * np.sqrt(7)) + stats.nct.cdf(-limit, 6, 0.9 * np.sqrt(7))
    assert power_of(7, 0.9) == pytest.approx(expected)


def test_no_difference_is_never_found() -> None:
    assert seeds_to_decide(0.0, 0.1) is None
    assert seeds_to_decide(1e-6, 1.0) is None


def test_differences_without_spread_are_found_with_two_seeds() -> None:
    assert seeds_to_decide(0.1, 0.0) == 2
    assert seeds_to_decide(100.0, 0.01) == 2


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"deviation=-1 must not be negative"):
        seeds_to_decide(0.1, -1)
    with pytest.raises(ValueError, match="seeds=1 must be at least 2"):
        power_of(1, 0.5)
