"""Figures of predictions for reviews with one to five stars."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from firstlight.figures import style

STARS = (1, 2, 3, 4, 5)
NEUTRAL = 3  # neither negative nor positive; binary models are not trained on these reviews
STAR_COLORS = {1: style.VERMILION, 2: style.VERMILION, NEUTRAL: style.GREY, 4: style.BLUE, 5: style.BLUE}
BINS = 20
SHADES = [style.VERMILION, "#F3C9A8", "#E6E6E6", "#A9CFE8", style.BLUE]
WORST_TO_BEST = LinearSegmentedColormap.from_list("worst to best", SHADES)
SMALLEST_WRITTEN_SHARE = 5  # per cent; a number does not fit a narrower bar
LEGEND_CHARACTERS = 125  # characters in a row of the legend; a patch and its margins are as wide as 7
OUTLINE: dict[str, Any] = {"edgecolor": style.INK, "linewidth": 1.6}
IN_THE_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.TICK_SIZE, "zorder": 4}


def plot_probability_per_star(
    probability: NDArray[Any], stars: NDArray[Any], *, event: str = "positive", unseen: Sequence[int] = (3,)
) -> Figure:
    r"""Plot histograms of the predicted probability of an event, one for each true number of stars (post 1, reviews).

    Args:
        probability: (n,) float from 0 to 1, the predicted probability of the event for each review.
        stars: (n,) int from 1 to 5, the true number of stars of each review.
        event: name of the event, such as "positive".
        unseen: numbers of stars that were not in the training data. The figure marks them.

    Returns:
        The figure.

    Raises:
        ValueError: if the shapes differ, a value is outside its range, or n is 0.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_probability_per_star
        >>> figure = plot_probability_per_star(np.array([0.1, 0.3, 0.9]), np.array([1, 1, 5]))
        >>> [axes.get_title() for axes in figure.axes]
        ['1 star\nn = 2, mean 0.20', '5 stars\nn = 1, mean 0.90']
    """
    probability = style.shaped("probability", probability, reviews=None)
    stars = style.shaped("stars", stars, reviews=len(probability))
    _check_range("stars", stars, 1, 5)
    if not np.all((probability >= 0) & (probability <= 1)):
        raise ValueError("probability has values outside of 0 to 1; pass the sigmoid of the logits")

    present = [star for star in STARS if star in stars]
    title = f"Probability of “{event}” for each true star"
    figure, panels = style.new_panels(title, 4.2, columns=len(present), sharex=True, sharey=True)
    for axes, star in zip(panels, present, strict=True):
        _draw_distribution(axes, probability[stars == star], star)
        if star in unseen:
            axes.set_xlabel("not in the training data", fontsize=style.TICK_SIZE, style="italic")
    panels[0].set_ylabel("share of reviews")
    panels[0].yaxis.set_major_formatter(PercentFormatter(decimals=0))
    figure.supxlabel(f"probability of “{event}” (dashed: mean)", fontsize=style.LABEL_SIZE, color=style.SOFT)
    return figure


def plot_predicted_per_star(
    predicted: NDArray[Any],
    targets: NDArray[Any],
    classes: Sequence[str],
    *,
    title: str = "Predicted class for each true class",
) -> Figure:
    """Plot the shares of the predicted classes as one stacked bar for each true class, with the correct one outlined.

    A class without examples has the text "no examples" in place of a bar.

    Args:
        predicted: (n,) int, the predicted classes, as indices into `classes`.
        targets: (n,) int, the true classes, as indices into `classes`.
        classes: the names of the classes, from the worst to the best.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the shapes differ, a value is outside its range, n is 0, or there are no classes.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_predicted_per_star
        >>> figure = plot_predicted_per_star(np.array([0, 0, 1]), np.array([0, 1, 1]), ["negative", "positive"])
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['negative  (n = 1)', 'positive  (n = 2)']
    """
    if not classes:
        raise ValueError("classes is empty; pass the names of the classes")
    predicted = style.shaped("predicted", predicted, reviews=None)
    targets = style.shaped("targets", targets, reviews=len(predicted))
    _check_range("predicted", predicted, 0, len(classes) - 1)
    _check_range("targets", targets, 0, len(classes) - 1)

    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (targets, predicted), 1)
    names = [style.shorten(name) for name in classes]
    figure, axes = style.new_axes(title, 2.2 + 0.42 * len(classes))
    colors = [to_hex(WORST_TO_BEST(position)) for position in np.linspace(0, 1, len(classes))]
    _draw_stacks(axes, counts, names, colors)
    patches = [*(Patch(color=color) for color in colors), Patch(facecolor="white", **OUTLINE)]
    labels = [*names, "correct"]
    num_columns = min(len(labels), LEGEND_CHARACTERS // (max(map(len, labels)) + 7))
    style.legend(figure, patches, labels, title="predicted", ncols=num_columns)
    return figure


def _check_range(name: str, values: NDArray[Any], lowest: int, highest: int) -> None:
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"{name} has the type {values.dtype}; pass integers")
    outside = values[(values < lowest) | (values > highest)]
    if len(outside):
        raise ValueError(f"{name} has the value {outside[0]}; all values must be from {lowest} to {highest}")


def _draw_distribution(axes: Axes, probability: NDArray[Any], star: int) -> None:
    """Plot a histogram of (n,) probabilities for one number of stars, with a line at the mean."""
    style.tidy(axes)
    mean = probability.mean()
    share_of_one = np.full(len(probability), 100 / len(probability))
    axes.hist(probability, bins=BINS, range=(0, 1), weights=share_of_one, color=STAR_COLORS[star])
    axes.axvline(mean, color=style.INK, linewidth=1.2, linestyle="--")
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    name = "1 star" if star == 1 else f"{star} stars"
    style.panel_title(axes, f"{name}\nn = {len(probability):,}, mean {mean:.2f}", style.TICK_SIZE)


def _draw_stacks(axes: Axes, counts: NDArray[np.int64], names: list[str], colors: list[str]) -> None:
    """Plot each row of (true classes, predicted classes) counts as a stacked bar of shares, the first row on top."""
    style.tidy(axes)
    totals = counts.sum(axis=1)  # (classes,)
    percent = 100 * counts / np.maximum(totals, 1)[:, None]  # (classes, classes)
    starts = percent.cumsum(axis=1) - percent
    rows = np.arange(len(names))
    for column, color in enumerate(colors):
        bars = axes.barh(rows, percent[:, column], left=starts[:, column], height=0.74, color=color)
        if counts[column, column]:
            bars[column].set(**OUTLINE, zorder=3, clip_on=False)
        for row in rows[percent[:, column] >= SMALLEST_WRITTEN_SHARE]:
            center = starts[row, column] + percent[row, column] / 2
            axes.text(center, row, f"{percent[row, column]:.0f}", color=style.readable_on(color), **IN_THE_MIDDLE)
    for row in rows[totals == 0]:
        axes.text(50, row, "no examples", color=style.SOFT, **IN_THE_MIDDLE)

    labels = [f"{name}  (n = {total:,})" for name, total in zip(names, totals, strict=True)]
    axes.set_yticks(rows, labels, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.xaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.set_xlabel("share of the predictions for each true class")
    axes.set_ylabel("true")
