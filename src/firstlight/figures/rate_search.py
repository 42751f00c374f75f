"""Figure of a search for the learning rate."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from firstlight.figures import style

SHOWN = 0.25  # of the height, above the loss at the first rate


def plot_rate_search(
    rates: Sequence[float],
    losses: Sequence[float],
    smoothed: Sequence[float],
    suggestion: float,
    *,
    title: str = "Loss while the learning rate grows",
) -> Figure:
    """Draw the loss of each step of a range test against its learning rate, and the suggested rate.

    The y axis ends a little above the loss at the first rate, because losses at the last rates are very high.

    Args:
        rates: (n,) the learning rates, which grow.
        losses: (n,) the loss of each step, in nats.
        smoothed: (n,) the smoothed losses.
        suggestion: the suggested rate.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if there are no rates, or the sequences have different lengths.

    Example:
        >>> from firstlight.figures import plot_rate_search
        >>> figure = plot_rate_search([1e-3, 1e-2, 1e-1], [2.0, 1.5, 1.8], [1.9, 1.6, 1.7], suggestion=1e-3)
        >>> figure.axes[0].get_xlabel()
        'learning rate'
    """
    if not 0 < len(rates) == len(losses) == len(smoothed):
        raise ValueError(
            f"{len(rates)} rates, {len(losses)} losses and {len(smoothed)} smoothed losses must have the same length"
        )
    figure, axes = style.new_axes(title, 4.8)
    style.label_axes(axes, "learning rate", "loss (nats)", grid="both")
    axes.set_xscale("log")
    axes.plot(rates, losses, color=style.BLUE, linewidth=0.8, alpha=0.35, label="each step")
    axes.plot(rates, smoothed, color=style.BLUE, linewidth=2.0, label="smoothed")
    lowest = int(np.argmin(smoothed))
    axes.plot([rates[lowest]], [smoothed[lowest]], "o", color=style.BLUE, label=f"lowest: {rates[lowest]:.3g}")
    axes.axvline(suggestion, color=style.VERMILION, linewidth=1.6, linestyle="--", label=f"suggested: {suggestion:.3g}")
    low, start = float(np.min(smoothed)), float(smoothed[0])
    spread = max(start - low, 1e-3)
    axes.set_ylim(low - 0.1 * spread, start + SHOWN * spread)
    axes.xaxis.set_major_formatter("{x:g}")
    style.legend(axes)
    return figure
