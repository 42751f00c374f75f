"""Figures of tables: names with their values, and the most confident mistakes of a classifier."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from firstlight.figures import style

ROW = 0.3  # height of a row of a table in inches
VALUES = 0.45  # left edge of the values, as a share of the width
MOST_LINES = 3  # lines of the text of a mistake
LINE, SPACE = 0.19, 0.14  # inches: height of a line of text, and space between two mistakes
SIZE = 9.5  # points
COLUMNS = (0.0, 0.155, 0.27)  # left edge of each column, as a share of the width
LINE_LENGTH = 80  # characters; a line of capital letters fits too
LONGEST_PART = 40  # characters of a word that fit a line, whatever they are


def plot_table(rows: Mapping[str, str], *, title: str) -> Figure:
    """Draw a table with one name and one value in each row.

    Args:
        rows: name -> value, both as text, in the order in which they are drawn.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `rows` is empty.

    Example:
        >>> from firstlight.figures import plot_table
        >>> figure = plot_table({"lines": "182,550", "words": "925,063"}, title="Statistics of the plays")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['lines', '182,550', 'words', '925,063']
    """
    if not rows:
        raise ValueError("rows is empty; pass at least one name and its value")
    figure, axes = style.new_axes(title, ROW * len(rows) + 0.8)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows), 0)
    axes.set_axis_off()
    for number, (name, value) in enumerate(rows.items()):
        axes.axhline(number + 1, color=style.PALE, linewidth=style.THIN)
        for place, text, color in ((0.0, name, style.GREY), (VALUES, style.shorten(value, 36), style.INK)):
            axes.text(place, number + 0.5, text, fontsize=style.LABEL_SIZE, color=color, va="center", parse_math=False)
    return figure


class Mistake(NamedTuple):
    """One wrong prediction, which is a row of `plot_mistakes`.

    Attributes:
        text: the text that was classified.
        true: name of the true class.
        predicted: name of the predicted class.
        probability: probability of the predicted class, from 0 to 1.

    Example:
        >>> from firstlight.figures import Mistake
        >>> Mistake("Not bad at all.", true="positive", predicted="negative", probability=0.97).predicted
        'negative'
    """

    text: str
    true: str
    predicted: str
    probability: float


def plot_mistakes(rows: Sequence[Mistake], *, title: str = "The most confident mistakes") -> Figure:
    r"""Draw a table of wrong predictions: the true class, the predicted class with its probability, and the text.

    Texts are cut after three lines.

    Args:
        rows: the mistakes, in the order in which they are drawn.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if `rows` is empty.

    Example:
        >>> from firstlight.figures import Mistake, plot_mistakes
        >>> figure = plot_mistakes([Mistake("Not bad at all.", "positive", "negative", 0.97)])
        >>> [text.get_text() for text in figure.axes[0].texts[3:]]
        ['positive', 'negative\n97.0%', 'Not bad at all.']
    """
    if not rows:
        raise ValueError("rows is empty; pass at least one mistake")
    cut = [_lines(row.text) for row in rows]
    heights = [max(len(lines), 2) * LINE + SPACE for lines in cut]
    height = sum(heights) + LINE + 2 * SPACE
    figure, axes = style.new_axes(title, height + 0.5)
    axes.set_xlim(0, 1)
    axes.set_ylim(height, 0)  # inches, downwards
    axes.set_axis_off()
    for place, name in zip(COLUMNS, ("true", "predicted", "text"), strict=True):
        axes.text(place, SPACE, name, fontsize=SIZE, fontweight="bold", color=style.INK, va="top")
    position = LINE + 1.7 * SPACE
    for row, lines, row_height in zip(rows, cut, heights, strict=True):
        axes.axhline(position - 0.5 * SPACE, color=style.GREY, linewidth=style.THIN)
        cells = (
            (style.shorten(row.true, 15), style.BLUE),
            (f"{style.shorten(row.predicted, 11)}\n{row.probability:.1%}", style.VERMILION),
            ("\n".join(lines), style.INK),
        )
        for place, (text, color) in zip(COLUMNS, cells, strict=True):
            cell = axes.text(place, position, text, fontsize=SIZE, color=color, va="top", linespacing=1.25)
            cell.set(parse_math=False, in_layout=False)  # the lines already fit the width of the figure
        position += row_height
    return figure


def _lines(text: str) -> list[str]:
    """Return a text as at most three lines. The last line of a longer text ends in an ellipsis."""
    parts = re.findall(rf"\S{{1,{LONGEST_PART}}}", text) or ["(empty)"]
    return textwrap.wrap(" ".join(parts), LINE_LENGTH, max_lines=MOST_LINES, placeholder=style.ELLIPSIS)
