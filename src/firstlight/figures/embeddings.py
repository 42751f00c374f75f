"""Figures of token vectors, projected to two dimensions."""

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
    shapes = {title: np.asarray(points).shape for title, points in panels.items()}
    if not tokens or len(groups) != len(tokens) or any(shape != (len(tokens), 2) for shape in shapes.values()):
        problem = f"there are {len(tokens)} tokens, {len(groups)} groups, and points of shapes {shapes}"
        raise ValueError(f"{problem}; pass one group and one point (x, y) for each token")
    num_rows = -(-len(panels) // columns)
    figure, grid = style.new_panels(title, 0.9 + 5.4 * num_rows, num_rows, columns)
    present = sorted(set(groups))
    colors = [_color(names, group) for group in groups]
    for axes, (name, points) in zip(grid, panels.items(), strict=False):
        x, y = (axis_labels or {}).get(name, ("", ""))
        style.label_axes(axes, x, y, name)
        for group in present:
            chosen = np.asarray(points)[np.asarray(groups) == group].T
            color, marker = _color(names, group), MARKERS[group % len(MARKERS)]
            size, opacity = (2.5, 0.5) if color == style.SOFT else (POINT - 1, 1.0)
            axes.plot(*chosen, marker, markersize=size, alpha=opacity, color=color, label=names[group])
        axes.margins(0.07)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    style.legend(figure, *grid[0].get_legend_handles_labels(), ncols=len(present), markerscale=1.5)
    figure.draw_without_rendering()  # computes the positions of the points
    for axes, points in zip(grid, panels.values(), strict=False):
        _name_points(axes, np.asarray(points), tokens, colors)
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
