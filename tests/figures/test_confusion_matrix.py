"""Tests of the confusion matrix: its content, not its style."""

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from numpy.typing import NDArray

from figures_support import check_inside
from firstlight.figures import style
from firstlight.figures.confusion_matrix import confusion_table, plot_confusion_matrix

CLASSES = ["negative", "neutral", "positive"]
COUNTS = np.array([[7, 2, 1], [0, 0, 0], [3, 11, 1006]])
pytestmark = pytest.mark.usefixtures("warnings_are_errors")


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


def test_rows_are_true_classes_and_shares_are_of_a_row() -> None:
    counts, percent = draw(COUNTS, CLASSES)
    np.testing.assert_array_equal(drawn(counts), COUNTS)
    assert (counts.get_xlabel(), counts.get_ylabel()) == ("predicted", "true")
    assert cell_texts(counts)[2, 1] == "11"  # truly positive, predicted neutral
    assert counts.yaxis_inverted()  # row 0 is on top
    assert [label.get_text() for label in counts.get_yticklabels()] == CLASSES
    assert all([label.get_text() for label in axes.get_xticklabels()] == CLASSES for axes in (counts, percent))
    np.testing.assert_allclose(drawn(percent)[[0, 2]].sum(axis=1), 100)
    assert cell_texts(percent)[0, 0] == "70.0%"
    assert [axes.images[0].get_clim() for axes in (counts, percent)] == [(0, 1006), (0, 100)]
    assert all(axes.images[0].colorbar is not None for axes in (counts, percent))
    assert np.isfinite(drawn(percent).data).all()  # the second class has no examples
    assert drawn(percent).mask.tolist() == [[False] * 3, [True] * 3, [False] * 3]
    assert [cell_texts(percent)[1, column] for column in range(3)] == ["–"] * 3


def test_text_is_white_on_dark_cells_and_dark_on_light_ones() -> None:
    counts, _ = draw(COUNTS, CLASSES)
    colors = {text.get_text(): text.get_color() for text in counts.texts}
    assert colors["1,006"] == "white"
    assert colors["7"] == style.INK


@pytest.mark.parametrize("num_classes", [1, 2, 31])
def test_panels_are_square_and_text_fits_its_cell_for_any_number_of_classes(num_classes: int) -> None:
    counts = np.random.default_rng(2718).integers(0, 10_000, (num_classes, num_classes))
    names = [f"a name of $5 far longer than any figure has room for, number {index}" for index in range(num_classes)]
    figure = plot_confusion_matrix(counts, names)
    check_inside(figure)
    for axes in figure.axes[:2]:
        panel = axes.get_window_extent()
        assert panel.width == pytest.approx(panel.height, abs=1)
        longest = max(axes.texts, key=lambda text: len(text.get_text()), default=None)
        assert longest is None or longest.get_window_extent().width < panel.width / num_classes


def test_among_many_classes_zeros_are_left_out() -> None:
    counts, percent = draw(7 * np.eye(13, dtype=int), [f"class {index}" for index in range(13)])
    diagonal = [(index, index) for index in range(13)]
    assert cell_texts(counts) == dict.fromkeys(diagonal, "7")
    assert cell_texts(percent) == dict.fromkeys(diagonal, "100")


def test_the_table_has_a_row_for_each_cell_in_plain_types() -> None:
    rows = confusion_table(COUNTS, CLASSES)
    assert len(rows) == 9
    assert rows[7] == {"true": "positive", "predicted": "neutral", "count": 11, "share_of_true": 11 / 1020}
    assert {type(value) for row in rows for value in row.values()} == {str, int, float, type(None)}
    assert [row["share_of_true"] for row in rows if row["true"] == "neutral"] == [None] * 3
