"""The figure of the predictions of a masked language model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from firstlight.figures import style
from firstlight.figures.bars import draw_probabilities


def plot_fillings(
    text: str, words: Sequence[Sequence[str]], probabilities: NDArray[Any], *, title: str | None = None
) -> Figure:
    """Draw the probabilities of the most likely words for each [MASK] of a text, and of all other words together.

    Args:
        text: the text with its masks, for the heading.
        words: for each mask, the most likely words in descending order of probability; the same number for each mask.
        probabilities: (masks, words) float, from 0 to 1; the sum of each row is at most 1.
        title: heading of the figure. If None, the heading quotes the text.

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
    figure = style.new_figure(
        title or f"Predictions for “{style.shorten(text, limit=60)}”",
        0.6 + sum(1.2 + 0.3 * len(each) for each in words),
    )
    panels = figure.subplots(len(words), squeeze=False)[:, 0]
    for number, (axes, names, shares) in enumerate(zip(panels, words, probabilities, strict=True), start=1):
        style.label_axes(axes, "", "word", f"[MASK] {number} of {len(words)}" if len(words) > 1 else "")
        draw_probabilities(axes, names, shares)
    panels[-1].set_xlabel("probability of the word")
    return figure
