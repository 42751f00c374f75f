"""Films of commands on a terminal, as animated GIFs. scripts/pictures.py makes the one of README."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import matplotlib
import pyte
from PIL import Image, ImageColor, ImageDraw, ImageFont

from lesson_pages import ROOT

COLUMNS, ROWS, FONT_SIZE = 84, 22, 20
SPEED = 4  # the film is so many times as fast as the commands
FRAME_SECONDS, LAST_SECONDS, LONGEST_PAUSE = 0.4, 6.0, 0.6  # of the film
BACKGROUND, FOREGROUND = "#f6f6f4", "#222222"
COLORS = {
    "default": FOREGROUND,
    "white": FOREGROUND,
    "black": "#6b6b6b",
    "red": "#b3261e",
    "green": "#00704f",
    "brown": "#8a5a00",
    "blue": "#005f99",
    "magenta": "#8e3a73",
    "cyan": "#006d75",
}


@dataclass
class Moment:
    """What the terminal shows from a time of the film on. lines: for each row its texts with their colors."""

    seconds: float
    lines: list[list[tuple[str, str]]]


def typed(command: str) -> Iterator[tuple[float, bytes]]:
    """Run a command on a pseudo-terminal. Yields what it writes, with the seconds since its start."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.pop("FIRSTLIGHT_DATA", None)
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
        os.execvp("sh", ["sh", "-c", command])  # noqa: S606, S607
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    start = time.monotonic()
    while True:
        try:
            written = os.read(terminal, 65536)
        except OSError:  # Linux: the command has ended
            written = b""
        if not written:
            break
        yield time.monotonic() - start, written
    _, status = os.waitpid(process, 0)
    if status:
        sys.exit(f"{command}: failed with exit code {os.waitstatus_to_exitcode(status)}")


def moments_of(commands: Iterable[str]) -> list[Moment]:
    """Run commands and return the moments at which the terminal changes."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    moments: list[Moment] = []
    now = 0.0
    for command in commands:
        shown_command = command.replace("\n", "\r\n")
        stream.feed(f"\x1b[32m$ {shown_command}\x1b[0m\r\n".encode())
        moments.append(Moment(now, shown(screen)))
        now += 1.0
        before = 0.0
        for seconds, written in typed(command):
            stream.feed(written)
            now += min((seconds - before) / SPEED, LONGEST_PAUSE)
            before = seconds
            if now - moments[-1].seconds >= FRAME_SECONDS:
                moments.append(Moment(now, shown(screen)))
        moments.append(Moment(now, shown(screen)))
        now += 1.0
    moments.append(Moment(now + LAST_SECONDS, shown(screen)))
    return moments


def shown(screen: pyte.Screen) -> list[list[tuple[str, str]]]:
    """Return the rows of a screen, each as characters with their colors."""
    rows = []
    for number in range(ROWS):
        row = screen.buffer[number]
        cells = [(row[column].data, COLORS.get(row[column].fg, f"#{row[column].fg}")) for column in range(COLUMNS)]
        rows.append([(text, color if len(color) == 7 else FOREGROUND) for text, color in cells])
    return rows


def draw(moment: Moment) -> Image.Image:
    """Draw a moment as an image with the colors of `palette`."""
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSansMono.ttf"), FONT_SIZE)
    width, height = round(font.getlength("M")), sum(font.getmetrics())  # so that the lines of tables are not broken
    image = Image.new("RGB", (COLUMNS * width + 20, ROWS * height + 16), BACKGROUND)
    canvas = ImageDraw.Draw(image)
    for row, cells in enumerate(moment.lines):
        for column, (text, color) in enumerate(cells):
            if text.strip():
                seen = "•" if "\u2800" <= text <= "\u28ff" else text  # the font has no braille, as of a spinner
                canvas.text((10 + column * width, 8 + row * height), seen, font=font, fill=color)
    return image.quantize(palette=palette(), dither=Image.Dither.NONE)


@cache
def palette() -> Image.Image:
    """Return an image whose palette has the colors of the terminal, each in a few steps from the background."""
    colors = [ImageColor.getrgb(color)[:3] for color in dict.fromkeys(COLORS.values())]
    dark = ImageColor.getrgb(BACKGROUND)[:3]
    steps = [
        [round(a + (b - a) * step / 4) for a, b in zip(dark, color, strict=True)]
        for color in colors
        for step in range(5)
    ]
    image = Image.new("P", (1, 1))
    image.putpalette([value for color in steps for value in color])
    return image


def record(commands: Iterable[str], folder: Path) -> tuple[list[Image.Image], list[int], list[str]]:
    """Run commands in a folder, and return a film of the terminal.

    Returns the frames, their durations in milliseconds, and the texts of the terminal: the cells of its lines.
    """
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "data").symlink_to(os.environ["FIRSTLIGHT_DATA"])  # so that the film shows no path of this machine
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with contextlib.chdir(folder):
        moments = moments_of(commands)
    seconds = [later.seconds - moment.seconds for moment, later in pairwise(moments)]
    durations = [max(20, round(1000 * pause)) for pause in seconds] + [0]
    lines = {"".join(text for text, _ in cells).strip() for moment in moments for cells in moment.lines}
    texts = {text.strip() for line in lines for text in re.split(r"  +|[│┃]", line) if text.strip()}
    return [draw(moment) for moment in moments], durations, sorted(texts)
