"""Figures of a scaling law: the fit with the measured losses, and the compute-optimal frontier."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from firstlight.figures import style

Array = NDArray[np.float64]
Fitted = Callable[[Array, Array], Array]

POINTS = 120  # of a line
COLORS = ListedColormap(colormaps["viridis"](np.linspace(0, 0.85, 256)))  # without the pale end
PER_TOKEN = 6  # floating-point operations of a training, for each parameter and token
SLICES = 5  # lines of equal compute


def plot_scaling_fit(
    parameters: ArrayLike,
    tokens: ArrayLike,
    losses: ArrayLike,
    fitted: Fitted,
    *,
    held_out: ArrayLike | None = None,
    unit: str = "validation loss (nats per token)",
    title: str = "Scaling law",
) -> Figure:
    """Draw measured losses and a fitted law: against the size, with a line per budget, and against the compute.

    Args:
        parameters: (runs,) the sizes.
        tokens: (runs,) the training tokens.
        losses: (runs,) the measured losses.
        fitted: returns the losses of the law for arrays of sizes and tokens.
        held_out: (runs,) bool, the runs to which the law was not fitted, which have hollow markers; None: no run.
        unit: label of the losses.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or there are no runs.

    Example:
        >>> from firstlight.figures import plot_scaling_fit
        >>> figure = plot_scaling_fit([1e3, 1e4], [1e5, 1e5], [2.3, 2.1], lambda n, d: 1.5 + 3 / n**0.2 + 0 * d)
        >>> [axes.get_xlabel() for axes in figure.axes]
        ['parameters N', 'compute 6 N D (FLOP)']
    """
    size, data, loss = _arrays(parameters, tokens, losses)
    hollow = np.zeros(len(size), dtype=bool) if held_out is None else np.asarray(held_out, dtype=bool)
    figure, (left, right) = style.new_panels(title, 5.2, columns=2, sharey=True)
    for axes, groups, along in ((left, data, size), (right, size, data)):
        line = np.geomspace(along.min(), along.max(), POINTS)
        for color, group in _colored(groups):
            same, constant = groups == group, np.full_like(line, group)
            scale = 1 if axes is left else PER_TOKEN * group
            values = fitted(line, constant) if axes is left else fitted(constant, line)
            axes.plot(scale * line, values, color=color, linewidth=1.5)
            _mark(axes, scale * along[same], loss[same], hollow[same], color, _short(group))
    if hollow.any():
        left.plot([], [], "o", color=style.INK, markerfacecolor="white", label="held out")
    for axes, label, legend in (
        (left, "parameters N", "tokens D"),
        (right, "compute 6 N D (FLOP)", "parameters N"),
    ):
        style.label_axes(axes, label, unit if axes is left else "")
        _logarithmic(axes)
        style.legend(axes, title=legend, ncols=2)
    return figure


def plot_scaling_frontier(
    parameters: ArrayLike,
    tokens: ArrayLike,
    fitted: Fitted,
    frontier: ArrayLike,
    *,
    band: ArrayLike | None = None,
    unit: str = "loss (nats per token)",
    title: str = "Compute-optimal sizes",
) -> Figure:
    """Draw lines of equal loss with the compute-optimal frontier, and the loss over the size at equal compute.

    Args:
        parameters: (runs,) the sizes of the runs.
        tokens: (runs,) the training tokens of the runs.
        fitted: returns the losses of the law for arrays of sizes and tokens.
        frontier: (n, 2) computes in ascending order, and the size with the lowest loss for each.
        band: (n, 2) the interval of these sizes; None: no interval.
        unit: label of the losses.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or there are no runs.

    Example:
        >>> from firstlight.figures import plot_scaling_frontier
        >>> law = lambda n, d: 1 + 20 / n**0.5 + 300 / d**0.5
        >>> figure = plot_scaling_frontier([1e3, 1e5], [1e5, 1e7], law, [[6e8, 1e3], [6e12, 1e5]])
        >>> figure.axes[0].get_ylabel()
        'parameters N'
    """
    size, data = _arrays(parameters, tokens)
    best = np.asarray(frontier, dtype=float)
    if best.ndim != 2 or best.shape[1] != 2 or (band is not None and np.shape(band) != best.shape):
        raise ValueError(f"frontier has shape {best.shape}; it and the band must be (n, 2)")
    figure, (left, right) = style.new_panels(title, 5.2, columns=2)
    compute = PER_TOKEN * size * data
    across = np.geomspace(compute.min() / 1.6, compute.max() * 1.6, POINTS)
    up = np.geomspace(size.min() / 1.6, size.max() * 1.6, POINTS)
    x, y = np.meshgrid(across, up)
    at_runs = fitted(size, data)
    levels = MaxNLocator(10).tick_values(at_runs.min(), at_runs.max())
    values = fitted(y, x / (PER_TOKEN * y))
    lines = left.contour(x, y, values, levels=levels, cmap=COLORS, linewidths=1.3)
    style.color_bar(lines, figure, ax=left, pad=0.02, aspect=30)
    if band is not None:
        low, high = np.asarray(band, dtype=float).T
        left.fill_between(best[:, 0], low, high, color=style.VERMILION, alpha=0.18, linewidth=0)
    left.plot(*best.T, color=style.VERMILION, linewidth=2, label="compute-optimal size N*")
    left.plot(compute, size, ".", color=style.GREY, markersize=6, label="runs")
    left.set_ylim(up[0], up[-1])
    left.set_xlim(across[0], across[-1])
    style.legend(left, frameon=True, facecolor="white", framealpha=0.9, edgecolor="none", loc="upper left")
    style.label_axes(left, "compute 6 N D (FLOP)", "parameters N", f"lines of equal {unit.partition(' (')[0]}")
    places = np.unique(np.linspace(0, len(best) - 1, SLICES + 2).round().astype(int)[1:-1])
    for color, place in zip(COLORS(np.linspace(0, 1, len(places))), places, strict=True):
        of, optimum = best[place]
        (line,) = right.plot(up, fitted(up, of / (PER_TOKEN * up)), color=color, linewidth=1.5)
        at = float(fitted(best[place, 1:], of / (PER_TOKEN * best[place, 1:]))[0])
        right.plot([optimum], [at], "D", color=style.VERMILION)
        name = f"{of:.0e} FLOP".replace("e+", "e")
        above = {"xytext": (0, 9), "textcoords": "offset points", "ha": "center", "fontsize": style.TICK_SIZE}
        right.annotate(name, (optimum, at), color=line.get_color(), **above)
    lowest, highest = levels[0], at_runs.max()
    right.set_ylim(lowest - 0.08 * (highest - lowest), highest + 0.08 * (highest - lowest))
    style.label_axes(right, "parameters N", unit, "loss at equal compute")
    _logarithmic(left)
    left.set_yscale("log")
    left.yaxis.set_minor_formatter(NullFormatter())
    _logarithmic(right)
    return figure


def _arrays(*values: ArrayLike) -> list[Array]:
    found = [np.asarray(each, dtype=float) for each in values]
    if not len(found[0]) or any(each.shape != found[0].shape for each in found):
        raise ValueError(f"shapes {', '.join(str(each.shape) for each in found)}: equal, non-empty lists are required")
    return found


def _colored(values: Array) -> list[tuple[Any, float]]:
    """Return each distinct value with a color, from dark to light."""
    distinct = np.unique(values)
    return list(zip(COLORS(np.linspace(0, 1, len(distinct))), distinct.tolist(), strict=True))


def _mark(axes: Axes, x: Array, y: Array, hollow: NDArray[np.bool_], color: Any, label: str) -> None:
    hidden = "_" + label  # not in the legend
    of_full, of_hollow = (hidden, label) if hollow.all() else (label, hidden)
    axes.plot(x[~hollow], y[~hollow], "o", color=color, markersize=5, label=of_full)
    axes.plot(x[hollow], y[hollow], "o", color=color, mfc="white", markersize=6, label=of_hollow)


def _logarithmic(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(color=style.PALE, linewidth=style.THIN)
    axes.set_axisbelow(True)


def _short(value: float) -> str:
    """Return a number such as 2.9 k, 340 k or 4.1 M."""
    return EngFormatter().format_eng(float(f"{value:.3g}"))
