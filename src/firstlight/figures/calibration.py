"""Whether a classifier is as sure as it is right."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from firstlight.figures import style


class Calibration(NamedTuple):
    """Of each bin of confidence: its edges (bins + 1,), how many predictions, their mean confidence and accuracy.

    confidence and accuracy are NaN in an empty bin; error: the expected calibration error (Naeini et al. 2015), the
    mean distance between the two, weighted by the count.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    error: float


def calibration(probabilities: NDArray[Any], targets: NDArray[Any], bins: int = 10) -> Calibration:
    """Compare how probable the predicted class is said to be with how often it is right.

    probabilities: (n, classes), rows summing to 1; targets: (n,) int. Bins are of equal width, from the lowest
    confidence that so many classes can have, 1 / classes, to 1. Raises ValueError for other shapes, or if n is 0.
    """
    probabilities, targets = np.asarray(probabilities, dtype=np.float64), np.asarray(targets)
    if probabilities.ndim != 2 or targets.shape != probabilities.shape[:1] or not len(targets):
        raise ValueError(f"probabilities has shape {probabilities.shape} and targets {targets.shape}")
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


def calibration_curve(found: Calibration, *, title: str = "Calibration") -> Figure:
    """Draw accuracy against confidence, with the distance that is the calibration error, and how many predictions."""
    figure = style.new_figure(height=6.2)
    style.heading(figure, f"{title}: expected calibration error {found.error:.1%}")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    style.label_axes(top, "", "accuracy: share that is right")
    low = float(found.edges[0])
    top.plot([low, 1], [low, 1], color=style.GREY, linewidth=1.2, linestyle="--", label="as sure as it is right")
    there = found.counts > 0
    confidence, accuracy = found.confidence[there], found.accuracy[there]
    top.vlines(confidence, confidence, accuracy, color=style.ORANGE, linewidth=5, alpha=0.7, label="distance")
    top.plot(confidence, accuracy, color=style.BLUE, marker="o", markersize=7, linewidth=2, label="this run")
    top.set_ylim(min(0.0 if low < 0.5 else low - 0.1, float(accuracy.min()) - 0.03), 1.03)
    top.legend(frameon=False, loc="lower right", fontsize=style.TICK_SIZE)
    style.label_axes(bottom, "confidence: probability of the predicted class (mean of each bin)", "predictions")
    widths = np.diff(found.edges)
    bottom.bar(found.edges[:-1], found.counts, width=0.94 * widths, align="edge", color=style.BLUE)
    for axis in (top.yaxis, top.xaxis):
        axis.set_major_formatter(PercentFormatter(xmax=1))
    top.grid(color=style.PALE, linewidth=style.THIN)
    top.set_axisbelow(True)
    bottom.yaxis.set_major_formatter("{x:,.0f}")
    figure.align_ylabels([top, bottom])
    return figure
