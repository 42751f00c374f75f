"""Tests of the figures of a scaling law: what they show, not their style."""

import numpy as np
import pytest

from firstlight.figures.scaling import plot_scaling_fit, plot_scaling_frontier

SIZES = np.repeat([2e3, 9e3, 40e3], 2)
TOKENS = np.tile([1e5, 4e5], 3)
FRONTIER = np.array([[1e9, 2e3], [1e10, 7e3], [1e11, 2e4]])
pytestmark = pytest.mark.usefixtures("warnings_are_errors")


def law(size: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    return 1.5 + 30 / size**0.5 + 500 / tokens**0.6


def test_each_budget_and_each_size_has_its_line_and_its_points() -> None:
    held_out = SIZES == 40e3
    figure = plot_scaling_fit(SIZES, TOKENS, law(SIZES, TOKENS) + 0.01, law, held_out=held_out, unit="loss")
    figure.draw_without_rendering()
    left, right = figure.axes
    names = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in (left, right)]
    assert names == [["100 k", "400 k", "held out"], ["2 k", "9 k", "40 k"]]
    line = left.lines[0]
    assert line.get_ydata()[0] == pytest.approx(law(2e3, 1e5))
    of_budget = left.lines[1]
    assert of_budget.get_xdata().tolist() == [2e3, 9e3]
    assert of_budget.get_ydata() == pytest.approx(law(SIZES, TOKENS)[[0, 2]] + 0.01)
    hollow = [each for each in right.lines if str(each.get_markerfacecolor()) == "white"]
    assert [each.get_xdata().tolist() for each in hollow if len(each.get_xdata())] == [[6 * 40e3 * 1e5, 6 * 40e3 * 4e5]]


def test_the_frontier_shows_the_optimum_of_each_compute_and_its_band() -> None:
    figure = plot_scaling_frontier(SIZES, TOKENS, law, FRONTIER, band=FRONTIER[:, 1:] * [0.5, 2])
    figure.draw_without_rendering()
    left, right, bar = figure.axes
    assert bar.get_ylim()[0] <= law(SIZES, TOKENS).min() < bar.get_ylim()[1]
    best = next(line for line in left.lines if line.get_label() == "compute-optimal size N*")
    assert best.get_xydata() == pytest.approx(FRONTIER)
    assert left.get_xscale() == left.get_yscale() == right.get_xscale() == "log"
    marks = [line.get_xdata()[0] for line in right.lines if line.get_marker() == "D"]
    assert marks
    assert set(marks) <= set(FRONTIER[:, 1])
