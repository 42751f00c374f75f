"""Figures of series of networks: with more and more parts, of several widths, and of sizes and budgets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from firstlight.figures import style

SHADES = LinearSegmentedColormap.from_list("from small to large", ["#9CC9E8", style.BLUE, "#002B45"])
SHOWN = 3.0  # the y axis ends at so many times the largest difference between two widths above the lowest loss
CROWDED = 5  # widths, of which every other one has a label
POINTS = 120  # of the line of a scaling law
PER_TOKEN = 6  # floating-point operations of a training, for each parameter and token

Losses = Mapping[int, Mapping[float, Sequence[float]]]  # width -> learning rate -> losses of the seeds
Sizes = Mapping[str, Mapping[int, Mapping[int, float]]]  # layer -> step -> width -> size


def plot_ladder(
    names: Sequence[str], losses: Sequence[float], published: Sequence[float | None], title: str = "Names, rung by rung"
) -> Figure:
    """Plot the validation losses of a series of networks, from bottom to top. Each network has one part more.

    A diamond marks a published loss (post 4, names).

    Args:
        names: (rungs,) strings, the names of the networks. An underscore is shown as a space.
        losses: (rungs,) float, the validation losses, in nats per character.
        published: (rungs,) float, the published losses; None for a network without a published loss.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ.

    Example:
        >>> from firstlight.figures import plot_ladder
        >>> figure = plot_ladder(["one_head", "with_positions"], losses=[2.48, 2.31], published=[2.476, None])
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['one head', 'with positions']
    """
    label = "validation loss (nats per character); lower is better"
    figure, axes = style.new_axes(title, 1.6 + 0.6 * len(names), label, grid="x")
    rows = range(len(names))
    axes.hlines(rows, min(losses), losses, color=style.PALE, linewidth=3)
    axes.plot(losses, rows, color=style.BLUE, marker="o", markersize=8, linestyle="none", label="measured")
    known = [(value, row) for value, row in zip(published, rows, strict=True) if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), color=style.VERMILION, marker="D", linestyle="none", label="the 2023 post")
    for loss, row in zip(losses, rows, strict=True):
        style.label_point(axes, f"{loss:.3f}", (loss, row), (0, 9), "center")
    axes.set_yticks(rows, [name.replace("_", " ") for name in names])
    axes.set_ylim(-0.6, len(names) - 0.2)
    axes.margins(x=0.08)
    if known:
        style.legend(axes, loc="upper right" if losses[0] > losses[-1] else "lower right")
    return figure


def plot_loss_by_rate(panels: Mapping[str, Losses], *, title: str = "Loss against learning rate") -> Figure:
    """Plot the final loss against the learning rate, with one line for each width and one panel for each setting.

    A line shows the mean over the seeds, and thin vertical lines show the seeds' range. A large point marks the best
    rate of a width. The y axis omits very high losses.

    Args:
        panels: heading of a panel -> width -> learning rate -> the losses of the seeds, in nats per token.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if a panel has no losses.

    Example:
        >>> from firstlight.figures import plot_loss_by_rate
        >>> standard = {32: {0.01: [2.2], 0.03: [2.1]}, 64: {0.01: [2.0], 0.03: [2.3]}}
        >>> figure = plot_loss_by_rate({"standard": standard, "µP": standard})
        >>> [axes.get_title() for axes in figure.axes]
        ['standard', 'µP']
    """
    lines = {name: {width: _means(of_width) for width, of_width in panel.items()} for name, panel in panels.items()}
    lowest = [min(line.values()) for panel in lines.values() for line in panel.values() if line]
    if not lowest or not all(any(panel.values()) for panel in lines.values()):
        raise ValueError("there are no losses to plot; pass at least one for each panel")
    figure, grid = style.new_panels(title, 4.8, columns=len(panels), sharey=True)
    widths = sorted({width for panel in panels.values() for width in panel})
    colors = dict(zip(widths, _shades(len(widths)), strict=True))
    handles: dict[int, Any] = {}
    for axes, (name, panel) in zip(grid, lines.items(), strict=True):
        style.label_axes(axes, "learning rate", "loss (nats)" if axes is grid[0] else "", name, grid="both")
        style.scale_by_log(axes, (rate for line in panel.values() for rate in line), "{x:g}")
        for width in sorted(panel):
            rates = sorted(panel[width])
            means = [panel[width][rate] for rate in rates]
            seeds = [panels[name][width][rate] for rate in rates]
            axes.vlines(rates, [min(each) for each in seeds], [max(each) for each in seeds], color=colors[width])
            (handles[width],) = axes.plot(rates, means, color=colors[width], marker="o", markersize=4, linewidth=1.6)
            best = int(np.argmin(means))
            axes.plot(rates[best], means[best], color=colors[width], marker="o", markersize=10)
    spread = max(lowest) - min(lowest) or 0.1 * abs(min(lowest)) or 1.0
    grid[0].set_ylim(min(lowest) - 0.1 * spread, min(lowest) + SHOWN * spread)
    style.legend(figure, [handles[width] for width in widths], [f"dim {width}" for width in widths], ncols=8)
    return figure


def plot_activation_sizes(panels: Mapping[str, Sizes], *, title: str = "Activations against width") -> Figure:
    """Plot the mean absolute activations of layers against the width of the network: a coordinate check.

    There is one row for each setting, one column for each layer and one line for each step. If the sizes do not depend
    on the width, the lines are level (Yang et al. 2022).

    Args:
        panels: name of a row -> name of a layer -> step -> width -> the mean absolute value. All rows must have the
            same layers.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if there are no rows, or a row has other layers.

    Example:
        >>> from firstlight.figures import plot_activation_sizes
        >>> sizes = {"logits": {0: {32: 0.5, 64: 0.4}, 5: {32: 0.9, 64: 1.7}}}
        >>> figure = plot_activation_sizes({"standard": sizes, "µP": sizes})
        >>> len(figure.axes)
        2
    """
    layers = list(next(iter(panels.values()), ()))
    if not layers or any(list(panel) != layers for panel in panels.values()):
        raise ValueError("each row must have the same layers, and at least one")
    height, shape = 0.9 + 2.4 * len(panels), (len(panels), len(layers))
    figure, places = style.new_panels(title, height, *shape, sharex=True, sharey=True)
    grid = places.reshape(shape)
    steps = sorted({step for panel in panels.values() for of_layer in panel.values() for step in of_layer})
    colors = dict(zip(steps, _shades(len(steps)), strict=True))
    handles: dict[int, Any] = {}
    last = len(panels) - 1
    for row, (name, panel) in enumerate(panels.items()):
        for column, layer in enumerate(layers):
            axes = grid[row, column]
            labels = ("dim" if row == last else "", name if column == 0 else "", layer if row == 0 else "")
            style.label_axes(axes, *labels, grid="both")
            every = sorted({width for of_step in panel[layer].values() for width in of_step})
            style.scale_by_log(axes, every[:: 1 if len(every) < CROWDED else 2], "{x:.0f}", base=2)
            axes.set_yscale("log")
            for step, of_step in panel[layer].items():
                widths = sorted(of_step)
                sizes = [of_step[width] for width in widths]
                (handles[step],) = axes.plot(widths, sizes, color=colors[step], marker="o", markersize=3, linewidth=1.4)
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter("{x:g}")
    style.legend(figure, [handles[step] for step in steps], [f"step {step}" for step in steps], ncols=8)
    return figure


def plot_scaling_fit(
    parameters: ArrayLike,
    tokens: ArrayLike,
    losses: ArrayLike,
    fitted: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    *,
    held_out: ArrayLike | None = None,
    unit: str = "validation loss (nats per token)",
    title: str = "Scaling law",
    formula: str = "",
) -> Figure:
    """Plot measured losses and a fitted law: against the size, with a line per budget, and against the compute.

    Args:
        parameters: (runs,) the sizes.
        tokens: (runs,) the training tokens.
        losses: (runs,) the measured losses.
        fitted: returns the losses of the law for arrays of sizes and tokens.
        held_out: (runs,) bool, the runs to which the law was not fitted, which have hollow markers; None: no run.
        unit: label of the losses.
        title: heading of the figure.
        formula: the law in mathtext, such as `$L = 1.5 + 3 / N^{0.2}$`, above the panels.

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
    size = style.shaped("parameters", parameters, np.float64, runs=None)
    data = style.shaped("tokens", tokens, np.float64, runs=len(size))
    loss = style.shaped("losses", losses, np.float64, runs=len(size))
    hollow = np.zeros(len(size), dtype=bool) if held_out is None else np.asarray(held_out, dtype=bool)
    figure, (left, right) = style.new_panels(title, 5.2, columns=2, sharey=True)
    for axes, groups, along in ((left, data, size), (right, size, data)):
        line, distinct = np.geomspace(along.min(), along.max(), POINTS), np.unique(groups)
        for color, group in zip(_shades(len(distinct)), distinct, strict=True):
            same, constant = groups == group, np.full_like(line, group)
            scale = 1 if axes is left else PER_TOKEN * group
            values = fitted(line, constant) if axes is left else fitted(constant, line)
            name = EngFormatter().format_eng(float(f"{group:.3g}"))  # such as 2.9 k or 4.1 M
            axes.plot(scale * line, values, color=color, linewidth=1.5, label=name)
            for is_hollow, face in ((False, color), (True, "white")):
                shown = same & (hollow == is_hollow)
                axes.plot(scale * along[shown], loss[shown], "o", color=color, markerfacecolor=face, markersize=5)
    left.set_title(formula, x=0, ha="left", fontsize=style.TITLE_SIZE, color=style.INK)
    if hollow.any():
        left.plot([], [], "o", color=style.INK, markerfacecolor="white", label="held out")
    for axes, label, legend in ((left, "parameters N", "tokens D"), (right, "compute 6 N D (FLOP)", "parameters N")):
        style.label_axes(axes, label, unit if axes is left else "", grid="both")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=8))
        axes.xaxis.set_minor_locator(NullLocator())
        style.legend(axes, title=legend, ncols=2)
    return figure


def _means(of_width: Mapping[float, Sequence[float]]) -> dict[float, float]:
    return {rate: float(np.mean(losses)) for rate, losses in of_width.items() if len(losses)}


def _shades(count: int) -> list[Any]:
    return [SHADES(place) for place in np.linspace(0, 1, max(count, 2))[:count]]
