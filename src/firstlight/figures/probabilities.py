"""Figures of the probabilities of words and tokens, with one bar for the sum of all remaining ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from firstlight.figures import style

LONGEST_PROMPT = 40


def plot_next_tokens(tokens: Sequence[str], probabilities: NDArray[Any], *, prompt: str = "") -> Figure:
    """Draw the probabilities of the most likely next tokens, and of all other tokens together.

    The heading quotes the end of the prompt.

    Args:
        tokens: labels of the most likely tokens, in descending order of probability.
        probabilities: (tokens,) float, from 0 to 1; their sum is at most 1.
        prompt: the text before the next token.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or there are no tokens.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_next_tokens
        >>> figure = plot_next_tokens(["e", "y"], np.array([0.75, 0.125]), prompt="perchanc")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['75.0%', '12.5%', '12.5%']
    """
    ending = prompt if len(prompt) <= LONGEST_PROMPT else style.ELLIPSIS + prompt[-LONGEST_PROMPT:]
    ending = ending.replace("\n", "⏎")
    heading = f"Next token after “{ending}”" if prompt else "First token of a text"
    figure, axes = style.new_axes(heading, 1.8 + 0.3 * len(tokens))
    style.label_axes(axes, "probability of the next token", "next token")
    _draw(axes, tokens, probabilities)
    return figure


def plot_fillings(text: str, words: Sequence[Sequence[str]], probabilities: NDArray[Any]) -> Figure:
    """Draw the probabilities of the most likely words for each [MASK] of a text, and of all other words together.

    The heading quotes the text.

    Args:
        text: the text with its masks.
        words: for each mask, the most likely words in descending order of probability; the same number for each mask.
        probabilities: (masks, words) float, from 0 to 1; the sum of each row is at most 1.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or there are no masks or no words.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_fillings
        >>> figure = plot_fillings("It [MASK] after a week", [["broke", "died"]], np.array([[0.5, 0.25]]))
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['50.0%', '25.0%', '25.0%']
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if len(probabilities) != len(words) or not len(words):
        problem = f"there are words for {len(words)} masks and probabilities of shape {probabilities.shape}"
        raise ValueError(f"{problem}; pass one row of probabilities for each mask, and at least one mask")
    heading = f"Predictions for “{style.shorten(text, limit=60)}”"
    figure, panels = style.new_panels(heading, 0.6 + sum(1.2 + 0.3 * len(each) for each in words), rows=len(words))
    for number, (axes, names, shares) in enumerate(zip(panels, words, probabilities, strict=True), start=1):
        style.label_axes(axes, "", "word", f"[MASK] {number} of {len(words)}" if len(words) > 1 else "")
        _draw(axes, names, shares)
    panels[-1].set_xlabel("probability of the word")
    return figure


def _draw(axes: Axes, names: Sequence[str], probabilities: NDArray[Any]) -> None:
    """Draw a bar for each name, the first on top, and one bar for the remaining probability.

    names: labels of the bars, such as words; long names are shortened. probabilities: (names,) float, with a sum of at
    most 1. Raises ValueError if the lengths differ, or there are no names.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if probabilities.shape != (len(names),) or not len(names):
        problem = f"there are {len(names)} tokens and probabilities of shape {probabilities.shape}"
        raise ValueError(f"{problem}; pass one probability for each token, and at least one token")
    rest = max(1 - float(probabilities.sum()), 0.0)
    shown = [style.shorten(name) if name.strip() else name for name in names] + ["all others"]
    values = np.append(probabilities, rest)
    rows = np.arange(len(values))
    bars = axes.barh(rows, values, color=[style.BLUE] * len(names) + [style.GREY], height=0.75)
    axes.bar_label(bars, [f"{value:.1%}" for value in values], padding=4, fontsize=style.TICK_SIZE, color=style.INK)
    axes.set_yticks(rows, shown, parse_math=False)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * max(float(values.max()), 0.01))
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0 if values.max() > 0.05 else 1))
