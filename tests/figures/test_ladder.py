"""Tests of the figure of an ablation: its content, not its style."""

import numpy as np
import pytest
from matplotlib.axes import Axes

from figures_support import check_inside
from firstlight.figures.ablations import plot_ladder

NAMES = ["one_head", "heads", "feed_forward", "residuals", "pre_norm"]
LOSSES = [2.391, 2.357, 2.203, 2.117, 2.019]
PUBLISHED = [2.476, None, None, None, 2.024]
pytestmark = pytest.mark.usefixtures("warnings_are_errors")


def points(axes: Axes, label: str) -> list[tuple[float, float]]:
    """Return (loss, row) of the points of one legend entry."""
    for line in axes.lines:
        if line.get_label() == label:
            return list(zip(*map(np.ndarray.tolist, map(np.asarray, line.get_data())), strict=True))
    return []


def test_every_rung_has_its_loss_lower_rungs_first_and_its_published_loss() -> None:
    (axes,) = plot_ladder(NAMES, LOSSES, PUBLISHED).axes
    assert points(axes, "measured") == [(loss, row) for row, loss in enumerate(LOSSES)]
    assert points(axes, "the 2023 post") == [(2.476, 0), (2.024, 4)]
    assert not axes.yaxis_inverted()
    assert [label.get_text() for label in axes.get_yticklabels()] == [name.replace("_", " ") for name in NAMES]
    assert [(text.get_text(), *text.xy) for text in axes.texts] == [
        (f"{loss:.3f}", loss, row) for row, loss in enumerate(LOSSES)
    ]


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("order", [1, -1, 0], ids=["falling", "rising", "equal"])
def test_the_legend_covers_no_point_and_no_number(order: int, count: int) -> None:
    losses = LOSSES[:count][::order] if order else [2.3] * count
    figure = plot_ladder(NAMES[:count], losses, PUBLISHED[:count][:: order or 1])
    check_inside(figure)
    (axes,) = figure.axes
    box = axes.get_legend().get_window_extent()
    assert not any(box.overlaps(text.get_window_extent()) for text in axes.texts)
    for x, y in [*points(axes, "measured"), *points(axes, "the 2023 post")]:
        assert not order or not box.contains(*axes.transData.transform((x, y)))


def test_a_series_without_published_losses_has_no_legend_and_unequal_lists_are_an_error() -> None:
    (axes,) = plot_ladder(NAMES, LOSSES, [None] * 5).axes
    assert axes.get_legend() is None
    with pytest.raises(ValueError, match="zip"):
        plot_ladder(NAMES, LOSSES, PUBLISHED[:3])
