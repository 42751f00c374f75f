"""Figures of attention weights, and the frames of the film of a training, which show them first."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axis import Axis
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from firstlight.figures import style

COLORS = colormaps["Blues"]
LONGEST_TOKEN = 14  # characters in a label
MOST_IN_A_ROW = 4
SMALLEST_TEXT, LARGEST_TEXT = 6.0, 8.0  # font size of a token in points
CHARACTER_WIDTH = 0.62  # mean width of a character, relative to the font size
LINE = 1.25  # height of a token with the space to the next, relative to the font size
GOOD_CELL, LARGEST_CELL = 0.19, 0.5  # inches; more panels are drawn per row while cells are at least GOOD_CELL
TALLEST_PANEL, TALLEST_COLUMN = 9.0, 18.0  # inches; a single column of panels is not taller
SCALE_LABEL = "attention weight\n(square root scale)"
BAR_LENGTH, BAR_WIDTH, BAR_SPACE = 2.0, 0.14, 0.9  # inches; the space includes the label
TITLE_SPACE, PANEL_GAP = 0.35, 0.2  # inches
LOWEST, HIGHEST = 0.35, 2.0  # limits of height / width of a panel with square cells
LOWEST_ROW = 1.4  # inches; an upright label does not fit next to a lower row
FRAME_HEIGHT = 6.5  # inches


def plot_attention_heads(
    weights: NDArray[np.floating], queries: Sequence[str], keys: Sequence[str], title: str = "Attention"
) -> Figure:
    """Plot the attention weights of one layer as one heat map for each head.

    Each row is a token that attends (a query). Each column is a token that is attended to (a key). Cells are square.
    The color scale follows the square root of the weight, from 0 to the highest weight. Small weights are therefore
    visible. If there are many tokens, only every second or third token has a label.

    Args:
        weights: (heads, queries, keys) float; each row sums to 1.
        queries: the tokens of the rows, (queries,) strings.
        keys: the tokens of the columns, (keys,) strings.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `weights` does not match the numbers of queries and keys, or is empty.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_attention_heads
        >>> weights = np.full((2, 3, 3), 1 / 3)  # two heads, three tokens
        >>> figure = plot_attention_heads(weights, queries=["How", "now", "?"], keys=["How", "now", "?"])
        >>> [axes.get_title() for axes in figure.axes[:2]]
        ['Head 1', 'Head 2']
    """
    weights = style.shaped("weights", weights, heads=None, queries=len(queries), keys=len(keys))
    query_names, key_names = _names(queries), _names(keys)
    num_columns, cell = _grid(len(weights), query_names, key_names)
    num_rows = -(-len(weights) // num_columns)
    panel_height = len(queries) * cell + _inches(key_names) + TITLE_SPACE + PANEL_GAP
    height = max(num_rows * panel_height, BAR_LENGTH) + TITLE_SPACE
    figure = style.new_figure(title, height)
    figure.set_layout_engine("compressed", w_pad=style.MARGIN, h_pad=style.MARGIN)  # keeps cells square
    panels = figure.subplots(num_rows, num_columns, squeeze=False)
    scale = PowerNorm(0.5, 0, float(weights.max()))
    for head, (axes, of_head) in enumerate(zip(panels.flat, weights, strict=False), start=1):
        style.label_axes(axes, "", "", f"Head {head}")
        image = axes.imshow(of_head, cmap=COLORS, norm=scale)
        _name_tokens(axes.xaxis, key_names, cell)
        _name_tokens(axes.yaxis, query_names, cell)
        axes.tick_params(axis="x", rotation=90)
    for axes in panels.flat[len(weights) :]:
        axes.set_axis_off()
    shape = {"shrink": BAR_LENGTH / height, "aspect": BAR_LENGTH / BAR_WIDTH}
    style.color_bar(image, figure, ax=panels, label=SCALE_LABEL, **shape)
    for label, write, tokens in (("key", figure.supxlabel, keys), ("query", figure.supylabel, ())):
        write(style.with_signs(label, tokens), fontsize=style.LABEL_SIZE, color=style.SOFT)
    return figure


def _names(tokens: Sequence[str]) -> list[str]:
    return [style.shorten(token, LONGEST_TOKEN) for token in tokens]


def _inches(names: Sequence[str]) -> float:
    """Return an upper bound of the width of the longest name, in inches."""
    return (max(map(len, names)) * CHARACTER_WIDTH + 1) * LARGEST_TEXT / 72


def _grid(num_heads: int, queries: Sequence[str], keys: Sequence[str]) -> tuple[int, float]:
    """Return the number of panels in a row, and the width and height of a cell in inches.

    The number is the largest that keeps cells at GOOD_CELL or more. Two panels are also allowed if the names remain
    readable, or if a single column would be taller than TALLEST_COLUMN. Any number is allowed if a single panel would
    not have larger cells.
    """

    def cell(num_columns: int) -> float:
        panel_width = (style.WIDTH - BAR_SPACE) / num_columns - _inches(queries) - PANEL_GAP
        return min(panel_width / len(keys), TALLEST_PANEL / len(queries), LARGEST_CELL)

    columns = range(min(num_heads, MOST_IN_A_ROW), 0, -1)
    is_tall = num_heads * len(queries) * cell(1) > TALLEST_COLUMN
    wanted = [GOOD_CELL if number > 2 else 0 if is_tall else SMALLEST_TEXT * LINE / 72 for number in columns]
    chosen = next(number for number, size in zip(columns, wanted, strict=True) if cell(number) >= min(size, cell(1)))
    balanced = -(-num_heads // -(-num_heads // chosen))  # two rows of two instead of three and one
    return balanced, cell(balanced)


def _name_tokens(axis: Axis, names: Sequence[str], cell: float) -> None:
    """Write the names of tokens along an axis, of every second or third one if cells are narrow. cell: inches."""
    size = min(max(cell * 72 / LINE, SMALLEST_TEXT), LARGEST_TEXT)
    step = int(np.ceil(size * LINE / 72 / cell - 1e-6))
    axis.set_ticks(range(0, len(names), step), names[::step])
    for label in axis.get_ticklabels():
        label.set(fontsize=size, parse_math=False)


def plot_attention_grid(maps: Mapping[str, NDArray[np.floating]], *, title: str = "Attention") -> Figure:
    """Plot the attention weights of a network as a grid of heat maps: one row for each layer, one column for each head.

    The color scale follows the square root of the weight, from 0 to the highest weight of all maps. Small weights are
    therefore visible.

    Args:
        maps: name of the layer -> its weights, (heads, queries, keys) float; each row sums to 1. In the figure, a line
            break replaces ", " in a name.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if there are no maps, or a map is empty or does not have three axes.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_attention_grid
        >>> weights = np.full((2, 5, 5), 0.2)  # two heads, five tokens
        >>> figure = plot_attention_grid({"block 1": weights, "block 2": weights})
        >>> [axes.get_title() for axes in figure.axes[:4]]
        ['head 1', 'head 2', 'head 1', 'head 2']
    """
    if not maps:
        raise ValueError("maps is empty; pass at least one array of shape (heads, queries, keys)")
    maps = {name: style.shaped(name, each, heads=None, queries=None, keys=None) for name, each in maps.items()}
    num_columns = max(len(weights) for weights in maps.values())
    side = min((style.WIDTH - 1.6) / num_columns, max(2.6, 7 / len(maps)))
    shapes = [weights.shape[1] / weights.shape[2] for weights in maps.values()]
    ratios = np.clip(shapes, LOWEST, HIGHEST).tolist()
    figure = style.new_figure(title, 1.1 + sum(side * part + 0.45 for part in ratios))
    figure.set_layout_engine("compressed", w_pad=style.MARGIN, h_pad=0.5 * style.MARGIN)
    scale = PowerNorm(0.5, 0, max(float(weights.max()) for weights in maps.values()))
    grid = figure.subplots(len(maps), num_columns, squeeze=False, height_ratios=ratios)
    for row, (name, weights), shape in zip(grid, maps.items(), shapes, strict=True):
        for head, axes in enumerate(row):
            if head >= len(weights):
                axes.set_axis_off()
                continue
            style.tidy(axes)
            image = axes.imshow(weights[head], cmap=COLORS, norm=scale, interpolation="nearest")
            axes.set_aspect("equal" if LOWEST <= shape <= HIGHEST else "auto")
            style.panel_title(axes, f"head {head + 1}", style.TICK_SIZE)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(3, integer=True))
                axis.set_tick_params(labelsize=style.TICK_SIZE - 2)
        label: dict[str, Any] = {"fontsize": style.TICK_SIZE - 1}
        is_low = side * shape < LOWEST_ROW
        if is_low:
            label |= {"rotation": 0, "ha": "right", "va": "center"}
        row[0].set_ylabel("\n".join((*name.split(", "), "query" if is_low else "query position")), **label)
    for axes in grid[-1]:
        axes.set_xlabel("key" if num_columns > MOST_IN_A_ROW else "key position", fontsize=style.TICK_SIZE)
    shape = {"shrink": min(1.0, 3 / figure.get_figheight()), "aspect": 18}
    style.color_bar(image, figure, ax=list(grid.flat), label=SCALE_LABEL, **shape)
    _trim(figure)
    return figure


def _trim(figure: Figure) -> None:
    """Reduce the height of a figure to the height of its content. Panels with square cells leave space empty."""
    figure.draw_without_rendering()
    boxes = [box for axes in figure.axes if axes.axison and (box := axes.get_tightbbox()) is not None]
    content = (max(box.y1 for box in boxes) - min(box.y0 for box in boxes)) / figure.dpi
    figure.set_figheight(content + TITLE_SPACE + 2 * PANEL_GAP)


def plot_training_frame(
    weights: NDArray[Any], points: NDArray[Any], names: Sequence[str], sample: str, *, title: str, limit: float
) -> Figure:
    """Plot the attention of some heads, the embedding in two dimensions, and a sample, of one moment of a training.

    Args:
        weights: (heads, queries, keys) float, the attention weights of one layer; at most four heads are drawn.
        points: (tokens, 2) float, the vectors of some tokens.
        names: (tokens,) strings.
        sample: what the network writes or answers, with line breaks.
        title: heading of the figure, such as the step.
        limit: largest coordinate on both axes of the points, so that all frames have the same axes.

    Returns:
        The figure. All frames have the same size.

    Raises:
        ValueError: if the arrays have other shapes, or are empty.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_training_frame
        >>> weights, points = np.full((2, 3, 3), 1 / 3), np.array([[0.1, 0.2], [0.3, -0.4]])
        >>> figure = plot_training_frame(weights, points, ["a", "b"], "an abba", title="step 100", limit=1.0)
        >>> figure.get_suptitle()
        'step 100'
    """
    weights = style.shaped("weights", weights, heads=None, queries=None, keys=None)
    points = style.shaped("points", points, names=len(names), coordinates=2)
    figure = style.new_figure(title, FRAME_HEIGHT)
    halves: Any = figure.subfigures(2, 1, height_ratios=(1, 1.3))
    top, bottom = halves
    for head, axes in enumerate(top.subplots(1, min(len(weights), MOST_IN_A_ROW), squeeze=False)[0]):
        style.label_axes(axes, "key", "" if head else "query", f"head {head + 1}")
        axes.imshow(weights[head], COLORS, norm=PowerNorm(0.5, 0, 1), interpolation="nearest")
    scatter, text = bottom.subplots(1, 2)
    style.label_axes(scatter, "1st component", "2nd component", "embedding")
    scatter.set(xlim=(-limit, limit), ylim=(-limit, limit))
    for name, (x, y) in zip(names, points, strict=True):
        place = {"ha": "center", "va": "center", "clip_on": True, "parse_math": False}
        scatter.text(x, y, style.shorten(name, 10) or "␣", fontsize=style.TICK_SIZE - 1, color=style.BLUE, **place)
    text.set_axis_off()
    style.panel_title(text, "what it says")
    text.text(0, 1, sample, va="top", fontsize=style.TICK_SIZE - 1, color=style.INK, parse_math=False, wrap=True)
    return figure
