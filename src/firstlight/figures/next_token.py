"""Figures of the probabilities of the next token, and of the loss at each position of the context."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from firstlight.figures import style
from firstlight.figures.bars import draw_probabilities

LONGEST_PROMPT = 40


def plot_next_tokens(
    tokens: Sequence[str], probabilities: NDArray[Any], *, prompt: str = "", title: str | None = None
) -> Figure:
    """Draw the probabilities of the most likely next tokens, and of all other tokens together.

    Args:
        tokens: labels of the most likely tokens, in descending order of probability.
        probabilities: (tokens,) float, from 0 to 1; their sum is at most 1.
        prompt: the text before the next token, for the heading.
        title: heading of the figure. If None, the heading quotes the end of the prompt.

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
    title = title or (f"Next token after “{ending}”" if prompt else "First token of a text")
    figure, axes = style.new_axes(title, 1.8 + 0.3 * len(tokens))
    style.label_axes(axes, "probability of the next token", "next token")
    draw_probabilities(axes, tokens, probabilities)
    return figure


def plot_loss_per_position(
    losses: NDArray[Any], *, title: str = "Loss at each position of the context", unit: str = "nats per token"
) -> Figure:
    """Draw the mean loss at each position of the context, with a band of two standard errors.

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
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 2 or not losses.size:
        raise ValueError(f"losses has shape {losses.shape}; pass (windows, positions)")
    mean = losses.mean(axis=0)
    error = 2 * losses.std(axis=0) / np.sqrt(len(losses))
    places = np.arange(1, losses.shape[1] + 1)
    figure, axes = style.new_axes(title, 4.6)
    style.label_axes(axes, "position in the context (number of visible tokens)", f"loss ({unit})", grid="both")
    axes.fill_between(
        places, mean - error, mean + error, color=style.SKY, alpha=0.5, linewidth=0, label="± 2 standard errors"
    )
    axes.plot(places, mean, color=style.BLUE, marker="o", markersize=3, linewidth=1.5, label="mean")
    axes.axhline(
        losses.mean(), color=style.INK, linewidth=1, linestyle="--", label=f"mean of all positions: {losses.mean():.3f}"
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    style.legend(axes)
    return figure
