"""A table of names and values as a figure."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from firstlight.figures import style

LINE = 0.3  # height of a row in inches
SIZE = 11.0  # points
VALUES = 0.45  # left edge of the values, as a share of the width


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
    figure, axes = style.new_axes(title, LINE * len(rows) + 0.8)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows), 0)
    axes.set_axis_off()
    for number, (name, value) in enumerate(rows.items()):
        axes.axhline(number + 1, color=style.PALE, linewidth=style.THIN)
        for place, text, color in ((0.0, name, style.GREY), (VALUES, style.shorten(value, 36), style.INK)):
            axes.text(place, number + 0.5, text, fontsize=SIZE, color=color, va="center", parse_math=False)
    return figure
