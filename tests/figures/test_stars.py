"""Tests of the figures of stars: their content, not their style."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from figures_support import check_inside, legend_of
from firstlight.figures.stars import OUTLINE, plot_predicted_per_star, plot_probability_per_star

STARS = ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]
PROBABILITY = np.array([0.02, 0.03, 0.92, 0.51, 0.97, 0.98, 1.0])
TRUE_STARS = np.array([1, 1, 1, 3, 5, 5, 5])

pytestmark = pytest.mark.usefixtures("warnings_are_errors")


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


# --- the probability of "positive" ---


def test_each_star_that_occurs_has_a_panel_of_shares_with_its_n_and_mean() -> None:
    figure = plot_probability_per_star(PROBABILITY, TRUE_STARS)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["1 star\nn = 3, mean 0.32", "3 stars\nn = 1, mean 0.51", "5 stars\nn = 3, mean 0.98"]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "not in the training data", ""]
    assert len({(*axes.get_xlim(), *axes.get_ylim()) for axes in figure.axes}) == 1
    heights = [[bar.get_height() for bar in bars(axes)] for axes in figure.axes]
    assert [sum(each) for each in heights] == pytest.approx([100] * 3)
    assert heights[0][0] == pytest.approx(200 / 3)  # 0.02 and 0.03
    assert heights[0][18] == pytest.approx(100 / 3)  # 0.92
    assert heights[2][-1] == pytest.approx(100)  # with 1.0
    assert list(np.asarray(figure.axes[0].lines[0].get_xdata())) == pytest.approx([0.97 / 3] * 2)


@pytest.mark.parametrize("present", [[3], [1, 2, 3, 4, 5]])
def test_nothing_is_cut_off_and_titles_keep_apart(present: list[int]) -> None:
    stars = np.repeat(present, 12_347)
    figure = plot_probability_per_star(np.random.default_rng(2718).uniform(size=len(stars)), stars)
    check_inside(figure)
    titles = [axes.title.get_window_extent() for axes in figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(titles))


# --- predicted classes ---

TARGETS = np.array([0, 0, 0, 0, 1, 1, 4])
PREDICTED = np.array([0, 0, 0, 1, 1, 3, 4])


def widths(axes: Axes) -> NDArray[np.float64]:
    """Return the widths of the bars, (true classes, predicted classes)."""
    return np.array([[bar.get_width() for bar in container] for container in axes.containers]).T


def test_each_line_is_a_true_class_made_of_shares_of_the_predicted() -> None:
    figure = plot_predicted_per_star(PREDICTED, TARGETS, STARS)
    axes = figure.axes[0]
    assert widths(axes)[:4].tolist() == [[75, 25, 0, 0, 0], [0, 50, 0, 50, 0], [0] * 5, [0] * 5]
    starts = np.array([[bar.get_x() for bar in container] for container in axes.containers]).T
    np.testing.assert_allclose(starts[:, 1:], (starts + widths(axes))[:, :-1])
    assert axes.yaxis_inverted()  # the first class is on top
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert (labels[0], labels[2]) == ("1 star  (n = 4)", "3 stars  (n = 0)")
    assert [text.get_position()[1] for text in axes.texts if text.get_text() == "no examples"] == [2, 3]
    assert legend_of(figure) == [*STARS, "correct"]
    outlined = [
        (row, column)
        for column, container in enumerate(axes.containers)
        for row, bar in enumerate(container)
        if (bar.get_edgecolor(), bar.get_linewidth()) == (to_rgba(OUTLINE["edgecolor"]), OUTLINE["linewidth"])
    ]
    assert outlined == [(0, 0), (1, 1), (4, 4)]  # the correct predictions


@pytest.mark.parametrize("num_classes", [1, 20])
@pytest.mark.parametrize("name", ["{}", "$ {} stars, a name far longer than any figure has room for"])
def test_nothing_is_cut_off_for_any_number_and_length_of_names(num_classes: int, name: str) -> None:
    everything = np.arange(num_classes)
    check_inside(plot_predicted_per_star(everything, everything, [name.format(index) for index in everything]))
