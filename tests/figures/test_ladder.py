"""Tests of the figure of an ablation: its content, not its style."""

from collections.abc import Sequence

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures_support import check_inside
from firstlight.figures.ladder import plot_ladder

NAMES = ["one_head", "heads", "feed_forward", "residuals", "pre_norm"]
LOSSES = [2.391, 2.357, 2.203, 2.117, 2.019]
PUBLISHED = [2.476, None, None, None, 2.024]
pytestmark = pytest.mark.usefixtures("warnings_are_errors")


def draw(
    names: Sequence[str] = NAMES, losses: Sequence[float] = LOSSES, published: Sequence[float | None] = PUBLISHED
) -> Figure:
    figure = plot_ladder(names, losses, published)
    figure.draw_without_rendering()
    return figure


def points(axes: Axes, label: str) -> list[tuple[float, float]]:
    """Return (loss, row) of the points of one legend entry."""
    for line in axes.lines:
        if line.get_label() == label:
            return list(zip(*map(np.ndarray.tolist, map(np.asarray, line.get_data())), strict=True))
    return []


def test_every_rung_has_its_loss_lower_rungs_first_and_its_published_loss() -> None:
    (axes,) = draw().axes
    assert points(axes, "measured") == [(loss, row) for row, loss in enumerate(LOSSES)]
    assert points(axes, "the 2023 post") == [(2.476, 0), (2.024, 4)]
    assert not axes.yaxis_inverted()
    assert [label.get_text() for label in axes.get_yticklabels()] == [name.replace("_", " ") for name in NAMES]
    assert [(text.get_text(), *text.xy) for text in axes.texts] == [
        (f"{loss:.3f}", loss, row) for row, loss in enumerate(LOSSES)
    ]


def test_without_published_figures_the_legend_names_none() -> None:
    (axes,) = draw(published=[None] * 5).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["measured"]


def test_all_points_are_in_view() -> None:
    (axes,) = draw(published=[2.9, None, None, None, 1.7]).axes
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    assert left < 1.7
    assert right > 2.9
    assert bottom < 0
    assert top > 4


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("order", [1, -1, 0], ids=["falling", "rising", "equal"])
def test_the_legend_covers_no_point_and_no_number(order: int, count: int) -> None:
    losses = LOSSES[:count][::order] if order else [2.3] * count
    figure = draw(NAMES[:count], losses, PUBLISHED[:count][:: order or 1])
    check_inside(figure)
    (axes,) = figure.axes
    box = axes.get_legend().get_window_extent()
    assert not any(box.overlaps(text.get_window_extent()) for text in axes.texts)
    for x, y in [*points(axes, "measured"), *points(axes, "the 2023 post")]:
        assert not order or not box.contains(*axes.transData.transform((x, y)))


def test_a_figure_of_unequal_lists_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        plot_ladder(NAMES, LOSSES, PUBLISHED[:3])
