"""Figures of the lengths of texts and of the labels of a data set."""

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


def plot_lengths(
    panels: Mapping[str, NDArray[Any]],
    fits: NDArray[np.bool_] | None = None,
    *,
    title: str = "Lengths of the texts",
    limit: str = "the context",
    count: str = "texts",
    beyond: str = "is cut",
) -> Figure:
    """Draw histograms of the lengths of texts, with lines at the median and the 80th percentile.

    The last bar includes the longest 1% of the texts.

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
    figure = style.new_figure(title, 4.4)
    for axes, (name, values) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        _draw(axes, np.asarray(values), fits, name, count)
    if fits is not None:
        share = float(np.mean(fits))
        handles = [Patch(color=color) for color in COLORS][: 1 if share == 1 else 2]
        names = [f"fits {limit}: {_percent(share)}", f"{beyond}: {_percent(1 - share)}"][: len(handles)]
        style.legend(figure, handles, names, ncols=2)
    return figure


def _draw(axes: Axes, values: NDArray[Any], fits: NDArray[np.bool_] | None, name: str, count: str) -> None:
    style.label_axes(axes, name, f"share of {count}")
    top = max(float(np.quantile(values, SHOWN)), float(values.min()) + 1)
    shown = np.minimum(values, top)
    bins = int(min(BINS, np.ceil(top - values.min()) + 1))
    groups = [shown] if fits is None else [shown[fits], shown[~fits]]
    weights = [np.full(len(group), 1 / len(values)) for group in groups]
    low = float(values.min())
    axes.hist(
        groups,
        bins=bins,
        range=(low - 0.5, top + 0.5),
        weights=weights,
        stacked=True,
        color=COLORS[: len(groups)],
    )
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0 if axes.get_ylim()[1] > 0.05 else 1))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    median, most = np.quantile(values, [0.5, 0.8])
    for value, dashes in ((median, (4, 2)), (most, (1, 1))):
        axes.axvline(value, color=style.INK, linewidth=1.2, dashes=dashes)
    axes.set_title(
        f"median: {median:,.0f} (dashed), 80th percentile: {most:,.0f} (dotted)",
        fontsize=style.TICK_SIZE,
        color=style.INK,
    )


def _percent(share: float) -> str:
    """Return a share as a whole percentage, with decimals if rounding would give 0% or 100%."""
    return f"{share:.0%}" if share in (0, 1) or 0.005 <= share < 0.995 else f"{share:.2%}"


def plot_label_counts(
    counts: NDArray[Any],
    groups: Sequence[str],
    names: Sequence[str],
    *,
    title: str = "Labels of each split",
    unit: str = "rows",
) -> Figure:
    """Draw the number of rows with each label, with one panel for each split and one bar for each label.

    Args:
        counts: (groups, labels) int, the number of rows.
        groups: (groups,) strings, the names of the splits.
        names: (labels,) strings, the names of the labels.
        title: heading of the figure.
        unit: unit of the counts, for the label of the x axis.

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
    counts = np.asarray(counts)
    if counts.shape != (len(groups), len(names)) or not counts.size:
        problem = f"counts has shape {counts.shape} for {len(groups)} groups and {len(names)} names"
        raise ValueError(f"{problem}; pass (groups, labels)")
    figure = style.new_figure(title, 1.8 + 0.34 * len(names))
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    rows = np.arange(len(names))
    for axes, group, values in zip(panels, groups, counts, strict=True):
        style.label_axes(axes, f"number of {unit}", "", f"{group} (n = {values.sum():,})")
        axes.barh(rows, values, color=style.BLUE, height=0.72)
        top = max(int(values.max()), 1)
        for row, value in zip(rows, values, strict=True):
            axes.text(value + 0.02 * top, row, f"{value:,}", va="center", fontsize=style.TICK_SIZE - 1, color=style.INK)
        axes.set_xlim(0, 1.3 * top)
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
    panels[0].set_yticks(rows, [style.shorten(name) for name in names], parse_math=False)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    return figure
