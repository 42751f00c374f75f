import numpy as np
import pytest
from scipy.special import ndtr

from firstlight.lab.reports.significance import combined


def test_one_test_is_left_as_it_is_and_several_are_combined_by_their_upper_median() -> None:
    assert combined([0.04]) == 0.04
    assert combined([0.01, 0.5]) == 0.5
    assert combined([0.9, 0.01, 0.02]) == pytest.approx(0.03)
    assert combined([0.9, 0.8, 0.7]) == 1
    with pytest.raises(ValueError, match="at least one test"):
        combined([])


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_a_true_hypothesis_is_rejected_no_more_often_than_the_level(correlation: float) -> None:
    random = np.random.default_rng(3)
    shared, own = random.normal(size=(4000, 1)), random.normal(size=(4000, 3))
    drawn = correlation**0.5 * shared + (1 - correlation) ** 0.5 * own  # standard normal, whatever the correlation
    p_values = 2 * ndtr(-np.abs(drawn))
    assert np.mean([combined(row.tolist()) < 0.05 for row in p_values]) < 0.05
