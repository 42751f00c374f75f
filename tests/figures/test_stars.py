"""Tests of the figures of stars: their content, not their style."""

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from firstlight.figures.stars import OUTLINE, plot_predicted_per_star, plot_probability_per_star

STARS = ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]
PROBABILITY = np.array([0.02, 0.03, 0.92, 0.51, 0.97, 0.98, 1.0])
TRUE_STARS = np.array([1, 1, 1, 3, 5, 5, 5])


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def assert_inside(figure: Figure) -> None:
    figure.draw_without_rendering()
    content = figure.get_tightbbox()  # inches
    assert content.x0 >= 0
    assert content.y0 >= 0
    assert content.x1 <= figure.get_figwidth()
    assert content.y1 <= figure.get_figheight()


# --- the probability of "positive" ---


def test_each_star_that_occurs_has_a_panel_with_its_n_and_mean() -> None:
    figure = plot_probability_per_star(PROBABILITY, TRUE_STARS)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["1 star\nn = 3, mean 0.32", "3 stars\nn = 1, mean 0.51", "5 stars\nn = 3, mean 0.98"]


def test_bars_are_shares_of_the_reviews_with_that_star() -> None:
    figure = plot_probability_per_star(PROBABILITY, TRUE_STARS)
    for axes in figure.axes:
        assert sum(bar.get_height() for bar in bars(axes)) == pytest.approx(100)
    one_star = [bar.get_height() for bar in bars(figure.axes[0])]
    assert one_star[0] == pytest.approx(200 / 3)  # 0.02 and 0.03
    assert one_star[18] == pytest.approx(100 / 3)  # 0.92


def test_probabilities_of_zero_and_one_are_counted() -> None:
    heights = [
        bar.get_height() for bar in bars(plot_probability_per_star(np.array([0.0, 1.0]), np.array([2, 2])).axes[0])
    ]
    assert (heights[0], heights[-1]) == (50, 50)


def test_the_dashed_line_stands_at_the_mean() -> None:
    figure = plot_probability_per_star(PROBABILITY, TRUE_STARS)
    assert list(np.asarray(figure.axes[0].lines[0].get_xdata())) == pytest.approx([0.97 / 3] * 2)


def test_only_the_three_star_panel_says_that_it_was_never_trained_on() -> None:
    figure = plot_probability_per_star(PROBABILITY, TRUE_STARS)
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "not in the training data", ""]


def test_panels_share_their_axes() -> None:
    figure = plot_probability_per_star(PROBABILITY, TRUE_STARS)
    assert len({(*axes.get_xlim(), *axes.get_ylim()) for axes in figure.axes}) == 1


@pytest.mark.parametrize("present", [[1], [3], [1, 2, 4, 5], [1, 2, 3, 4, 5]])
def test_nothing_is_cut_off_and_titles_keep_apart(present: list[int]) -> None:
    stars = np.repeat(present, 12_347)
    figure = plot_probability_per_star(np.random.default_rng(2718).uniform(size=len(stars)), stars)
    assert_inside(figure)
    titles = [axes.title.get_window_extent() for axes in figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(titles))


