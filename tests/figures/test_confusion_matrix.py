"""Tests of the confusion matrix: its content, not its style."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from firstlight.figures import style
from firstlight.figures.confusion_matrix import confusion_table, plot_confusion_matrix

CLASSES = ["negative", "neutral", "positive"]
COUNTS = np.array([[7, 2, 1], [0, 0, 0], [3, 11, 1006]])


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def draw(counts: NDArray[Any], classes: list[str]) -> tuple[Axes, Axes]:
    """Return the panels of counts and of percentages, rendered once so that warnings of the renderer are raised."""
    figure = plot_confusion_matrix(counts, classes)
    figure.draw_without_rendering()
    return figure.axes[0], figure.axes[1]


def drawn(axes: Axes) -> np.ma.MaskedArray[Any, Any]:
    return np.ma.asarray(axes.images[0].get_array())


def cell_texts(axes: Axes) -> dict[tuple[int, int], str]:
    """Return the texts of the cells by (row, column)."""
    return {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in axes.texts}


def test_rows_are_true_classes() -> None:
    counts, _ = draw(COUNTS, CLASSES)
    np.testing.assert_array_equal(drawn(counts), COUNTS)
    assert (counts.get_xlabel(), counts.get_ylabel()) == ("predicted", "true")
    assert cell_texts(counts)[2, 1] == "11"  # truly positive, predicted neutral
    assert counts.yaxis_inverted()  # row 0 is on top


def test_each_row_of_shares_adds_up_to_a_hundred() -> None:
    _, percent = draw(COUNTS, CLASSES)
    np.testing.assert_allclose(drawn(percent)[[0, 2]].sum(axis=1), 100)
    assert cell_texts(percent)[0, 0] == "70.0%"


def test_a_class_without_examples_draws_no_nan() -> None:
    _, percent = draw(COUNTS, CLASSES)
    assert np.isfinite(drawn(percent).data).all()
    assert drawn(percent).mask.tolist() == [[False] * 3, [True] * 3, [False] * 3]
    assert [cell_texts(percent)[1, column] for column in range(3)] == ["–"] * 3


def test_a_matrix_of_zeros_is_drawn() -> None:
    counts, percent = draw(np.zeros((2, 2), dtype=int), CLASSES[:2])
    assert set(cell_texts(counts).values()) == {"0"}
    assert set(cell_texts(percent).values()) == {"–"}


def test_text_is_white_on_dark_cells_and_dark_on_light_ones() -> None:
    counts, _ = draw(COUNTS, CLASSES)
    colors = {text.get_text(): text.get_color() for text in counts.texts}
    assert colors["1,006"] == "white"
    assert colors["7"] == style.INK


def test_both_panels_have_a_colour_bar_from_zero_and_shares_end_at_a_hundred() -> None:
    counts, percent = draw(COUNTS, CLASSES)
    assert counts.images[0].get_clim() == (0, 1006)
    assert percent.images[0].get_clim() == (0, 100)
    assert all(axes.images[0].colorbar is not None for axes in (counts, percent))


@pytest.mark.parametrize("num_classes", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, 11, 20)), 31])
def test_panels_are_square_and_text_fits_its_cell_for_any_number_of_classes(num_classes: int) -> None:
    counts = np.random.default_rng(2718).integers(0, 10_000, (num_classes, num_classes))
    figure = plot_confusion_matrix(counts, [f"class number {index}" for index in range(num_classes)])
    for axes in figure.axes[:2]:
        panel = axes.get_window_extent()
        assert panel.width == pytest.approx(panel.height, abs=1)
        longest = max(axes.texts, key=lambda text: len(text.get_text()), default=None)
        assert longest is None or longest.get_window_extent().width < panel.width / num_classes


@pytest.mark.slow  # 0.9 s; a matrix of 31 classes is drawn above
def test_text_too_small_to_read_is_dropped() -> None:
    counts, _ = draw(np.full((23, 23), 12_345), [f"class {index}" for index in range(23)])
    assert not cell_texts(counts)


def test_among_many_classes_zeros_are_left_out() -> None:
    counts, percent = draw(7 * np.eye(13, dtype=int), [f"class {index}" for index in range(13)])
    diagonal = [(index, index) for index in range(13)]
    assert cell_texts(counts) == dict.fromkeys(diagonal, "7")
    assert cell_texts(percent) == dict.fromkeys(diagonal, "100")


@pytest.mark.parametrize("num_classes", [2, 5, 20])
def test_nothing_is_cut_off_when_names_are_long(num_classes: int) -> None:
    names = [f"a name far longer than any figure has room for, number {index}" for index in range(num_classes)]
    figure = plot_confusion_matrix(np.eye(num_classes, dtype=int), names)
    assert_inside(figure)


def assert_inside(figure: Figure) -> None:
    content = figure.get_tightbbox()  # inches
    assert content.x0 >= 0
    assert content.y0 >= 0
    assert content.x1 <= figure.get_figwidth()
    assert content.y1 <= figure.get_figheight()


def test_names_stand_at_rows_and_columns_as_given() -> None:
    counts, percent = draw(COUNTS, CLASSES)
    for axes in (counts, percent):
        assert [label.get_text() for label in axes.get_xticklabels()] == CLASSES
    assert [label.get_text() for label in counts.get_yticklabels()] == CLASSES


def test_a_dollar_in_a_name_is_no_mathematics() -> None:
    counts, _ = draw(COUNTS, ["$5", "$6_{}^", "$7$"])
    assert [label.get_text() for label in counts.get_yticklabels()] == ["$5", "$6_{}^", "$7$"]


def test_the_table_has_a_row_for_each_cell_in_plain_types() -> None:
    rows = confusion_table(COUNTS, CLASSES)
    assert len(rows) == 9
    assert rows[7] == {"true": "positive", "predicted": "neutral", "count": 11, "share_of_true": 11 / 1020}
    assert {type(value) for row in rows for value in row.values()} == {str, int, float, type(None)}


def test_the_table_gives_no_share_for_a_class_without_examples() -> None:
    assert [row["share_of_true"] for row in confusion_table(COUNTS, CLASSES) if row["true"] == "neutral"] == [None] * 3


@pytest.mark.parametrize("function", [plot_confusion_matrix, confusion_table])
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.zeros((2, 3), dtype=int), r"shape \(2, 3\) for 3 classes; pass one row and one column for each class"),
        (np.zeros((5, 5), dtype=int), r"shape \(5, 5\) for 3 classes"),
        (np.zeros(3, dtype=int), r"shape \(3,\) for 3 classes"),
        (np.eye(3), "has the type float64; pass integers, not shares"),
        (-7 * np.eye(3, dtype=int), "negative value -7"),
    ],
)
def test_other_than_square_counts_of_the_classes_is_an_error(function: Any, counts: NDArray[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(counts, CLASSES)


def test_no_classes_is_an_error() -> None:
    with pytest.raises(ValueError, match="for 0 classes"):
        plot_confusion_matrix(np.zeros((0, 0), dtype=int), [])
