"""Figures of a text in which each word or character is colored by a number."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from firstlight.figures import style

SURPRISE = colormaps["Oranges"]
MOST_BITS = 8.0  # upper end of the scale of surprise; larger values have the same color
COLUMNS = 90  # characters in a line
CHARACTER_WIDTH = 0.602  # width of a character of the monospaced font, relative to the font size
LARGEST_TEXT = 12.0  # points
LINE_HEIGHT = 2.1  # height of a line, relative to the width of a character
NUMBER_HEIGHT = 1.7  # height of a line of numbers below the words, relative to the width of a character
BAR_HEIGHT, TOP = 0.9, 0.5  # inches
SHOWN_NEW_LINE = "⏎"


class _Placed(NamedTuple):
    """Position of a piece of text, in characters and lines."""

    text: str
    column: int
    line: int
    width: int


def plot_colored_words(
    words: Sequence[str], scores: NDArray[Any], *, title: str = "Score of each word", label: str = "score"
) -> Figure:
    """Plot words with their scores below them: positive scores in blue, negative ones in orange, large ones darker.

    Args:
        words: (words,) strings, in the order of the text.
        scores: (words,) float, such as attributions; the color scale is symmetric around 0.
        title: heading of the figure.
        label: label of the color scale, including the unit of the scores.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or there are no words.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_colored_words
        >>> figure = plot_colored_words(["not", "a", "good", "film"], np.array([-0.8, 0.0, 0.5, 0.1]))
        >>> [text.get_text() for text in figure.axes[0].texts[:2]]
        ['not', '−0.80']
    """
    scores = style.shaped("scores", scores, np.float64, words=len(words))
    decimals = int(np.clip(1 - np.floor(np.log10(np.abs(scores).max() or 1)), 1, 4))  # two digits of the largest score
    written = [_signed(score, decimals) for score in scores]
    widths = [max(_width(word), len(number)) for word, number in zip(words, written, strict=True)]
    placed = _flow(words, [width + 1 for width in widths])
    limit = max(float(np.abs(scores).max()), 1e-6)
    colors = ScalarMappable(Normalize(-limit, limit), style.DIVERGING)
    return _draw(placed, scores, colors, title, label, numbers=written, gap=0.35)


def plot_surprising_text(
    pieces: Sequence[str], bits: NDArray[Any], *, title: str = "Surprise of each character"
) -> Figure:
    """Plot a text with a background color for each piece: the darker the color, the larger the surprise.

    A line break in the text is shown as ⏎ and starts a new line.

    Args:
        pieces: (pieces,) strings, such as characters or tokens. Their concatenation is the text.
        bits: (pieces,) float, the surprise -log2(probability) of each piece in bits, at least 0.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ, or the text is empty.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_surprising_text
        >>> figure = plot_surprising_text(list("ROMEO"), np.array([4.1, 2.0, 0.3, 0.1, 0.1]))
        >>> "".join(text.get_text() for text in figure.axes[0].texts)
        'ROMEO'
    """
    bits = style.shaped("bits", bits, np.float64, pieces=len(pieces))
    placed = _flow(pieces, [_width(piece) for piece in pieces])
    colors = ScalarMappable(Normalize(0, MOST_BITS), SURPRISE)
    return _draw(placed, bits, colors, title, "surprise (bits per character)")


def plot_exciting_texts(
    found: Mapping[str, Sequence[tuple[Sequence[str], NDArray[Any]]]],
    *,
    title: str = "Texts that excite a unit most",
) -> Figure:
    """Plot pieces of text below the names of units: the darker a token, the larger the activation of the unit.

    Args:
        found: name of the unit -> its texts, each as the tokens, (length,) strings, and the activations, (length,)
            float. The scale of a unit ends at its largest activation.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if there is no unit, or a text has other numbers of tokens and activations.

    Example:
        >>> import numpy as np
        >>> from firstlight.figures import plot_exciting_texts
        >>> figure = plot_exciting_texts({"unit 3": [(["not", "a", "good", "film"], np.array([0.1, 0.0, 2.0, 0.0]))]})
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['unit 3', 'not', 'a', 'good', 'film']
    """
    if not found or any(len(tokens) != len(values) for texts in found.values() for tokens, values in texts):
        raise ValueError("found must have at least one unit, and one activation for each token of its texts")
    pieces, values = [], []
    for name, texts in found.items():
        most = max((float(np.max(values_of, initial=0.0)) for _, values_of in texts), default=0.0) or 1.0
        pieces.append(f"{name}\n")
        values.append(0.0)
        for tokens, values_of in texts:
            shown = [token.replace("\n", "⏎") for token in tokens]
            pieces += [*shown, "\n"]
            values += [*(float(value) / most for value in values_of), 0.0]
    placed = [piece._replace(text=piece.text.removesuffix("⏎")) for piece in _flow(pieces, [*map(_width, pieces)])]
    colors = ScalarMappable(Normalize(0, 1), SURPRISE)
    return _draw(placed, np.clip(values, 0, 1), colors, title, "activation (share of the unit's largest one)")


def _signed(score: float, decimals: int) -> str:
    """Return a number as text, with a sign unless it is zero."""
    text = f"{score:+.{decimals}f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


def _width(text: str) -> int:
    """Return the width of a text in columns: two for a wide East Asian character, zero for a combining mark."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _flow(pieces: Sequence[str], widths: Sequence[int]) -> list[_Placed]:
    """Place pieces one after another. A new line begins when a line is full or a piece ends in a line break."""
    placed, column, line = [], 0, 0
    for piece, width in zip(pieces, widths, strict=True):
        shown = piece.replace("\n", SHOWN_NEW_LINE).replace("\t", " ")
        if column and column + width > COLUMNS:
            column, line = 0, line + 1
        if width > COLUMNS:
            shown, width = shown[: COLUMNS - 1] + style.ELLIPSIS, COLUMNS
        placed.append(_Placed(shown, column, line, width))
        column += width
        if piece.endswith("\n"):
            column, line = 0, line + 1
    return placed


