"""Tests of the figure of an ablation: its content, not its style."""

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firstlight.figures.ladder import plot_ladder

NAMES = ["one_head", "heads", "feed_forward", "residuals", "pre_norm"]
LOSSES = [2.391, 2.357, 2.203, 2.117, 2.019]
PUBLISHED = [2.476, None, None, None, 2.024]


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


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


def test_every_rung_has_its_loss_lower_rungs_first() -> None:
    (axes,) = draw().axes
    assert points(axes, "measured") == [(loss, row) for row, loss in enumerate(LOSSES)]
    assert not axes.yaxis_inverted()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "one head",
        "heads",
        "feed forward",
        "residuals",
        "pre norm",
    ]
    assert axes.get_yticks().tolist() == [0, 1, 2, 3, 4]


def test_what_was_published_has_a_diamond_and_what_was_not_has_none() -> None:
    (axes,) = draw().axes
    assert points(axes, "the 2023 post") == [(2.476, 0), (2.024, 4)]


def test_without_published_figures_the_legend_names_none() -> None:
    (axes,) = draw(published=[None] * 5).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["measured"]


def test_every_loss_is_written_at_its_point() -> None:
    (axes,) = draw().axes
    assert [(text.get_text(), *text.xy) for text in axes.texts] == [
        (f"{loss:.3f}", loss, row) for row, loss in enumerate(LOSSES)
    ]


def test_all_points_are_in_view() -> None:
    (axes,) = draw(published=[2.9, None, None, None, 1.7]).axes
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    assert left < 1.7
    assert right > 2.9
    assert bottom < 0
    assert top > 4


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("order", [1, -1], ids=["falling", "rising"])
def test_the_legend_covers_no_point_and_no_number(order: int, count: int) -> None:
    figure = draw(NAMES[:count], LOSSES[:count][::order], PUBLISHED[:count][::order])
    (axes,) = figure.axes
    box = axes.get_legend().get_window_extent()
    assert not any(box.overlaps(text.get_window_extent()) for text in axes.texts)
    for x, y in [*points(axes, "measured"), *points(axes, "the 2023 post")]:
        assert not box.contains(*axes.transData.transform((x, y)))


@pytest.mark.parametrize("count", [1, 2, 7, 13])
def test_nothing_is_cut_off_for_any_number_of_rungs(count: int) -> None:
    figure = draw([f"rung_{number}" for number in range(count)], [2.5 - 0.01 * n for n in range(count)], [None] * count)
    content = figure.get_tightbbox()  # inches
    assert content.x0 >= 0
    assert content.y0 >= 0
    assert content.x1 <= figure.get_figwidth()
    assert content.y1 <= figure.get_figheight()


def test_equal_losses_can_be_drawn() -> None:
    (axes,) = draw(losses=[2.3] * 5, published=[None] * 5).axes
    assert len(points(axes, "measured")) == 5


def test_the_axis_says_what_it_measures() -> None:
    (axes,) = draw().axes
    assert axes.get_xlabel() == "validation loss (nats per character); lower is better"


def test_a_figure_of_unequal_lists_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        plot_ladder(NAMES, LOSSES, PUBLISHED[:3])
