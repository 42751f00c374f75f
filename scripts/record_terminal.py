"""Record commands on a terminal as an animated GIF: python scripts/record_terminal.py OUT.gif 'COMMAND' ['COMMAND' …]

The commands run one after the other, as they are, on a pseudo-terminal. README's picture is made by

  python scripts/record_terminal.py docs/images/terminal.gif \
    'python src/train.py task=shakespeare model=tiny threads=1 trainer.max_steps=1000 trainer.val_check_interval=250' \
    'python src/generate.py latest --prompt "ROMEO." --tokens 300 --seed 1'
"""

import fcntl
import os
import pty
import struct
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import matplotlib
import pyte
from PIL import Image, ImageColor, ImageDraw, ImageFont

COLUMNS, ROWS, FONT_SIZE = 100, 30, 12
SPEED = 10  # the film is so many times as fast as the commands
FRAME_SECONDS, LAST_SECONDS, LONGEST_PAUSE = 0.25, 6.0, 0.6  # of the film
BACKGROUND, FOREGROUND = "#1b1f27", "#d8dee9"
COLORS = {
    "default": FOREGROUND,
    "white": FOREGROUND,
    "black": "#5c6573",
    "red": "#ef7b85",
    "green": "#a3be8c",
    "brown": "#ebcb8b",
    "blue": "#81a1c1",
    "magenta": "#c39ac9",
    "cyan": "#8fbcbb",
}


@dataclass
class Moment:
    """What the terminal shows from a time of the film on. lines: for each row its texts with their colors."""

    seconds: float
    lines: list[list[tuple[str, str]]]


def run(command: str) -> Iterator[tuple[float, bytes]]:
    """Run a command on a pseudo-terminal. Yields what it writes, with the seconds since its start."""
    process, terminal = pty.fork()
    if process == 0:
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


def film(commands: list[str]) -> list[Moment]:
    """Run the commands and return the moments at which the terminal changes."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    moments: list[Moment] = []
    now = 0.0
    for command in commands:
        stream.feed(f"\x1b[32m$ {command}\x1b[0m\r\n".encode())
        moments.append(Moment(now, shown(screen)))
        now += 1.0
        before = 0.0
        for seconds, written in run(command):
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
    width, height = round(font.getlength("M" * COLUMNS) / COLUMNS), FONT_SIZE + 4
    image = Image.new("RGB", (COLUMNS * width + 20, ROWS * height + 16), BACKGROUND)
    canvas = ImageDraw.Draw(image)
    for row, cells in enumerate(moment.lines):
        for column, (text, color) in enumerate(cells):
            if text.strip():
                canvas.text((10 + column * width, 8 + row * height), text, font=font, fill=color)
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


def main() -> None:
    """Record the commands of the command line."""
    target, *commands = sys.argv[1:]
    moments = film(commands)
    frames = [draw(moment) for moment in moments]
    seconds = [later.seconds - moment.seconds for moment, later in pairwise(moments)]
    durations = [max(20, round(1000 * pause)) for pause in seconds] + [0]
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)
    sys.stderr.write(f"{target}: {len(frames)} frames, {Path(target).stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