def _draw(
    placed: Sequence[_Placed],
    values: NDArray[np.float64],
    colors: ScalarMappable,
    title: str,
    label: str,
    *,
    numbers: Sequence[str] = (),
    gap: float = 0.0,
) -> Figure:
    """Plot placed pieces and a color bar. numbers: text below each piece; gap: space between pieces in characters."""
    columns = max(max(piece.column + piece.width for piece in placed), 40)
    num_lines = placed[-1].line + 1
    character = min((style.WIDTH - 2 * style.MARGIN) / columns, LARGEST_TEXT * CHARACTER_WIDTH / 72)  # inches
    line_height = character * (LINE_HEIGHT + (NUMBER_HEIGHT if numbers else 0))
    height = TOP + num_lines * line_height + BAR_HEIGHT
    figure = style.new_figure(title, height)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, BAR_HEIGHT / height, 1, num_lines * line_height / height))
    axes.set_axis_off()
    axes.set_xlim(-style.MARGIN / character, (style.WIDTH - style.MARGIN) / character)
    axes.set_ylim(num_lines, 0)
    boxes = [Rectangle((piece.column, piece.line + 0.04), piece.width - gap, 0.92) for piece in placed]
    grounds = colors.to_rgba(values)
    axes.add_collection(PatchCollection(boxes, facecolors=grounds, edgecolors="none"))
    size = character * 72 / CHARACTER_WIDTH
    for i, (piece, ground) in enumerate(zip(placed, grounds, strict=True)):
        color = style.readable_on(tuple(ground))
        middle = piece.column + (piece.width - gap) / 2
        centered: dict[str, Any] = {"color": color, "ha": "center", "va": "center", "parse_math": False}
        if piece.text.strip():
            center = piece.line + (0.3 if numbers else 0.5)
            axes.text(middle, center, piece.text, fontsize=0.96 * size, fontfamily="monospace", **centered)
        if numbers:
            axes.text(middle, piece.line + 0.77, numbers[i], fontsize=0.7 * size, **centered)
    bar_axes = figure.add_axes((0.2, 0.55 / height, 0.6, 0.13 / height))
    extend = "neither" if numbers else "max"
    style.color_bar(colors, figure, cax=bar_axes, orientation="horizontal", extend=extend)
    bar_axes.set_xlabel(label, parse_math=False)
    return figure
