"""Figures of position encodings."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from firstlight.figures import style

WAVES = 4


def cosine_similarity(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cosine similarity of every pair of vectors. It is 0 for a vector of length 0.

    vectors: (n, dim). Returns an array of shape (n, n).
    """
    from sklearn.metrics import pairwise  # takes a second

    return np.asarray(pairwise.cosine_similarity(np.asarray(vectors, dtype=np.float64)))


def plot_position_similarity(
    encodings: Mapping[str, NDArray[Any]], *, title: str = "Similarity of the positions"
) -> Figure:
    """Plot the cosine similarity of all pairs of positions, with a heat map for each position encoding (post 2, plays).

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
    """Plot a position encoding as a heat map, and some of its coordinates as curves (post 1, reviews).

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
