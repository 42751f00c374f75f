"""One frame of the film of a training: attention, embedding and a sample of one checkpoint."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from firstlight.figures import style

MOST_HEADS = 4
HEIGHT = 6.5  # inches


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
    if np.ndim(weights) != 3 or not np.size(weights) or not len(names) or np.shape(points) != (len(names), 2):
        problem = f"weights has shape {np.shape(weights)}, and points {np.shape(points)} for {len(names)} names"
        raise ValueError(f"{problem}; pass (heads, queries, keys) and one point for each name")
    figure = style.new_figure(title, HEIGHT)
    halves: Any = figure.subfigures(2, 1, height_ratios=(1, 1.3))
    top, bottom = halves
    for head, axes in enumerate(top.subplots(1, min(len(weights), MOST_HEADS), squeeze=False)[0]):
        style.label_axes(axes, "key", "" if head else "query", f"head {head + 1}")
        axes.imshow(weights[head], "Blues", norm=PowerNorm(0.5, 0, 1), interpolation="nearest")
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
