"""The style of all figures. The functions do not change matplotlib's global settings, and need no display.

The typeface is DejaVu Sans, with DejaVu Sans Mono for colored texts. matplotlib brings both, so a figure and its layout
are the same on every machine; no other sans serif is on all of them. It also has the signs ␣, ⏎ and µ.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, NullLocator
from matplotlib.typing import ColorType
from numpy.typing import ArrayLike, DTypeLike, NDArray

from firstlight.files.atomic import replacing

PIXELS_WIDE = 1200
WIDTH = 10.0  # inches; 10 points are about 17 pixels at this width
MARGIN = 0.1  # inches

# The palette of Okabe and Ito, which is suitable for color-blind readers.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW, BLACK = "#56B4E9", "#CC79A7", "#F0E442", "#000000"
PALETTE = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, YELLOW, BLACK)
DIVERGING = LinearSegmentedColormap.from_list("against and for", [VERMILION, "#EDA97D", "white", "#7FB8D8", BLUE])
INK, SOFT, GREY, PALE = "#222222", "#595959", "#8A8A8A", "#ECECEC"  # titles; labels; neutral elements; empty areas

HEADING_SIZE, TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 14.0, 11.0, 10.0, 9.5  # points
THIN = 0.6  # width of a thin line in points
ELLIPSIS = "…"
SAMPLE_MARK = " – GENERATED SAMPLE"
SIGNS = {"␣": "a space", "⏎": "a line break", "⇥": "a tab"}


Grid = Literal["both", "x", ""]  # the axes with grid lines


def shaped(name: str, values: ArrayLike, dtype: DTypeLike | None = None, **axes: int | None) -> NDArray[Any]:
    """Return an array with the given axes, such as `heads=None, queries=3`; None: of any length.

    name: that of the array in the message. Raises ValueError if the array has another shape or no values.
    """
    array = np.asarray(values, dtype)
    lengths = zip(axes.values(), array.shape, strict=False)
    if array.ndim != len(axes) or not array.size or any(wanted not in (None, found) for wanted, found in lengths):
        wanted = ", ".join(f"{axis}={length}" if length else axis for axis, length in axes.items())
        raise ValueError(f"{name} has shape {array.shape}; pass ({wanted}), with at least one value")
    return array


def new_figure(title: str = "", height: float = 5.0) -> Figure:
    """Return an empty white figure of WIDTH × height inches, which is about 1,200 pixels wide when shown or saved.

    The title is shortened to one line. A `$` in it does not start a formula.
    """
    layout = ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=0.6 * MARGIN)
    figure = Figure(figsize=(WIDTH, height), dpi=PIXELS_WIDE / WIDTH, facecolor="white", layout=layout)
    if title:
        heading(figure, title)
    return figure


def new_axes(title: str, height: float, x: str = "", y: str = "", grid: Grid = "") -> tuple[Figure, Axes]:
    """Return a figure as `new_figure` does, and its only axes, with labels and grid lines as `label_axes` sets them."""
    figure = new_figure(title, height)
    axes = figure.subplots()
    label_axes(axes, x, y, grid=grid)
    return figure, axes


def new_panels(title: str, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure as `new_figure` does, and its axes, row by row. options: of matplotlib's `subplots`."""
    figure = new_figure(title, height)
    return figure, figure.subplots(rows, columns, squeeze=False, **options).ravel()


def heading(figure: Figure, text: str) -> None:
    """Write the heading of a figure on one line, at the left. A `$` does not start a formula."""
    place = {"x": MARGIN / figure.get_figwidth(), "ha": "left"}
    figure.suptitle(shorten(text, limit=80), fontsize=HEADING_SIZE, color=INK, parse_math=False, **place)


def panel_title(axes: Axes, text: str, size: float = TITLE_SIZE) -> None:
    """Write the title of axes at their left edge. A `$` does not start a formula."""
    axes.set_title(text, x=0, ha="left", fontsize=size, color=INK, parse_math=False)


def with_signs(label: str, tokens: Sequence[str]) -> str:
    """Return a label that also says what the signs in the names of tokens stand for, such as ␣."""
    found = [f"{sign} is {meaning}" for sign, meaning in SIGNS.items() if any(sign in token for token in tokens)]
    return "; ".join([label, *found])


