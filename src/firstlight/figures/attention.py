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
MOST_IN_A_ROW = 2
INCHES_A_TOKEN = 0.19
TOKEN_SIZE = 7.0  # points


def attention_heads(
    weights: NDArray[np.floating], queries: Sequence[str], keys: Sequence[str], title: str = "Attention"
) -> Figure:
    """Draw one map for each head: a row for each token that looks, a column for each token that is looked at.

    weights: (heads, queries, keys), rows summing to 1. Raises ValueError if the tokens are not as many as the weights.
    """
    weights = np.asarray(weights)
    if weights.ndim != 3 or weights.shape[1:] != (len(queries), len(keys)):
        raise ValueError(f"weights has shape {weights.shape} for {len(queries)} queries and {len(keys)} keys")
    num_heads = len(weights)
    num_columns = min(num_heads, MOST_IN_A_ROW)
    num_rows = -(-num_heads // num_columns)
    panel_width = style.WIDTH / num_columns
    panel_height = max(panel_width * len(queries) / max(len(keys), 1), INCHES_A_TOKEN * len(queries)) + 1.0
    figure = style.new_figure(height=min(num_rows * panel_height, 3 * style.WIDTH))
    style.heading(figure, title)
    panels = figure.subplots(num_rows, num_columns, squeeze=False)
    image = None
    for head, axes in enumerate(panels.flat):
        if head < num_heads:
            image = _draw(axes, weights[head], queries, keys, f"Head {head + 1}")
        else:
            axes.set_axis_off()
    if image is not None:
        bar = figure.colorbar(image, ax=panels, shrink=0.5, label="share of the attention")
        bar.outline.set_linewidth(style.THIN)
    return figure


def _draw(
    axes: Axes, weights: NDArray[np.floating], queries: Sequence[str], keys: Sequence[str], title: str
) -> AxesImage:
    """One map of (queries, keys) weights, on the same scale as all others."""
    style.tidy(axes)
    image = axes.imshow(weights, cmap=COLORS, vmin=0, vmax=1, aspect="auto")
    axes.set_title(title, fontsize=style.TITLE_SIZE, color=style.INK)
    for axis, tokens in ((axes.xaxis, keys), (axes.yaxis, queries)):
        axis.set_ticks(range(len(tokens)), [style.shorten(token, LONGEST_TOKEN) for token in tokens])
        for label in axis.get_ticklabels():
            label.set(fontsize=TOKEN_SIZE, parse_math=False)
    axes.tick_params(axis="x", rotation=90)
    return image
