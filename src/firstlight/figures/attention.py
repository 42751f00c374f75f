"""What attends to what: attention weights as figures."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from firstlight.figures import style

COLORS = colormaps["Blues"]
LONGEST_TOKEN = 14  # characters of a label
MOST_IN_A_ROW = 4
SMALLEST_TEXT, LARGEST_TEXT = 5.0, 8.0  # points, of a token
CHARACTER_WIDTH = 0.62  # of the font size, on average
LINE = 1.25  # of the font size: a token and the space to the next
GOOD_CELL, LARGEST_CELL = 0.19, 0.5  # inches: where more panels go side by side, and what a short sentence is drawn in
TALLEST_PANEL = 9.0  # inches
BAR_LENGTH, BAR_WIDTH, BAR_SPACE = 2.0, 0.14, 0.9  # inches, the space with its label
TITLE_SPACE, PANEL_GAP = 0.35, 0.2  # inches


def attention_heads(
    weights: NDArray[np.floating], queries: Sequence[str], keys: Sequence[str], title: str = "Attention"
) -> Figure:
    """Draw one map for each head: a row for each token that looks, a column for each token that is looked at.

    weights: (heads, queries, keys), rows summing to 1. Cells are square; of very many tokens only some are named.
    Raises ValueError if the tokens are not as many as the weights, or if there is nothing to draw.
    """
    weights = np.asarray(weights)
    if weights.ndim != 3 or weights.shape[1:] != (len(queries), len(keys)):
        raise ValueError(f"weights has shape {weights.shape} for {len(queries)} queries and {len(keys)} keys")
    if not weights.size:
        raise ValueError(f"weights has shape {weights.shape}, so there is nothing to draw")
    query_names, key_names = _names(queries), _names(keys)
    num_columns, cell = _grid(len(weights), query_names, key_names)
    num_rows = -(-len(weights) // num_columns)
    panel_height = len(queries) * cell + _inches(key_names) + TITLE_SPACE + PANEL_GAP
    height = max(num_rows * panel_height, BAR_LENGTH) + TITLE_SPACE
    figure = style.new_figure(height=height)
    figure.set_layout_engine("compressed", w_pad=style.MARGIN, h_pad=style.MARGIN)  # around panels of a given shape
    style.heading(figure, title)
    panels = figure.subplots(num_rows, num_columns, squeeze=False)
    images = [
        _draw(axes, head_weights, query_names, key_names, cell, f"Head {head}")
        for head, (axes, head_weights) in enumerate(zip(panels.flat, weights, strict=False), start=1)
    ]
    for axes in panels.flat[len(weights) :]:
        axes.set_axis_off()
    bar = figure.colorbar(
        images[0],
        ax=panels,
        shrink=BAR_LENGTH / height,
        aspect=BAR_LENGTH / BAR_WIDTH,
        label="share of the attention",
    )
    bar.outline.set_linewidth(style.THIN)
    style.tidy(bar.ax)
    return figure


def _names(tokens: Sequence[str]) -> list[str]:
    return [style.shorten(token, LONGEST_TOKEN) for token in tokens]


def _inches(names: Sequence[str]) -> float:
    """How long the longest name is at most."""
    return (max(map(len, names)) * CHARACTER_WIDTH + 1) * LARGEST_TEXT / 72


def _grid(num_heads: int, queries: Sequence[str], keys: Sequence[str]) -> tuple[int, float]:
    """How many panels go side by side, and how many inches wide and high a cell is.

    As many as leave cells a good size, two if names can be read all the same; more where one would have no larger ones.
    """

    def cell(num_columns: int) -> float:
        panel_width = (style.WIDTH - BAR_SPACE) / num_columns - _inches(queries) - PANEL_GAP
        return min(panel_width / len(keys), TALLEST_PANEL / len(queries), LARGEST_CELL)

    columns = range(min(num_heads, MOST_IN_A_ROW), 0, -1)
    wanted = [GOOD_CELL if number > 2 else SMALLEST_TEXT * LINE / 72 for number in columns]
    chosen = next(number for number, size in zip(columns, wanted, strict=True) if cell(number) >= min(size, cell(1)))
    return chosen, cell(chosen)


def _draw(
    axes: Axes, weights: NDArray[np.floating], queries: Sequence[str], keys: Sequence[str], cell: float, title: str
) -> AxesImage:
    """One map of (queries, keys) weights, on the same scale as all others."""
    style.tidy(axes)
    image = axes.imshow(weights, cmap=COLORS, vmin=0, vmax=1, aspect="equal")
    axes.set_title(title, fontsize=style.TITLE_SIZE, color=style.INK)
    size = min(max(cell * 72 / LINE, SMALLEST_TEXT), LARGEST_TEXT)
    step = int(np.ceil(size * LINE / 72 / cell - 1e-6))  # where all names would lie on each other, every second, third…
    for axis, names in ((axes.xaxis, keys), (axes.yaxis, queries)):
        axis.set_ticks(range(0, len(names), step), names[::step])
        for label in axis.get_ticklabels():
            label.set(fontsize=size, parse_math=False)
    axes.tick_params(axis="x", rotation=90)
    return image
