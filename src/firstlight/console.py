"""A console of rich that shows text unchanged: brackets are not markup, and control characters are escaped."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.file_proxy import FileProxy
from rich.segment import Segment
from rich.text import Text

from firstlight.terminal_text import discard_output, visible

WIDTH_OF_A_FILE = 10_000  # characters


class Console(RichConsole):
    """A rich console without markup, emoji codes and highlights, which escapes control characters.

    This applies to strings in tables too: `[red]` is shown as `[red]`, and ESC is written as an escape.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False} | options)

    def on_broken_pipe(self) -> None:
        """Discard further output. A run continues; the base class would end it."""
        discard_output()

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as a rich text; here, so that the columns of a table have the width of what is shown."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object, with control characters in its text escaped; rich's own commands stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def wide_console() -> Console:
    """Return a console whose tables are as wide as they need if the output goes into a file or a pipe."""
    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=WIDTH_OF_A_FILE)


_shared: ContextVar[Console | None] = ContextVar("shared", default=None)


@contextmanager
def one_console(*, quiet: bool = False) -> Iterator[Console]:
    """Make one console that everything within the block prints through, so that a live display stays below it.

    Long lines of text are not wrapped at words: a command or a path can be copied from the terminal.

    Args:
        quiet: Whether it prints nothing.
    """
    console = Console(quiet=quiet, soft_wrap=True)
    token = _shared.set(console)
    try:
        yield console
    finally:
        _shared.reset(token)


def is_watched() -> bool:
    """Return whether standard output is a terminal on which nothing else, such as a sweep's table, is live."""
    return sys.stdout.isatty() and not isinstance(sys.stdout, FileProxy) and not terminal().is_dumb_terminal


def terminal() -> Console:
    """Return the console of the enclosing `one_console`, or a new one."""
    return _shared.get() or Console()


def quoted_below(text: str) -> str:
    """Return a text to show below a line: wrapped for the width of the terminal, with a bar in front of each line."""
    console = terminal()
    lines = Text(visible(text) if text.strip() else "(empty)").wrap(console, max(console.width - 4, 1))
    return "\n".join(f"  │ {line.plain.rstrip()}" for line in lines)
