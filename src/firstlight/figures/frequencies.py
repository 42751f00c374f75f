"""Figures of how often characters and words occur, and how much of a text a vocabulary covers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter
from numpy.typing import NDArray

from firstlight.figures import style

MOST_BARS = 80
PER_ROW = 40
COVERAGES = (0.8, 0.9, 0.95, 0.99)


def plot_character_frequencies(
    characters: Sequence[str], counts: NDArray[Any], *, title: str = "How often each character is met"
) -> Figure:
    """Draw the share of each character in a text, the most frequent first, on a logarithmic scale.

    At most 80 characters are drawn.

    Args:
        characters: the characters as a reader should see them, such as ␣ for a space.
        counts: (characters,) int, how often each occurs, in any order.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or all counts are 0.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_character_frequencies
        >>> figure = plot_character_frequencies(["a", "e", "␣"], np.array([20, 30, 50]))
        >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
        ['␣', 'e', 'a']
    """
    counts = np.asarray(counts)
    if counts.shape != (len(characters),) or not counts.sum():
        raise ValueError(f"counts has shape {counts.shape} for {len(characters)} characters, {counts.sum()} in all")
    order = np.argsort(-counts, kind="stable")[:MOST_BARS]
    order = order[counts[order] > 0]
    shares = counts / counts.sum()
    num_rows = -(-len(order) // PER_ROW)
    figure = style.new_figure(height=1.4 + 2.3 * num_rows)
    style.heading(figure, title)
    panels = figure.subplots(num_rows, 1, sharey=True, squeeze=False)[:, 0]
    lowest = shares[order].min()
    for row, axes in enumerate(panels):
        chosen = order[row * PER_ROW : (row + 1) * PER_ROW]
        style.label_axes(axes, "character" if row == num_rows - 1 else "", "share of the text")
        axes.bar(range(len(chosen)), shares[chosen], color=style.BLUE, width=0.8)
        axes.set_yscale("log")
        axes.set_ylim(lowest / 3, 1)
        axes.yaxis.set_major_formatter(FuncFormatter(_percent))
        names = [characters[i] for i in chosen]
        axes.set_xticks(range(len(chosen)), names, fontsize=style.TICK_SIZE + 1, parse_math=False)
        axes.set_xlim(-0.7, min(PER_ROW, len(order)) - 0.3)
        axes.tick_params(axis="x", length=0)
    return figure


def plot_coverage(
    counts: Mapping[str, NDArray[Any]],
    chosen: Mapping[str, tuple[int, float]] | None = None,
    *,
    title: str = "How much of the text a vocabulary covers",
) -> Figure:
    """Draw the share of a text that a vocabulary of the most frequent words covers, against the size of the vocabulary.

    Args:
        counts: name of the text -> (words,) int, how often each different word occurs, in any order.
        chosen: name of the text -> size of the vocabulary in use and the share of the text that it covers, from 0 to 1;
            drawn as a point.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `counts` is empty or has a text without words.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_coverage
        >>> figure = plot_coverage({"reviews": np.array([50, 30, 15, 5])}, chosen={"reviews": (2, 0.8)})
        >>> figure.axes[0].get_lines()[0].get_ydata()
        array([0.5 , 0.8 , 0.95, 1.  ])
    """
    if not counts or not all(np.sum(values) for values in counts.values()):
        raise ValueError("counts is empty; pass how often each word is met")
    figure = style.new_figure(height=5.0)
    style.heading(figure, title)
    axes = figure.subplots()
    style.label_axes(axes, "words in the vocabulary, the most frequent first", "share of the text that it knows")
    for number, (name, values) in enumerate(counts.items()):
        color = style.PALETTE[number % len(style.PALETTE)]
        covered = np.cumsum(np.sort(np.asarray(values))[::-1]) / np.sum(values)
        sizes = np.arange(1, len(covered) + 1)
        axes.plot(sizes, covered, color=color, linewidth=2, label=f"{name}: {len(covered):,} different words")
        if chosen and name in chosen:
            size, share = chosen[name]
            label = f"the vocabulary in use, {size:,} words: {share:.1%}"
            axes.plot([size], [share], marker="D", markersize=8, color=color, linestyle="none", label=label)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_yticks([0, 0.25, 0.5, *COVERAGES[:2], 1])
    axes.grid(color=style.PALE, linewidth=style.THIN)
    legend = axes.legend(frameon=False, loc="lower right", fontsize=style.TICK_SIZE)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _percent(value: float, _: object) -> str:
    return f"{100 * value:g}%"
