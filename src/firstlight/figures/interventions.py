"""Figures of interventions: what the parts of a network contribute, and values for each block."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from firstlight.figures import style

ROW = 0.27  # inches for a bar, and for a row of a heat map
MOST_WRITTEN = 18  # columns of a heat map whose cells have room for a text


def plot_contributions(
    names: Sequence[str],
    values: NDArray[Any],
    intervals: NDArray[Any] | None = None,
    *,
    title: str = "Contributions",
    label: str = "contribution",
) -> Figure:
    """Plot one bar for each part of a network: positive values in blue, negative ones in orange.

    Args:
        names: (parts,) strings, from the input to the output. The figure shows them from top to bottom.
        values: (parts,) float.
        intervals: (parts, 2) float, lower and upper ends of the intervals of the values, drawn as lines; None: none.
        title: heading of the figure.
        label: label of the x axis, with the unit.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or there are no parts.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_contributions
        >>> figure = plot_contributions(["head 1", "head 2"], np.array([0.4, -0.1]), label="change of the loss (nats)")
        >>> figure.axes[0].get_xlabel()
        'change of the loss (nats)'
    """
    values = style.shaped("values", values, np.float64, names=len(names))
    figure, axes = style.new_axes(title, 1.3 + ROW * len(names), label, grid="x")
    rows = np.arange(len(names))
    axes.barh(rows, values, 0.7, color=np.where(values < 0, style.VERMILION, style.BLUE).tolist())
    if intervals is not None:
        low, high = style.shaped("intervals", intervals, names=len(names), ends=2).T
        axes.hlines(rows, low, high, color=style.INK, linewidth=1.5)
    axes.axvline(0, color=style.INK, linewidth=style.THIN)
    axes.set_yticks(rows, names, fontsize=style.TICK_SIZE - 1, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    return figure


def plot_block_grid(
    panels: Mapping[str, NDArray[Any]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "Values of each block",
    label: str = "value",
    texts: Mapping[str, Sequence[Sequence[str]]] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
) -> Figure:
    """Plot heat maps of one value for each block and each head or token, below one another.

    Args:
        panels: name of the panel -> (rows, columns) float. NaN is an empty cell.
        rows: names of the rows, such as blocks; the first one is at the bottom, where the input is.
        columns: names of the columns, such as heads or tokens.
        title: heading of the figure.
        label: label of the color scale.
        texts: name of the panel -> a text for each cell, (rows, columns); None: the values, if the cells have room.
        limits: ends of the color scale. If the lower one is below 0, colors are orange below and blue above 0.

    Returns:
        The figure.

    Raises:
        ValueError: if there are no panels, or a panel does not match the names.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_block_grid
        >>> scores = {"induction": np.array([[0.0, 0.1], [0.2, 0.9]])}
        >>> figure = plot_block_grid(scores, rows=["block 1", "block 2"], columns=["head 1", "head 2"])
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0.00', '0.10', '0.20', '0.90']
    """
    if not panels:
        raise ValueError("panels is empty; pass at least one array of shape (rows, columns)")
    height = 1.7 + len(panels) * (0.75 + 1.25 * ROW * len(rows))
    figure, every_axes = style.new_panels(title, height, len(panels))
    colors = style.DIVERGING if limits[0] < 0 else "Blues"
    for axes, (name, panel) in zip(every_axes, panels.items(), strict=True):
        values = style.shaped(f"panels[{name!r}]", panel, rows=len(rows), columns=len(columns))
        style.label_axes(axes, "", "", name)
        image = axes.imshow(values, colors, vmin=limits[0], vmax=limits[1], aspect="auto", origin="lower")
        axes.set_xticks(range(len(columns)), columns, parse_math=False)
        axes.set_yticks(range(len(rows)), rows, fontsize=style.TICK_SIZE - 1, parse_math=False)
        if max(map(len, columns)) * len(columns) > 100:
            axes.tick_params(axis="x", rotation=90)
        rounded = [[f"{value:.2f}".replace("-0.00", "0.00") for value in row] for row in values]
        written = texts[name] if texts else rounded
        for row, column in np.ndindex(values.shape) if len(columns) <= MOST_WRITTEN else ():
            if np.isfinite(values[row, column]):
                ink = style.readable_on(tuple(image.cmap(image.norm(values[row, column]))))
                place = {"ha": "center", "va": "center", "fontsize": style.TICK_SIZE - 2, "parse_math": False}
                axes.text(column, row, style.shorten(written[row][column], 12), color=ink, **place)
    style.color_bar(image, figure, ax=list(every_axes), label=label, location="bottom", shrink=0.5, aspect=40)
    return figure