def tidy(axes: Axes) -> None:
    """Set the fonts and line widths of axes. Call it before you change single properties of the axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set(linewidth=THIN, color=GREY)
    axes.tick_params(labelsize=TICK_SIZE, length=3, width=THIN, color=GREY, labelcolor=SOFT)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(fontsize=LABEL_SIZE, color=SOFT)


def label_axes(axes: Axes, x: str, y: str, title: str = "", *, grid: Grid = "") -> None:
    """Set the style, labels, title and grid lines of axes. A `$` does not start a formula."""
    tidy(axes)
    axes.set_xlabel(x, parse_math=False)
    axes.set_ylabel(y, parse_math=False)
    if title:
        panel_title(axes, title)
    if grid:
        axes.grid(axis=grid, color=PALE, linewidth=THIN)
        axes.set_axisbelow(True)


def scale_by_log(axes: Axes, ticks: Iterable[float], form: str, base: int = 10) -> None:
    """Give the x axis a logarithmic scale with these ticks alone. form: of their labels, as for `str.format`."""
    axes.set_xscale("log", base=base)
    axes.xaxis.set_major_locator(FixedLocator(sorted({*ticks})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(form)


def label_point(axes: Axes, text: str, point: tuple[float, float], shift: tuple[float, float], ha: str) -> None:
    """Write a text near a point. shift: points to the right and up; ha: its horizontal alignment."""
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}  # on lines and grids
    look: dict[str, Any] = {"fontsize": TICK_SIZE, "color": INK, "ha": ha, "parse_math": False, "bbox": ground}
    axes.annotate(text, point, shift, textcoords="offset points", **look)


def legend(of: Figure | Axes, *entries: Sequence[Any], **options: Any) -> None:
    """Add a legend to axes, or below all axes of a figure. A `$` does not start a formula."""
    place = {"loc": "outside lower center"} if isinstance(of, Figure) else {}
    look = {"frameon": False, "fontsize": TICK_SIZE, "title_fontsize": TICK_SIZE}
    made = of.legend(*entries, **(place | look | options))
    for text in made.get_texts():
        text.set_parse_math(False)


def color_bar(image: ScalarMappable, figure: Figure, **options: Any) -> None:
    """Add the color scale of an image to a figure. options: of matplotlib's `colorbar`."""
    bar = figure.colorbar(image, **options)
    tidy(bar.ax)
    bar.outline.set_visible(False)


def readable_on(background: ColorType) -> str:
    """Return the text color, dark or white, with the higher contrast to a background."""
    luminance = _luminance(background)
    contrast_of_dark = (luminance + 0.05) / (_luminance(INK) + 0.05)
    contrast_of_white = 1.05 / (luminance + 0.05)
    return INK if contrast_of_dark >= contrast_of_white else "white"


def _luminance(color: ColorType) -> float:
    """Return the relative luminance of a color, from 0 to 1, as defined by WCAG."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def mark_sample(figure: Figure) -> None:
    """Add a mark to the heading of a figure that shows generated data."""
    heading(figure, f"{shorten(figure.get_suptitle(), limit=80 - len(SAMPLE_MARK))}{SAMPLE_MARK}")


def shorten(name: str, limit: int = 22) -> str:
    """Return a name on one line, cut to at most `limit` characters."""
    line = " ".join(name.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + ELLIPSIS


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure to a file, about 1,200 pixels wide. The suffix of the file name determines the format.

    The file is written under a temporary name and then renamed, so an interruption leaves no incomplete file. A missing
    folder is created.

    Args:
        figure: result of a `plot_…` function.
        path: path of the file, with the suffix .png, .svg, .pdf or another format that matplotlib supports.

    Returns:
        The path.

    Raises:
        ValueError: if matplotlib does not support the format.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from firstlight.figures import plot_ladder, save
        >>> figure = plot_ladder(["one_head", "with_positions"], losses=[2.48, 2.31], published=[2.476, None])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(figure, Path(folder) / "ladder.png").name
        'ladder.png'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix.removeprefix("."), dpi=PIXELS_WIDE / figure.get_figwidth())
    return path
