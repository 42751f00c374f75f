"""Tests of calibration: numbers computed by hand, and the content of the figure."""

import numpy as np
import pytest

from figures_support import check_readable
from firstlight.figures.probabilities import calibration_bins, plot_calibration_curve

TWO = np.array([[0.9, 0.1], [0.2, 0.8], [0.45, 0.55], [0.51, 0.49]])
TARGETS = np.array([0, 0, 1, 1])  # right, wrong, right, wrong


def test_confidence_and_accuracy_are_those_of_the_predicted_class() -> None:
    found = calibration_bins(TWO, TARGETS, bins=2)
    assert found.edges.tolist() == [0.5, 0.75, 1]
    assert found.counts.tolist() == [2, 2]
    assert found.confidence.tolist() == pytest.approx([0.53, 0.85])
    assert found.accuracy.tolist() == pytest.approx([0.5, 0.5])
    assert found.error == pytest.approx((2 * 0.03 + 2 * 0.35) / 4)


def test_bins_are_weighted_by_their_count() -> None:
    probabilities = np.array([[0.95, 0.05]] * 9 + [[0.55, 0.45]])
    found = calibration_bins(probabilities, np.zeros(10, int), bins=5)
    assert found.counts.tolist() == [1, 0, 0, 0, 9]
    assert np.isnan(found.accuracy[1:4]).all()
    assert found.error == pytest.approx(0.9 * 0.05 + 0.1 * 0.45)


def test_bins_begin_at_the_lowest_confidence_that_the_classes_can_have() -> None:
    found = calibration_bins(np.full((3, 5), 0.2), np.array([0, 1, 2]), bins=4)
    assert found.edges.tolist() == pytest.approx([0.2, 0.4, 0.6, 0.8, 1])
    assert found.counts.tolist() == [3, 0, 0, 0]
    assert calibration_bins(np.array([[0.0, 1.0]]), np.array([1])).counts.tolist() == [0] * 9 + [1]


def test_the_figure_shows_both_and_says_the_error() -> None:
    rng = np.random.default_rng(0)
    found = calibration_bins(rng.dirichlet(np.full(5, 0.3), 997), rng.integers(5, size=997))
    figure = plot_calibration_curve(found)
    check_readable(figure)
    assert figure.get_suptitle() == f"Calibration: expected calibration error {found.error:.1%}"
    top, bottom = figure.axes
    there = found.counts > 0
    curve = next(line for line in top.lines if line.get_label() == "this run")
    assert curve.get_xdata().tolist() == found.confidence[there].tolist()
    assert curve.get_ydata().tolist() == found.accuracy[there].tolist()
    assert [bar.get_height() for bar in bottom.patches] == found.counts.tolist()
    assert top.get_ylabel() == "accuracy: share of correct predictions"
    assert bottom.get_xlabel() == "confidence: probability of the predicted class (mean of each bin)"
    low, high = top.get_ylim()
    assert low <= min(curve.get_ydata())
    assert high >= 1