@pytest.mark.parametrize(
    ("probability", "stars", "message"),
    [
        (np.zeros(3), np.ones(2, dtype=int), r"probability has shape \(3,\) and stars \(2,\); pass \(n,\) for both"),
        (np.zeros((3, 1)), np.ones((3, 1), dtype=int), r"probability has shape \(3, 1\)"),
        (np.zeros(0), np.zeros(0, dtype=int), "empty; pass at least one review"),
        (np.array([1.5]), np.array([1]), "outside of 0 to 1; pass the sigmoid of the logits"),
        (np.array([np.nan]), np.array([1]), "outside of 0 to 1"),
        (np.array([0.5]), np.array([0]), "stars has the value 0; all values must be from 1 to 5"),
        (np.array([0.5]), np.array([1.0]), "stars has the type float64; pass integers"),
    ],
)
def test_other_probabilities_or_stars_are_an_error(
    probability: NDArray[Any], stars: NDArray[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plot_probability_per_star(probability, stars)


# --- predicted classes ---

TARGETS = np.array([0, 0, 0, 0, 1, 1, 4])
PREDICTED = np.array([0, 0, 0, 1, 1, 3, 4])


def widths(axes: Axes) -> NDArray[np.float64]:
    """Return the widths of the bars, (true classes, predicted classes)."""
    return np.array([[bar.get_width() for bar in container] for container in axes.containers]).T


def test_each_line_is_a_true_class_made_of_shares_of_the_predicted() -> None:
    axes = plot_predicted_per_star(PREDICTED, TARGETS, STARS).axes[0]
    assert widths(axes)[0].tolist() == [75, 25, 0, 0, 0]
    assert widths(axes)[1].tolist() == [0, 50, 0, 50, 0]
    assert axes.yaxis_inverted()  # the first class is on top


def test_bars_of_a_line_follow_one_another() -> None:
    axes = plot_predicted_per_star(PREDICTED, TARGETS, STARS).axes[0]
    starts = np.array([[bar.get_x() for bar in container] for container in axes.containers]).T
    np.testing.assert_allclose(starts[:, 1:], (starts + widths(axes))[:, :-1])


def test_n_is_given_for_each_true_class() -> None:
    axes = plot_predicted_per_star(PREDICTED, TARGETS, STARS).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "1 star  (n = 4)"
    assert labels[2] == "3 stars  (n = 0)"


def test_a_class_without_examples_says_so_and_draws_no_nan() -> None:
    axes = plot_predicted_per_star(PREDICTED, TARGETS, STARS).axes[0]
    assert np.isfinite(widths(axes)).all()
    assert [text.get_position()[1] for text in axes.texts if text.get_text() == "no examples"] == [2, 3]


def test_no_examples_at_all_draw_empty_lines() -> None:
    nothing = np.zeros(0, dtype=int)
    figure = plot_predicted_per_star(nothing, nothing, STARS)
    assert widths(figure.axes[0]).sum() == 0
    assert_inside(figure)


def test_only_correct_predictions_are_outlined() -> None:
    axes = plot_predicted_per_star(PREDICTED, TARGETS, STARS).axes[0]
    outlined = [
        (row, column)
        for column, container in enumerate(axes.containers)
        for row, bar in enumerate(container)
        if (bar.get_edgecolor(), bar.get_linewidth()) == (to_rgba(OUTLINE["edgecolor"]), OUTLINE["linewidth"])
    ]
    assert outlined == [(0, 0), (1, 1), (4, 4)]


def test_the_legend_names_every_class_in_order() -> None:
    legend = plot_predicted_per_star(PREDICTED, TARGETS, STARS).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [*STARS, "correct"]


@pytest.mark.parametrize("num_classes", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5)), 20])  # between
@pytest.mark.parametrize("name", ["{}", "$ {} stars", "a name far longer than any figure has room for, number {}"])
def test_nothing_is_cut_off_for_any_number_and_length_of_names(num_classes: int, name: str) -> None:
    everything = np.arange(num_classes)
    assert_inside(plot_predicted_per_star(everything, everything, [name.format(index) for index in everything]))


@pytest.mark.parametrize(
    ("predicted", "targets", "message"),
    [
        (np.array([1, 2]), np.array([1]), r"predicted has shape \(2,\) and targets \(1,\)"),
        (np.array([5]), np.array([1]), "predicted has the value 5; all values must be from 0 to 4"),
        (np.array([1]), np.array([-1]), "targets has the value -1"),
        (np.array([0.7]), np.array([1]), "predicted has the type float64"),
    ],
)
def test_other_indices_are_an_error(predicted: NDArray[Any], targets: NDArray[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_predicted_per_star(predicted, targets, STARS)


def test_no_classes_is_an_error() -> None:
    with pytest.raises(ValueError, match="classes is empty"):
        plot_predicted_per_star(np.zeros(0, dtype=int), np.zeros(0, dtype=int), [])
