"""Figures of metrics over the steps of training."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from firstlight.figures import style

SMOOTHED_FROM = 20  # values; single batches are noisy, so longer curves also show their running mean


class Curve(NamedTuple):
    """One line of `plot_curves`.

    Attributes:
        label: name in the legend.
        steps: (n,) int, the training steps.
        values: (n,) float, the metric at these steps.
        color: a matplotlib color.
        dashed: whether the line is dashed.

    Example:
        >>> from firstlight.figures import Curve
        >>> Curve("validation", steps=[100, 200], values=[1.9, 1.7], color="tab:blue").dashed
        False
    """

    label: str
    steps: NDArray[Any]
    values: NDArray[Any]
    color: str
    dashed: bool = False


def plot_curves(panels: Mapping[str, Sequence[Curve]], *, title: str = "Training and validation") -> Figure:
    """Draw metrics over the training steps, with one panel for each metric.

    A line of 20 values or more is drawn in a pale color, with its running mean on top. The y axis omits very high
    values at the start, so that differences between later values are visible.

    Args:
        panels: name of the metric with its unit, such as "loss (nats)" -> the lines of its panel.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if there are no panels, or a panel has no values.

    Example:
        >>> from firstlight.figures import Curve, plot_curves
        >>> training = Curve("training", steps=[100, 200, 300], values=[2.1, 1.8, 1.6], color="tab:orange")
        >>> validation = Curve("validation", steps=[100, 200, 300], values=[2.2, 2.0, 1.9], color="tab:blue")
        >>> figure = plot_curves({"loss (nats)": [training, validation]})
        >>> figure.axes[0].get_ylabel()
        'loss (nats)'
    """
    if not panels or not all(any(len(line.steps) for line in lines) for lines in panels.values()):
        problem = f"there are no values to draw for {', '.join(panels) or 'any metric'}"
        raise ValueError(f"{problem}; pass at least one line with values for each metric")
    figure = style.new_figure(title, 4.8)
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    handles: dict[str, Any] = {}
    for axes, (name, lines) in zip(grid, panels.items(), strict=True):
        style.label_axes(axes, "step", name, grid="both")
        for line in lines:
            steps, values = np.asarray(line.steps), np.asarray(line.values, dtype=np.float64)
            if len(values) >= SMOOTHED_FROM:
                axes.plot(steps, values, color=line.color, linewidth=0.7, alpha=0.3, label="_values")
                steps, values = running_mean(steps, values)
            (handle,) = axes.plot(
                steps,
                values,
                color=line.color,
                linewidth=1.9,
                linestyle="--" if line.dashed else "-",
                marker="o" if len(values) < SMOOTHED_FROM else "",
                markersize=4,
                label=line.label,
            )
            handles.setdefault(line.label, handle)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        _show_what_matters(axes, lines)
    style.legend(figure, list(handles.values()), list(handles), ncols=4)
    return figure


def running_mean(steps: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the mean of every window of a tenth of the values, and the last step of each window.

    steps, values: (n,). Returns two arrays of shape (windows,).
    """
    size = max(len(values) // 10, 1)
    sums = np.cumsum(np.insert(np.asarray(values, dtype=np.float64), 0, 0))
    return np.asarray(steps)[size - 1 :], (sums[size:] - sums[:-size]) / size


def _show_what_matters(axes: Any, lines: Sequence[Curve]) -> None:
    """Limit the y axis if a few very high values would make the differences between the others invisible."""
    values = np.concatenate([np.asarray(line.values, dtype=np.float64) for line in lines if len(line.values)])
    values = values[np.isfinite(values)]
    if not len(values):
        return
    low, usual, high = np.quantile(values, [0, 0.95, 1])
    if high - low > 2.5 * (usual - low) > 0:
        axes.set_ylim(low - 0.08 * (usual - low), usual + 0.5 * (usual - low))
