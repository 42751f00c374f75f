"""The look that all figures share. Nothing here touches matplotlib's global settings or needs a screen."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.typing import ColorType

PIXELS_WIDE = 1200
WIDTH = 10.0  # inches; 10 points are then about 17 pixels high
MARGIN = 0.1  # inches

# Okabe and Ito's colours, told apart by readers with any kind of colour vision.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW, BLACK = "#56B4E9", "#CC79A7", "#F0E442", "#000000"
PALETTE = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, YELLOW, BLACK)
DIVERGING = LinearSegmentedColormap.from_list("against and for", [VERMILION, "#EDA97D", "white", "#7FB8D8", BLUE])
INK, GREY, PALE = "#222222", "#8A8A8A", "#ECECEC"  # text and lines; what is neutral; what is empty

HEADING_SIZE, TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 13.0, 11.0, 11.0, 10.0  # points
THIN = 0.6  # points, of a line
ELLIPSIS = "…"
SAMPLE_MARK = " – GENERATED SAMPLE"


def new_figure(width: float = WIDTH, height: float = 5.0) -> Figure:
    """An empty white figure of width × height inches, shown or saved about 1,200 pixels wide."""
    layout = ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=0.6 * MARGIN)
    return Figure(figsize=(width, height), dpi=PIXELS_WIDE / width, facecolor="white", layout=layout)


def lay_out(figure: Figure) -> None:
    """Place everything where drawing would place it, without drawing: twice as fast as draw_without_rendering."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)


def heading(figure: Figure, text: str) -> None:
    """Write a figure's heading on one line; a `$` in it is a `$`."""
    figure.suptitle(shorten(text, limit=80), fontsize=HEADING_SIZE, fontweight="bold", color=INK, parse_math=False)


def tidy(axes: Axes) -> None:
    """Give axes the shared fonts and thin lines; call it before setting what should differ."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set(linewidth=THIN, color=INK)
    axes.tick_params(labelsize=TICK_SIZE, width=THIN, color=INK, labelcolor=INK)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(fontsize=LABEL_SIZE, color=INK)


def label_axes(axes: Axes, x: str, y: str, title: str = "") -> None:
    """Tidy axes and write what they show, with the unit; a `$` in it is a `$`."""
    tidy(axes)
    axes.set_xlabel(x, parse_math=False)
    axes.set_ylabel(y, parse_math=False)
    if title:
        axes.set_title(title, fontsize=TITLE_SIZE, color=INK, parse_math=False)


def readable_on(background: ColorType) -> str:
    """The colour of text, dark or white, that stands out more from a background."""
    luminance = _luminance(background)
    contrast_of_dark = (luminance + 0.05) / (_luminance(INK) + 0.05)
    contrast_of_white = 1.05 / (luminance + 0.05)
    return INK if contrast_of_dark >= contrast_of_white else "white"


def _luminance(color: ColorType) -> float:
    """The relative luminance of a colour, 0 to 1, as the web's accessibility guidelines define it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def mark_sample(figure: Figure) -> None:
    """Say in a figure's heading that it is about generated data, not real ones."""
    figure.suptitle(
        f"{shorten(figure.get_suptitle(), limit=80 - len(SAMPLE_MARK))}{SAMPLE_MARK}",
        fontsize=HEADING_SIZE,
        fontweight="bold",
        color=INK,
        parse_math=False,
    )


def shorten(name: str, limit: int = 22) -> str:
    """A name on one line of at most `limit` characters."""
    line = " ".join(name.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + ELLIPSIS


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure about 1,200 pixels wide to a file; the suffix of the name gives the format.

    The file is written under another name and renamed, so that it is complete or absent. A missing folder is created.

    Args:
        figure: what a `plot_…` function returns.
        path: name of the file, which ends in .png, .svg, .pdf or another format that matplotlib knows.

    Returns:
        The path.

    Raises:
        ValueError: if the suffix is not the name of a format.

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
    supported = figure.canvas.get_supported_filetypes()
    file_format = path.suffix.removeprefix(".").lower()
    if file_format not in supported:
        raise ValueError(f"cannot save a figure as {path.name!r}; end the name in one of .{', .'.join(supported)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    dpi = PIXELS_WIDE / figure.get_figwidth()
    try:
        with _laid_out(figure) if file_format == "png" and figure.dpi == dpi else nullcontext():
            figure.savefig(unfinished, format=file_format, dpi=dpi)
        os.replace(unfinished, path)  # noqa: PTH105 (one atomic step, also onto a file that exists)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Lay a figure out now, so that saving it does not draw everything a second time to do so."""
    engine = figure.get_layout_engine()
    if engine is None:
        yield
        return
    engine.execute(figure)
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)
