"""The figure of the norms of weights and gradients."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from firstlight.figures import style

ROW = 0.21  # inches


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
