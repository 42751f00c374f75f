"""Figures of probabilities: of words and tokens, and of a classifier's predictions against its accuracy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from firstlight.figures import style

LONGEST_PROMPT = 40
SMALLEST = 0.0005  # smaller probabilities would be rounded to 0.0%


def plot_next_tokens(tokens: Sequence[str], probabilities: NDArray[Any], *, prompt: str = "") -> Figure:
    """Plot the probabilities of the most likely next tokens, without those below 0.1%.

    The heading quotes the end of the prompt. The label of the x axis gives the probability of all other tokens.

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
        ['75.0%', '12.5%']
        >>> figure.axes[0].get_xlabel()
        'probability of the next token; all others together: 12.5%'
    """
    ending = prompt if len(prompt) <= LONGEST_PROMPT else style.ELLIPSIS + prompt[-LONGEST_PROMPT:]
    ending = ending.replace("\n", "⏎")
    heading = f"Next token after “{ending}”" if prompt else "First token of a text"
    height = 1.5 + 0.3 * _num_shown(probabilities)
    figure, axes = style.new_axes(heading, height, "probability of the next token", "next token")
    _draw(axes, tokens, probabilities)
    return figure


def plot_fillings(text: str, words: Sequence[Sequence[str]], probabilities: NDArray[Any]) -> Figure:
    """Plot the probabilities of the most likely words for each [MASK] of a text, without those below 0.1%.

    The heading quotes the text. The labels of the x axes give the probability of all other words.

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
        ['50.0%', '25.0%']
    """
    probabilities = style.shaped("probabilities", probabilities, np.float64, masks=len(words), words=None)
    heading = f"Predictions for “{style.shorten(text, limit=60)}”"
    height = 0.6 + sum(1.2 + 0.3 * _num_shown(each) for each in probabilities)
    figure, panels = style.new_panels(heading, height, rows=len(words))
    for number, (axes, names, shares) in enumerate(zip(panels, words, probabilities, strict=True), start=1):
        style.label_axes(axes, "probability", "word", f"[MASK] {number} of {len(words)}" if len(words) > 1 else "")
        _draw(axes, names, shares)
    return figure


def _num_shown(probabilities: NDArray[Any]) -> int:
    """Return the number of probabilities that are not rounded to 0.0%, at least 1."""
    return max(int(np.sum(np.asarray(probabilities) >= SMALLEST)), 1)


def _draw(axes: Axes, names: Sequence[str], probabilities: NDArray[Any]) -> None:
    """Plot a bar for each name, the first on top, and write the remaining probability into the label of the x axis.

    names: labels of the bars, such as words; long names are shortened. probabilities: (names,) float, descending,
    with a sum of at most 1. Raises ValueError if the lengths differ, or there are no names.
    """
    probabilities = style.shaped("probabilities", probabilities, np.float64, tokens=len(names))
    values = probabilities[: _num_shown(probabilities)]
    shown = [style.shorten(name) if name.strip() else name for name in names[: len(values)]]
    rest = max(1 - float(values.sum()), 0.0)
    axes.set_xlabel(style.with_signs(f"{axes.get_xlabel()}; all others together: {rest:.1%}", shown))
    rows = np.arange(len(values))
    bars = axes.barh(rows, values, color=style.BLUE, height=0.75)
    axes.bar_label(bars, [f"{value:.1%}" for value in values], padding=4, fontsize=style.TICK_SIZE, color=style.INK)
    axes.set_yticks(rows, shown, parse_math=False)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * max(float(values.max()), 0.01))
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0 if values.max() > 0.05 else 1))


class Calibration(NamedTuple):
    """Confidence and accuracy of predictions, grouped into bins of confidence.

    `calibration_bins` computes it and `plot_calibration_curve` plots it.

    Attributes:
        edges: (bins + 1,) float64, the limits of the bins.
        counts: (bins,) int64, the number of predictions in each bin.
        confidence: (bins,) float64, the mean probability of the predicted class; NaN for an empty bin.
        accuracy: (bins,) float64, the share of correct predictions; NaN for an empty bin.
        error: the expected calibration error (Naeini et al. 2015): the mean distance between confidence and accuracy,
            weighted by the counts.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import Calibration
        >>> found = Calibration(
        ...     edges=np.array([0.5, 0.75, 1.0]), counts=np.array([40, 60]),
        ...     confidence=np.array([0.6, 0.9]), accuracy=np.array([0.55, 0.95]), error=0.05,
        ... )
        >>> found.error
        0.05
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    error: float


