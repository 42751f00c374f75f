"""Figures of the parameters of a network: the norms of the weights, and the position encodings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from firstlight.figures import style

ROW = 0.21  # inches
WAVES = 4


def plot_norms(
    names: Sequence[str],
    weights: NDArray[Any],
    gradients: NDArray[Any] | None = None,
    *,
    title: str = "Norms of weights and gradients",
) -> Figure:
    """Draw the norms of the weights of each layer, and of their gradients, on a logarithmic scale.

    Args:
        names: (layers,) strings, from the input to the output. The figure shows them from top to bottom.
        weights: (layers,) float, at least 0. A norm of 0 has no point and is written as a number.
        gradients: (layers,) float, at least 0. If None, the figure has no second panel.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or there are no layers.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_norms
        >>> figure = plot_norms(["embedding", "head"], np.array([5.7, 1.2]), gradients=np.array([0.01, 0.2]))
        >>> [axes.get_xlabel() for axes in figure.axes]
        ['norm of the weights', 'norm of the gradient of the loss']
    """
    sides = {"weights": np.asarray(weights, dtype=np.float64)}
    if gradients is not None:
        sides["gradient of the loss"] = np.asarray(gradients, dtype=np.float64)
    if not names or any(values.shape != (len(names),) for values in sides.values()):
        shapes = {side: values.shape for side, values in sides.items()}
        problem = f"there are {len(names)} names and values of shapes {shapes}"
        raise ValueError(f"{problem}; pass one value for each layer, and at least one layer")
    figure, panels = style.new_panels(title, 1.5 + ROW * len(names), columns=len(sides), sharey=True)
    rows = np.arange(len(names))
    for axes, color, (side, values) in zip(panels, (style.BLUE, style.VERMILION), sides.items(), strict=False):
        style.label_axes(axes, f"norm of the {side}", "", grid="x")
        above = values > 0
        lowest, highest = _decades(values[above])
        axes.hlines(rows[above], lowest, values[above], color=style.PALE, linewidth=3)
        axes.plot(values[above], rows[above], color=color, marker="o", markersize=6, linestyle="none")
        axes.set_xscale("log")
        axes.set_xlim(lowest, highest)
        axes.xaxis.set_minor_formatter(NullFormatter())  # labels between the powers of ten would overlap
        for row in rows[~above]:
            axes.text(lowest * 1.1, row, "0", va="center", fontsize=style.TICK_SIZE - 1, color=style.INK)
    panels[0].set_yticks(rows, names, fontsize=style.TICK_SIZE - 1, parse_math=False)
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    return figure


def _decades(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the limits of an axis: the powers of ten around the positive values, with a margin on both sides."""
    if not len(values):
        return 0.1, 1.0
    return 10 ** np.floor(np.log10(values.min() / 1.2)), 10 ** np.ceil(np.log10(values.max() * 1.2))


def cosine_similarity(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cosine similarity of every pair of vectors. It is 0 for a vector of length 0.

    vectors: (n, dim). Returns an array of shape (n, n).
    """
    from sklearn.metrics import pairwise  # takes a second

    return np.asarray(pairwise.cosine_similarity(np.asarray(vectors, dtype=np.float64)))


def plot_position_similarity(
    encodings: Mapping[str, NDArray[Any]], *, title: str = "Similarity of the positions"
) -> Figure:
    """Draw the cosine similarity of all pairs of positions, with one heat map for each position encoding (post 2).

    Args:
        encodings: name of the encoding -> (positions, dim) float.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `encodings` is empty.

    Example:
        >>> import torch
        >>> from firstlight.figures import plot_position_similarity
        >>> from firstlight.networks import sinusoid
        >>> figure = plot_position_similarity({"sinusoidal": sinusoid(torch.arange(16), dim=8).numpy()})
        >>> figure.axes[0].get_title()
        'sinusoidal'
    """
    if not encodings:
        raise ValueError("encodings is empty; pass at least one array of shape (positions, dim)")
    height = 1.2 + (style.WIDTH - 1.2) / max(len(encodings), 2)
    figure, panels = style.new_panels(title, height, columns=len(encodings))
    for number, (axes, (name, vectors)) in enumerate(zip(panels, encodings.items(), strict=True)):
        style.label_axes(axes, "position", "" if number else "position", name)
        image = axes.imshow(cosine_similarity(vectors), cmap=style.DIVERGING, vmin=-1, vmax=1, interpolation="nearest")
    place = {"location": "bottom", "shrink": 0.5, "aspect": 40}
    style.color_bar(image, figure, ax=list(panels), label="cosine similarity", **place)
    return figure


def plot_position_waves(table: NDArray[Any], *, title: str = "The position encoding") -> Figure:
    """Draw a position encoding as a heat map, and some of its coordinates as curves over the positions (post 1).

    Args:
        table: (positions, dim) float, the encoding of each position.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `table` does not have two axes, or is empty.

    Example:
        >>> import torch
        >>> from firstlight.figures import plot_position_waves
        >>> from firstlight.networks import sinusoid
        >>> figure = plot_position_waves(sinusoid(torch.arange(16), dim=8).numpy())
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['coordinate 0', 'coordinate 2', 'coordinate 4', 'coordinate 6']
    """
    table = np.asarray(table)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"table has shape {table.shape}; pass (positions, dim)")
    figure, (top, bottom) = style.new_panels(title, 7.6, rows=2, height_ratios=(1.2, 1))
    limit = float(np.abs(table).max()) or 1.0
    style.label_axes(top, "position", "coordinate")
    image = top.imshow(
        table.T, cmap=style.DIVERGING, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest", origin="lower"
    )
    style.color_bar(image, figure, ax=top, label="value", pad=0.02)
    style.label_axes(bottom, "position", "value", grid="both")
    sines = np.arange(0, table.shape[1], 2)  # odd coordinates are the cosines of the same frequencies
    columns = sines if len(sines) <= WAVES else sines[np.linspace(0, 0.6 * len(sines), WAVES).astype(int)]
    for color, column in zip(style.PALETTE, columns, strict=False):
        bottom.plot(table[:, column], color=color, linewidth=1.8, label=f"coordinate {column}")
    bottom.set_xlim(-0.5, len(table) - 0.5)
    bottom.set_ylim(-1.08 * limit, 1.08 * limit)
    style.legend(figure, ncols=WAVES)
    return figure
