"""Confusion matrices as figures and as tables."""

import math
from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from firstlight.figures import style

COLORS = colormaps["Blues"].with_extremes(bad=style.PALE)
NO_EXAMPLES = "–"
CHARACTER_WIDTH = 0.62  # mean width of a digit, relative to the font size
SMALLEST_TEXT = 5.0  # points; smaller text is not readable
MOST_TICK_LABELS = 40
SPARSE_FROM = 11  # classes; from this number on, shares are rounded and zeros are omitted


class Confusion(TypedDict):
    """One cell of a confusion matrix, as a row of a table.

    `confusion_table` returns these rows.

    Attributes:
        true: name of the true class.
        predicted: name of the predicted class.
        count: number of examples.
        share_of_true: count divided by the number of examples of the true class; None if there are none.

    Example:
        >>> from firstlight.figures import Confusion
        >>> Confusion(true="negative", predicted="positive", count=3, share_of_true=0.25)["count"]
        3
    """

    true: str
    predicted: str
    count: int
    share_of_true: float | None


def plot_confusion_matrix(counts: NDArray[Any], classes: Sequence[str], *, title: str = "Confusion matrix") -> Figure:
    """Plot a confusion matrix twice: as counts, and as percentages of each true class.

    The font size of the cells' texts depends on the size of the cells. Texts that would not be readable are omitted.

    Args:
        counts: (classes, classes) int; the row is the true class, the column the predicted class.
        classes: the names of the classes.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `counts` is not square, does not match `classes`, or has values that are not counts.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_confusion_matrix
        >>> figure = plot_confusion_matrix(np.array([[40, 10], [5, 45]]), ["negative", "positive"])
        >>> [text.get_text() for text in figure.axes[1].texts]
        ['80.0%', '20.0%', '10.0%', '90.0%']
    """
    counts = _checked(counts, classes)
    names = [style.shorten(name) for name in classes]
    figure, (left, right) = style.new_panels(title, style.WIDTH, columns=2)
    percent = 100 * _shares(counts)
    left_image = _draw_panel(figure, left, counts, "Number of examples", top=max(1, counts.max()))
    right_image = _draw_panel(figure, right, percent, "Percentage of each true class", top=100)
    _name_axes(left, names)
    _name_axes(right, names, name_rows=False)

    _lay_out_squarely(figure, left)
    is_sparse = len(counts) >= SPARSE_FROM
    _write_cells(left_image, [["" if is_sparse and not count else f"{count:,}" for count in row] for row in counts])
    _write_cells(right_image, [[_percent_text(value, is_sparse) for value in row] for row in percent.tolist()])
    return figure


def confusion_table(counts: NDArray[Any], classes: Sequence[str]) -> list[Confusion]:
    """Return a confusion matrix as rows for a CSV file or the table of a logger, one row for each cell.

    Args:
        counts: (classes, classes) int; the row is the true class, the column the predicted class.
        classes: the names of the classes.

    Returns:
        classes² rows, see `Confusion`; all cells of the first true class come first.

    Raises:
        ValueError: if `counts` is not square, does not match `classes`, or has values that are not counts.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import confusion_table
        >>> rows = confusion_table(np.array([[40, 10], [5, 45]]), ["negative", "positive"])
        >>> rows[1]
        {'true': 'negative', 'predicted': 'positive', 'count': 10, 'share_of_true': 0.2}
    """
    counts = _checked(counts, classes)
    shares = _shares(counts).tolist()
    return [
        Confusion(true=true, predicted=predicted, count=int(counts[row, column]), share_of_true=shares[row][column])
        for row, true in enumerate(classes)
        for column, predicted in enumerate(classes)
    ]


def _checked(counts: NDArray[Any], classes: Sequence[str]) -> NDArray[np.int64]:
    counts = style.shaped("counts", counts, true_classes=len(classes), predicted_classes=len(classes))
    if not np.issubdtype(counts.dtype, np.integer):
        raise ValueError(f"counts has the type {counts.dtype}; pass integers, not shares")
    if counts.min() < 0:
        raise ValueError(f"counts has the negative value {counts.min()}; pass counts of at least 0")
    return counts.astype(np.int64)


def _shares(counts: NDArray[np.int64]) -> np.ma.MaskedArray[Any, Any]:
    """Return each row divided by its sum: (classes, classes) from 0 to 1, masked for true classes without examples."""
    totals = counts.sum(axis=1, keepdims=True)  # (classes, 1)
    return np.ma.MaskedArray(counts / np.maximum(totals, 1), mask=np.broadcast_to(totals == 0, counts.shape))


def _percent_text(value: float | None, is_sparse: bool) -> str:
    if value is None:
        return NO_EXAMPLES
    if is_sparse:
        return f"{value:.0f}" if round(value) else ""
    return f"{value:.1f}%"


def _draw_panel(figure: Figure, axes: Axes, values: NDArray[Any], title: str, *, top: float) -> AxesImage:
    """Plot (classes, classes) values as an image with a color bar from 0 to `top`, and return the image."""
    style.label_axes(axes, "predicted", "true", title)
    axes.spines[:].set_visible(False)
    image = axes.imshow(values, cmap=COLORS, norm=Normalize(0, top), aspect="auto")
    bar_axes = axes.inset_axes((1.03, 0, 0.035, 1))  # to the right of the image, with the same height
    ticks = MaxNLocator(5, integer=True)
    style.color_bar(image, figure, cax=bar_axes, ticks=ticks, format="{x:,.0f}")
    return image


def _name_axes(axes: Axes, names: list[str], *, name_rows: bool = True) -> None:
    """Label rows and columns with the names of the classes. If there are many classes, only some have a label."""
    shown = range(0, len(names), math.ceil(len(names) / MOST_TICK_LABELS))
    labels = [names[index] for index in shown]
    size = float(np.clip(220 / len(names), 6, style.TICK_SIZE))
    do_overlap = len(names) * max(map(len, names)) > 40
    angle = 0 if not do_overlap else 45 if len(names) <= 12 else 90  # degrees
    slanted: dict[str, Any] = {"rotation": angle, "ha": "right", "va": "center", "rotation_mode": "anchor"}
    axes.set_xticks(shown, labels, fontsize=size, parse_math=False, **(slanted if angle else {}))
    axes.set_yticks(shown, labels if name_rows else [""] * len(shown), fontsize=size, parse_math=False)
    axes.tick_params(length=0)


def _lay_out_squarely(figure: Figure, axes: Axes) -> None:
    """Lay out a figure, and set its height so that the panels are square for any length of the names."""
    engine: Any = figure.get_layout_engine()
    engine.execute(figure)  # takes half the time of draw_without_rendering
    panel = axes.get_window_extent()  # pixels
    figure.set_figheight(figure.get_figheight() + (panel.width - panel.height) / figure.dpi)
    engine.execute(figure)


def _write_cells(image: AxesImage, texts: list[list[str]]) -> None:
    """Write a text into each cell, in the largest font that fits the longest text, unless it is too small to read."""
    axes = image.axes
    cell_width = axes.get_window_extent().width / axes.figure.dpi * 72 / len(texts)  # points
    longest = max(len(text) for row in texts for text in row)
    size = min(style.LABEL_SIZE, 0.7 * cell_width, 0.9 * cell_width / (CHARACTER_WIDTH * longest))
    if size < SMALLEST_TEXT:
        return
    colors = image.to_rgba(np.ma.asarray(image.get_array()))  # (classes, classes, 4)
    for (row, column), text in np.ndenumerate(np.array(texts)):
        if text:
            color = style.readable_on(tuple(colors[row, column]))
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=color)
