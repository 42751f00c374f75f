"""Figures of a data set: lengths of texts, labels, the coverage by a vocabulary, and a table of statistics."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from firstlight.figures import style

BINS = 50
COLORS = [style.BLUE, style.ORANGE]  # texts that fit the limit, and texts that do not
SHOWN = 0.99  # quantile of the lengths at which the x axis ends; longer texts are counted in the last bar
COVERAGES = (0.8, 0.9, 0.95, 0.99)
ROW = 0.3  # height of a row of a table in inches
VALUES = 0.45  # left edge of the values of a table, as a share of the width


def plot_lengths(
    panels: Mapping[str, NDArray[Any]],
    fits: NDArray[np.bool_] | None = None,
    *,
    title: str = "Lengths of the texts",
    limit: str = "the context",
    count: str = "texts",
    beyond: str = "is cut",
) -> Figure:
    """Plot histograms of the lengths of texts, with lines at the median and the 80th percentile.

    The last bar includes the longest 1% of the texts, and has a label such as ≥ 520.

    Args:
        panels: name of the length with its unit, such as "words in a review" -> (texts,) int. Each gives one panel.
        fits: (texts,) bool, True for a text that fits the limit. Other texts have another color. None: no limit.
        title: heading of the figure.
        limit: name of the limit in the legend.
        count: unit of the counts, for the label of the y axis.
        beyond: description of texts that do not fit, for the legend.

    Returns:
        The figure.

    Raises:
        ValueError: if there are no texts, or the numbers of texts differ.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_lengths
        >>> words = np.array([12, 30, 45, 80])
        >>> figure = plot_lengths({"words in a review": words}, fits=words <= 50, limit="50 words")
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['fits 50 words: 75%', 'is cut: 25%']
    """
    sizes = {len(values) for values in panels.values()} | ({len(fits)} if fits is not None else set())
    if len(sizes) != 1 or 0 in sizes:
        problem = f"panels and fits have {sorted(sizes)} texts"
        raise ValueError(f"{problem}; pass the same number of values for each, at least one")
    figure, grid = style.new_panels(title, 4.4, columns=len(panels))
    for axes, (name, values) in zip(grid, panels.items(), strict=True):
        _draw_lengths(axes, np.asarray(values), fits, name, count)
    if fits is not None:
        share = float(np.mean(fits))
        handles = [Patch(color=color) for color in COLORS][: 1 if share == 1 else 2]
        names = [f"fits {limit}: {_percent(share)}", f"{beyond}: {_percent(1 - share)}"][: len(handles)]
        style.legend(figure, handles, names, ncols=2)
    return figure


def _draw_lengths(axes: Axes, values: NDArray[Any], fits: NDArray[np.bool_] | None, name: str, count: str) -> None:
    style.label_axes(axes, name, f"share of {count}")
    low = int(values.min())
    top = max(math.ceil(np.quantile(values, SHOWN)), low + 1)
    shown = np.minimum(values, top)
    width = math.ceil((top - low + 1) / BINS)  # a whole number, so that each bar has equally many lengths
    edges = np.arange(low, top + 1 + width, width) - 0.5
    groups = [shown] if fits is None else [shown[fits], shown[~fits]]
    weights = [np.full(len(group), 1 / len(values)) for group in groups]
    heights, *_ = axes.hist(groups, bins=edges.tolist(), weights=weights, stacked=True, color=COLORS[: len(groups)])
    axes.yaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10]))  # 2.5% would be rounded
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0 if axes.get_ylim()[1] > 0.05 else 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    median, most = np.quantile(values, [0.5, 0.8])
    for value, dashes in ((median, (4, 2)), (most, (1, 1))):
        axes.axvline(value, color=style.INK, linewidth=1.2, dashes=dashes)
    style.panel_title(axes, f"median: {median:,.0f} (dashed), 80th percentile: {most:,.0f} (dotted)", style.TICK_SIZE)
    if top < values.max():
        last = (edges[-1], float(np.max(np.transpose(heights)[-1])))  # of stacked bars, the upper one
        style.label_point(axes, f"≥ {edges[-2] + 0.5:,.0f}", last, (0, 2), "right")


def _percent(share: float) -> str:
    """Return a share as a whole percentage, with decimals if rounding would give 0% or 100%."""
    return f"{share:.0%}" if share in (0, 1) or 0.005 <= share < 0.995 else f"{share:.2%}"


def plot_label_counts(
    counts: NDArray[Any], groups: Sequence[str], names: Sequence[str], *, title: str = "Labels of each split"
) -> Figure:
    """Plot the number of rows with each label, with one panel for each split and one bar for each label.

    Args:
        counts: (groups, labels) int, the number of rows.
        groups: (groups,) strings, the names of the splits.
        names: (labels,) strings, the names of the labels.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `counts` has another shape or is empty.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_label_counts
        >>> figure = plot_label_counts(np.array([[70, 30], [8, 2]]), ["train", "test"], ["positive", "negative"])
        >>> [axes.get_title() for axes in figure.axes]
        ['train (n = 100)', 'test (n = 10)']
    """
    counts = style.shaped("counts", counts, groups=len(groups), labels=len(names))
    figure, panels = style.new_panels(title, 1.8 + 0.34 * len(names), columns=len(groups), sharey=True)
    rows = np.arange(len(names))
    for axes, group, values in zip(panels, groups, counts, strict=True):
        style.label_axes(axes, "number of rows", "", f"{group} (n = {values.sum():,})")
        bars = axes.barh(rows, values, color=style.BLUE, height=0.72)
        axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=style.TICK_SIZE - 1, color=style.INK)
        axes.set_xlim(0, 1.3 * max(int(values.max()), 1))
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
    panels[0].set_yticks(rows, [style.shorten(name) for name in names], parse_math=False)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def plot_coverage(
    counts: Mapping[str, NDArray[Any]],
    chosen: Mapping[str, tuple[int, float]] | None = None,
    *,
    title: str = "Coverage of the text by the vocabulary",
) -> Figure:
    """Plot the share of a text that is covered by the most frequent words, against the size of the vocabulary.

    Args:
        counts: name of the text -> (words,) int, the number of occurrences of each distinct word, in any order.
        chosen: name of the text -> size of the vocabulary in use, and the share of the text that it covers, from 0 to
            1. The figure shows it as a point.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `counts` is empty or contains a text without words.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_coverage
        >>> figure = plot_coverage({"reviews": np.array([50, 30, 15, 5])}, chosen={"reviews": (2, 0.8)})
        >>> figure.axes[0].get_lines()[0].get_ydata()
        array([0.5 , 0.8 , 0.95, 1.  ])
    """
    if not counts or not all(np.sum(values) for values in counts.values()):
        raise ValueError("counts is empty or has only zeros; pass the number of occurrences of each word")
    labels = ("words in the vocabulary, the most frequent first", "share of the text that is covered")
    figure, axes = style.new_axes(title, 5.0, *labels, grid="both")
    for number, (name, values) in enumerate(counts.items()):
        color = style.PALETTE[number % len(style.PALETTE)]
        covered = np.cumsum(np.sort(np.asarray(values))[::-1]) / np.sum(values)
        sizes = np.arange(1, len(covered) + 1)
        axes.plot(sizes, covered, color=color, linewidth=2, label=f"{name}: {len(covered):,} distinct words")
        if chosen and name in chosen:
            size, share = chosen[name]
            label = f"vocabulary in use, {size:,} words: {share:.1%}"
            axes.plot([size], [share], marker="D", markersize=8, color=color, linestyle="none", label=label)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_yticks([0, 0.25, 0.5, *COVERAGES[:2], 1])
    style.legend(axes, loc="lower right")
    return figure


def plot_table(rows: Mapping[str, str], *, title: str) -> Figure:
    """Plot a table with one name and one value in each row.

    Args:
        rows: name -> value, both as text, in the order in which they are drawn.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `rows` is empty.

    Example:
        >>> from firstlight.figures import plot_table
        >>> figure = plot_table({"lines": "182,550", "words": "925,063"}, title="Statistics of the plays")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['lines', '182,550', 'words', '925,063']
    """
    if not rows:
        raise ValueError("rows is empty; pass at least one name and its value")
    figure, axes = style.new_axes(title, ROW * len(rows) + 0.8)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows), 0)
    axes.set_axis_off()
    for number, (name, value) in enumerate(rows.items()):
        axes.axhline(number + 1, color=style.PALE, linewidth=style.THIN)
        for place, text, color in ((0.0, name, style.SOFT), (VALUES, style.shorten(value, 36), style.INK)):
            axes.text(place, number + 0.5, text, fontsize=style.LABEL_SIZE, color=color, va="center", parse_math=False)
    return figure
