"""Figures of metrics over the steps of training, and over the positions of a context."""

from collections.abc import Mapping, Sequence
from itertools import cycle
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

    Example:
        >>> from firstlight.figures import Curve
        >>> Curve("validation", steps=[100, 200], values=[1.9, 1.7], color="tab:blue").label
        'validation'
    """

    label: str
    steps: NDArray[Any]
    values: NDArray[Any]
    color: str


def plot_curves(
    panels: Mapping[str, Sequence[Curve]],
    *,
    title: str = "Training and validation",
    references: Mapping[str, tuple[str, float]] = {},
) -> Figure:
    """Plot metrics over the training steps, with one panel for each metric.

    A single value has its label at the point. A line of 20 values or more is drawn in a pale color, with its running
    mean on top. The y axis omits very high values at the start, so that differences between later values are visible.

    Args:
        panels: name of the metric with its unit, such as "loss (nats)" -> the lines of its panel.
        title: heading of the figure.
        references: name of the metric -> the label and the value of a thin horizontal line in its panel.

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
        problem = f"there are no values to plot for {', '.join(panels) or 'any metric'}"
        raise ValueError(f"{problem}; pass at least one line with values for each metric")
    figure, grid = style.new_panels(title, 4.8, columns=len(panels))
    handles: dict[str, Any] = {}
    for axes, (name, lines) in zip(grid, panels.items(), strict=True):
        style.label_axes(axes, "step", name, grid="both")
        for line in lines:
            steps, values = np.asarray(line.steps), np.asarray(line.values, dtype=np.float64)
            if len(values) >= SMOOTHED_FROM:
                axes.plot(steps, values, color=line.color, linewidth=0.7, alpha=0.3, label="_values")
                size, sums = len(values) // 10, np.cumsum(np.insert(values, 0, 0))
                steps, values = steps[size - 1 :], (sums[size:] - sums[:-size]) / size
            is_point, marker = len(values) == 1, "o" if len(values) < SMOOTHED_FROM else ""
            look: dict[str, Any] = {"color": line.color, "linewidth": 1.9, "marker": marker, "clip_on": not is_point}
            (handle,) = axes.plot(steps, values, markersize=8 if is_point else 4, label=line.label, **look)
            handles.setdefault(line.label, handle)
            if is_point:
                style.label_point(axes, f"{line.label} {values[0]:.4g}", (steps[0], values[0]), (-5, 5), "right")
        if name in references:
            label, value = references[name]
            handles[label] = axes.axhline(value, color=style.INK, linewidth=0.8, linestyle=":")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        _show_what_matters(axes, lines)
    style.legend(figure, list(handles.values()), list(handles), ncols=4)
    return figure


def plot_learning_curves(
    lines: Mapping[str, Sequence[tuple[int, float, float | None]]],
    *,
    unit: str = "accuracy",
    dashed: Sequence[str] = (),
    title: str = "Learning curves",
) -> Figure:
    """Plot a metric against the number of training rows, whose axis is logarithmic.

    Args:
        lines: name of a line -> its points: a number of training rows, the mean, and half of its interval or None.
        unit: label of the y axis.
        dashed: names of the lines that are dashed, such as baselines.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if there are no lines, or one has no points.

    Example:
        >>> from firstlight.figures import plot_learning_curves
        >>> lines = {"small": [(1000, 0.75, 0.01), (10000, 0.86, 0.01)], "tfidf": [(1000, 0.78, None)]}
        >>> figure = plot_learning_curves(lines, dashed=["tfidf"])
        >>> figure.axes[0].get_xlabel()
        'training rows'
    """
    if not lines or not all(map(len, lines.values())):
        raise ValueError("there are no points to plot; pass at least one for each line")
    figure, axes = style.new_axes(title, 4.8, "training rows", unit, grid="both")
    for color, (name, points) in zip(cycle(style.PALETTE), lines.items(), strict=False):
        rows, means, halves = np.array(points, dtype=np.float64).T
        look: dict[str, Any] = {"color": color, "linestyle": "--" if name in dashed else "-", "linewidth": 1.6}
        axes.errorbar(rows, means, halves, marker="o", markersize=4, capsize=3, label=name, **look)
    style.scale_by_log(axes, (point[0] for points in lines.values() for point in points), "{x:,.0f}")
    style.legend(axes)
    return figure


def _show_what_matters(axes: Any, lines: Sequence[Curve]) -> None:
    """Limit the y axis if a few very high values would make the differences between the others invisible."""
    values = np.concatenate([np.asarray(line.values, dtype=np.float64) for line in lines if len(line.values)])
    values = values[np.isfinite(values)]
    if not len(values):
        return
    low, usual, high = np.quantile(values, [0, 0.95, 1])
    if high - low > 2.5 * (usual - low) > 0:
        axes.set_ylim(low - 0.08 * (usual - low), usual + 0.5 * (usual - low))


def plot_loss_per_position(
    losses: NDArray[Any], *, title: str = "Loss at each position of the context", unit: str = "nats per token"
) -> Figure:
    """Plot the mean loss at each position of the context, with a band of two standard errors.

    Args:
        losses: (windows, positions) float, the loss of each token in windows of the text.
        title: heading of the figure.
        unit: unit of the losses, for the label of the y axis.

    Returns:
        The figure.

    Raises:
        ValueError: if `losses` does not have two axes, or is empty.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_loss_per_position
        >>> losses = np.array([[3.0, 2.0, 1.5, 1.2], [3.2, 2.2, 1.7, 1.4]])
        >>> figure = plot_loss_per_position(losses, unit="nats per character")
        >>> figure.axes[0].get_ylabel()
        'loss (nats per character)'
    """
    losses = style.shaped("losses", losses, np.float64, windows=None, positions=None)
    mean, overall = losses.mean(axis=0), float(losses.mean())
    error = 2 * losses.std(axis=0) / np.sqrt(len(losses))
    places = np.arange(1, losses.shape[1] + 1)
    label = "position in the context (number of visible tokens)"
    figure, axes = style.new_axes(title, 4.6, label, f"loss ({unit})", grid="both")
    band: dict[str, Any] = {"color": style.SKY, "alpha": 0.5, "linewidth": 0, "label": "± 2 standard errors"}
    axes.fill_between(places, mean - error, mean + error, **band)
    axes.plot(places, mean, color=style.BLUE, marker="o", markersize=3, linewidth=1.5, label="mean")
    axes.axhline(overall, color=style.INK, linewidth=1, linestyle="--", label=f"mean of all positions: {overall:.3f}")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    style.legend(axes)
    return figure
