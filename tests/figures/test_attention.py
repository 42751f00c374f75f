"""Tests of the attention figures: their content, not their style."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray

from figures_support import check_inside, check_readable
from firstlight.figures.attention import plot_attention_grid, plot_attention_heads

WRITTEN = ["Ein", "Hund", "spielt", ".", "[END]"]
SOURCE = ["A", "dog", "plays"]
pytestmark = pytest.mark.usefixtures("warnings_are_errors")


def shares(num_heads: int, num_queries: int, num_keys: int) -> NDArray[np.float32]:
    """Return random weights, (heads, queries, keys), in which each row sums to 1."""
    return np.random.default_rng(0).dirichlet(np.ones(num_keys), (num_heads, num_queries)).astype(np.float32)


def draw(num_heads: int = 3, queries: Sequence[str] = WRITTEN, keys: Sequence[str] = SOURCE) -> Figure:
    """Return a figure that was rendered once, so that warnings of the renderer are raised."""
    figure = plot_attention_heads(shares(num_heads, len(queries), len(keys)), queries, keys)
    figure.draw_without_rendering()
    return figure


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_title()]


def labels(axes: Axes) -> tuple[list[Text], list[Text]]:
    """Return the labels of the rows and of the columns."""
    return axes.get_yticklabels(), axes.get_xticklabels()


def texts(axes: Axes) -> tuple[list[str], list[str]]:
    rows, columns = labels(axes)
    return [label.get_text() for label in rows], [label.get_text() for label in columns]


def words(count: int, word: str = "wort") -> list[str]:
    return [f"{word}{number}" for number in range(count)]


def test_every_head_has_a_panel_with_its_weights_on_one_scale() -> None:
    figure = draw(2)
    found = panels(figure)
    assert [axes.get_title() for axes in found] == ["Head 1", "Head 2"]
    for axes, expected in zip(found, shares(2, 5, 3), strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), expected)
        assert axes.images[0].get_clim() == (0, shares(2, 5, 3).max())
        assert texts(axes) == (WRITTEN, SOURCE)
        assert axes.yaxis_inverted()  # the first token is on top
        assert (axes.get_yticks().tolist(), axes.get_xticks().tolist()) == ([0, 1, 2, 3, 4], [0, 1, 2])
    (bar,) = [axes for axes in figure.axes if axes.get_ylabel()]
    assert bar.get_ylim()[0] == 0
    figure = plot_attention_heads(shares(1, 5, 3), WRITTEN, SOURCE, "Cross-attention at $5")
    assert figure.get_suptitle() == "Cross-attention at $5"
    figure.draw_without_rendering()


def test_a_dollar_is_a_dollar_and_a_long_token_is_shortened() -> None:
    (axes,) = panels(draw(1, ["$x_1$", "$\\frac$", "a_b^c"], ["5$", "Donaudampfschifffahrt", "two\nlines"]))
    assert texts(axes) == (["$x_1$", "$\\frac$", "a_b^c"], ["5$", "Donaudampfsch…", "two lines"])
    assert not any(label.get_parse_math() for side in labels(axes) for label in side)


@pytest.mark.parametrize(("num_heads", "num_queries", "num_keys"), [(1, 12, 13), (8, 2, 1), (1, 40, 40), (2, 3, 110)])
def test_nothing_is_cut_off_stretched_or_covered(num_heads: int, num_queries: int, num_keys: int) -> None:
    """Draw several numbers of heads and tokens. Up to forty tokens all have a label."""
    figure = draw(num_heads, words(num_queries, "einundzwanzig"), words(num_keys))
    check_inside(figure)
    for axes in panels(figure):
        box = axes.get_window_extent()
        assert box.width / num_keys == pytest.approx(box.height / num_queries, rel=1e-3)
        rows, columns = ([label.get_window_extent() for label in side] for side in labels(axes))
        assert all(lower.y1 <= upper.y0 + 0.5 for upper, lower in pairwise(rows))  # half a pixel
        assert all(left.x1 <= right.x0 + 0.5 for left, right in pairwise(columns))
        assert min(label.get_fontsize() for side in labels(axes) for label in side) >= 6
        assert max(num_queries, num_keys) > 40 or (len(rows), len(columns)) == (num_queries, num_keys)
    titles = [axes.title.get_window_extent() for axes in panels(figure)]
    boxes = [axes.get_tightbbox(for_layout_only=True) for axes in figure.axes if axes.axison]  # without titles
    for parts in (titles, boxes):
        assert not any(one.overlaps(other) for i, one in enumerate(parts) for other in parts[:i])


def test_many_tokens_make_no_column_of_tall_panels() -> None:
    figure = draw(4, "a" * 64, "a" * 64)
    check_inside(figure)
    assert figure.get_figheight() < 12
    assert all(axes.images[0].norm(0.25) > 0.25 for axes in panels(figure))  # small weights are visible


def test_the_grid_has_a_row_for_each_block_and_a_column_for_each_head() -> None:
    maps = {"encoder block 1": shares(3, 7, 7), "decoder block 1, cross-attention": shares(2, 5, 7)}
    figure = plot_attention_grid(maps)
    check_readable(figure)
    found = panels(figure)
    assert [axes.get_title() for axes in found] == ["head 1", "head 2", "head 3", "head 1", "head 2"]
    for axes, weights in zip(found, [*maps["encoder block 1"], *shares(2, 5, 7)], strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), weights)
        assert axes.images[0].norm.vmax == max(weights.max() for weights in maps.values())
    assert found[0].get_ylabel() == "encoder block 1\nquery position"
    assert found[3].get_ylabel() == "decoder block 1\ncross-attention\nquery position"
    assert found[3].get_xlabel() == "key position"
    (bar,) = [axes for axes in figure.axes if axes.get_ylabel().startswith("attention weight")]
    assert bar.get_ylim()[0] == 0


def test_a_grid_leaves_no_empty_space() -> None:
    figure = plot_attention_grid({f"block {i}": shares(2, 40, 3) for i in range(2)})
    check_readable(figure)
    boxes = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
    content = max(box.y1 for box in boxes) - min(box.y0 for box in boxes)
    assert content > figure.bbox.height - 130  # pixels: the heading and a margin