def calibration_bins(probabilities: NDArray[Any], targets: NDArray[Any], bins: int = 10) -> Calibration:
    """Group predictions by confidence and compare the confidence with the accuracy of each group.

    The confidence is the probability of the predicted class. The bins have equal widths. They range from 1 / classes,
    which is the lowest possible confidence, to 1.

    Args:
        probabilities: (n, classes) float; each row sums to 1.
        targets: (n,) int, the correct classes.
        bins: number of bins.

    Returns:
        A `Calibration`.

    Raises:
        ValueError: if the shapes do not match, or n is 0.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import calibration_bins
        >>> probabilities = np.array([[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]])
        >>> found = calibration_bins(probabilities, targets=np.array([0, 1, 1]), bins=2)
        >>> found.counts.tolist(), round(found.error, 3)
        ([1, 2], 0.3)
    """
    probabilities = style.shaped("probabilities", probabilities, np.float64, predictions=None, classes=None)
    targets = style.shaped("targets", targets, predictions=len(probabilities))
    sure = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == targets
    edges = np.linspace(1 / probabilities.shape[1], 1, bins + 1)
    place = np.clip(np.searchsorted(edges, sure, side="right") - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(place, weights=sure, minlength=bins) / counts
        accuracy = np.bincount(place, weights=right, minlength=bins) / counts
    error = float(np.nansum(np.abs(confidence - accuracy) * counts) / counts.sum())
    return Calibration(edges, counts, confidence, accuracy, error)


def plot_calibration_curve(found: Calibration, *, title: str = "Calibration") -> Figure:
    """Plot a reliability diagram: accuracy against confidence, with the number of predictions in each bin.

    The heading gives the expected calibration error.

    Args:
        found: result of `calibration_bins`.
        title: beginning of the heading.

    Returns:
        The figure.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import calibration_bins, plot_calibration_curve
        >>> probabilities = np.array([[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]])
        >>> figure = plot_calibration_curve(calibration_bins(probabilities, targets=np.array([0, 1, 1]), bins=2))
        >>> figure.get_suptitle()
        'Calibration: expected calibration error 30.0%'
    """
    heading = f"{title}: expected calibration error {found.error:.1%}"
    figure, (top, bottom) = style.new_panels(heading, 6.2, rows=2, sharex=True, height_ratios=(3, 1))
    style.label_axes(top, "", "accuracy: share of correct predictions", grid="both")
    low = float(found.edges[0])
    top.plot([low, 1], [low, 1], color=style.GREY, linewidth=1.2, linestyle="--", label="perfect calibration")
    there = found.counts > 0
    confidence, accuracy = found.confidence[there], found.accuracy[there]
    top.vlines(confidence, confidence, accuracy, color=style.ORANGE, linewidth=5, alpha=0.7, label="distance")
    top.plot(confidence, accuracy, color=style.BLUE, marker="o", markersize=7, linewidth=2, label="this run")
    top.set_ylim(min(0.0 if low < 0.5 else low - 0.1, float(accuracy.min()) - 0.03), 1.03)
    style.legend(top, loc="lower right")
    style.label_axes(bottom, "confidence: probability of the predicted class (mean of each bin)", "predictions")
    widths = np.diff(found.edges)
    bottom.bar(found.edges[:-1], found.counts, width=0.94 * widths, align="edge", color=style.BLUE)
    for axis in (top.yaxis, top.xaxis):
        axis.set_major_formatter(PercentFormatter(xmax=1))
    bottom.yaxis.set_major_formatter("{x:,.0f}")
    figure.align_ylabels([top, bottom])
    return figure
