"""Figures of the frequencies of characters and words, and of the coverage of a text by a vocabulary."""

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
    characters: Sequence[str], counts: NDArray[Any], *, title: str = "Frequency of each character"
) -> Figure:
    """Draw the share of each character in a text on a logarithmic scale, in descending order.

    The figure shows the 80 most frequent characters.

    Args:
        characters: labels of the characters, such as ␣ for a space.
        counts: (characters,) int, the number of occurrences of each character, in any order.
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
        problem = f"counts has shape {counts.shape} and sum {counts.sum()} for {len(characters)} characters"
        raise ValueError(f"{problem}; pass one count for each character, with a sum above 0")
    order = np.argsort(-counts, kind="stable")[:MOST_BARS]
    order = order[counts[order] > 0]
    shares = counts / counts.sum()
    num_rows = -(-len(order) // PER_ROW)
    figure = style.new_figure(title, 1.4 + 2.3 * num_rows)
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
    title: str = "Coverage of the text by the vocabulary",
) -> Figure:
    """Draw the share of a text that is covered by the most frequent words, against the size of the vocabulary.

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
    figure, axes = style.new_axes(title, 5.0)
    labels = ("words in the vocabulary, the most frequent first", "share of the text that is covered")
    style.label_axes(axes, *labels, grid="both")
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


def _percent(value: float, _: object) -> str:
    return f"{100 * value:g}%"
