"""Figures of token vectors, projected to two dimensions, and of position encodings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from firstlight.figures import style

LABEL_SIZE, LARGE_LABEL, FEW = 8.0, 10.0, 60  # points; labels of at most FEW tokens are large
LONGEST_LABEL = 16
MARKERS = "osD^vPX*"
COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.INK, style.ORANGE, style.SKY)
POINT = 5.0  # width of a marker in points
NEAR = ((0, 6), (0, -6), (1, 0), (-1, 0), (0.5, 7), (-0.5, 7), (0.5, -7), (-0.5, -7))  # widths right, points up
FAR = tuple((across, up) for up in (12, -12, 18, -18, 24, -24) for across in (0, 0.6, -0.6, 1.4, -1.4))  # with a line
WAVES = 4  # coordinates of a position encoding that are drawn as curves


def plot_embeddings(
    panels: Mapping[str, NDArray[Any]],
    tokens: Sequence[str],
    groups: Sequence[int],
    names: Sequence[str],
    *,
    axis_labels: Mapping[str, tuple[str, str]] | None = None,
    columns: int = 2,
    title: str = "Embeddings",
) -> Figure:
    """Plot tokens as points in a plane, colored by group, with one panel for each projection.

    A point has a label if there is room for it next to other labels and points.

    Args:
        panels: name of the projection -> (tokens, 2) float, the coordinates of the tokens.
        tokens: the tokens, the most important first. Labels are placed in this order.
        groups: (tokens,) int, indices into `names`.
        names: names of the groups. A group with a name that starts with "other" is gray and has small points.
        axis_labels: name of the projection -> labels of its x axis and y axis.
        columns: number of panels in a row.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the numbers of tokens, groups and points differ, or there are no tokens.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_embeddings
        >>> points = np.array([[0.0, 1.0], [0.1, 0.9], [1.0, 0.0]])
        >>> figure = plot_embeddings({"PCA": points}, ["a", "e", "t"], groups=[0, 0, 1], names=["vowels", "consonants"])
        >>> figure.axes[0].get_title()
        'PCA'
    """
    group_of = style.shaped("groups", groups, tokens=len(tokens))
    panels = {name: style.shaped(name, each, tokens=len(tokens), coordinates=2) for name, each in panels.items()}
    num_rows = -(-len(panels) // columns)
    figure, grid = style.new_panels(title, 0.9 + 5.4 * num_rows, num_rows, columns)
    present = sorted(set(groups))
    colors = [_color(names, group) for group in groups]
    for axes, (name, points) in zip(grid, panels.items(), strict=False):
        x, y = (axis_labels or {}).get(name, ("", ""))
        style.label_axes(axes, x, y, name)
        for group in present:
            chosen = points[group_of == group].T
            color, marker = _color(names, group), MARKERS[group % len(MARKERS)]
            size, opacity = (2.5, 0.5) if color == style.SOFT else (POINT - 1, 1.0)
            axes.plot(*chosen, marker, markersize=size, alpha=opacity, color=color, label=names[group])
        axes.margins(0.07)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    style.legend(figure, *grid[0].get_legend_handles_labels(), ncols=len(present), markerscale=1.5)
    figure.draw_without_rendering()  # computes the positions of the points
    for axes, points in zip(grid, panels.values(), strict=False):
        _name_points(axes, points, tokens, colors)
    return figure


def _color(names: Sequence[str], group: int) -> str:
    """Return the color of a group: gray if its name starts with "other"."""
    return style.SOFT if names[group].startswith("other") else COLORS[group % len(COLORS)]


def _name_points(axes: Axes, points: NDArray[Any], tokens: Sequence[str], colors: Sequence[str]) -> None:
    """Write the tokens next to their points. Omit labels that would overlap others, a point or the edge of the axes."""
    figure = axes.get_figure()
    assert figure is not None
    pixel = figure.dpi / 72  # pixels per point
    places = axes.transData.transform(points)  # (tokens, 2) pixels
    inside = axes.get_window_extent()
    size = LABEL_SIZE if len(tokens) > FEW else LARGE_LABEL
    half = POINT / 2 * pixel
    taken = np.hstack((places - half, places + half))  # left, bottom, right, top of all points and labels
    for token, point, place, color in zip(tokens, points, places, colors, strict=True):
        name = style.shorten(token, LONGEST_LABEL) or token
        width = (0.68 * len(name) + 0.3) * size * pixel
        height = 1.15 * size * pixel
        for across, up in (*NEAR, *FAR):
            x = place[0] + across * (width / 2 + 4 * pixel)
            y = place[1] + up * pixel * 1.45
            box = np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])
            hits = (box[0] < taken[:, 2]) & (taken[:, 0] < box[2]) & (box[1] < taken[:, 3]) & (taken[:, 1] < box[3])
            if hits.any() or not (inside.contains(*box[:2]) and inside.contains(*box[2:])):
                continue
            taken = np.vstack((taken, box))
            line = {"arrowstyle": "-", "color": color, "linewidth": 0.4, "alpha": 0.7, "shrinkA": 0, "shrinkB": 1}
            away = tuple(axes.transData.inverted().transform((x, y)))
            arrow = line if (across, up) in FAR else None
            label = axes.annotate(name, tuple(point), away, arrowprops=arrow, fontsize=size, color=color)
            label.set(ha="center", va="center", parse_math=False, in_layout=False)
            break


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
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = vectors / np.where(lengths == 0, 1, lengths)  # a vector of length 0 is similar to none
        image = axes.imshow(unit @ unit.T, cmap=style.DIVERGING, vmin=-1, vmax=1, interpolation="nearest")
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
    table = style.shaped("table", table, positions=None, dim=None)
    figure, (top, bottom) = style.new_panels(title, 7.6, rows=2, height_ratios=(1.2, 1))
    limit = float(np.abs(table).max()) or 1.0
    style.label_axes(top, "position", "coordinate")
    look: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "origin": "lower"}
    image = top.imshow(table.T, cmap=style.DIVERGING, vmin=-limit, vmax=limit, **look)
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
