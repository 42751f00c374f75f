"""A live table on a terminal. All other output of jobs, their processes and libraries goes elsewhere meanwhile."""

import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import ConsoleDimensions, RenderableType
from rich.live import Live

from firstlight.console import Console

LAUNCHERS = ("hydra", "hydra_plugins")  # whose log lines repeat what a sweep prints
STANDARD = (1, 2)  # the file descriptors of standard output and standard error


class TerminalConsole(Console):
    """A console that writes to one terminal and has its size, wherever standard input, output and error go."""

    @property
    def size(self) -> ConsoleDimensions:
        """The size of the terminal, or the size that COLUMNS and LINES set."""
        width, height = os.get_terminal_size(self.file.fileno())
        columns, lines = (os.environ.get(name, "") for name in ("COLUMNS", "LINES"))
        return ConsoleDimensions(
            int(columns) if columns.isdigit() else width, int(lines) if lines.isdigit() else height
        )

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        raise NotImplementedError("the terminal has its size")


class Above(io.TextIOBase):
    """A text stream whose lines are printed above the live table."""

    def __init__(self, console: Console) -> None:
        self._console, self._line = console, ""

    def write(self, text: str) -> int:
        """Print the complete lines, and keep the rest until its end is written."""
        *complete, self._line = (self._line + text).split("\n")
        for line in complete:
            self._console.print(line, soft_wrap=True)
        return len(text)


@contextmanager
def live_table(table: Callable[[], RenderableType], per_second: float, other_output: Path) -> Iterator[Live]:
    """Show a table at the bottom of the terminal until the end of the block, which removes it.

    Log lines and what this process prints appear above it. What else is written to the terminal by this process or
    its children, such as a library in C, is appended to the file other_output.
    """
    with ExitStack() as stack:
        terminal = stack.enter_context(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace"))
        console = TerminalConsole(file=terminal)
        stack.enter_context(streams_to(Above(console)))
        stack.enter_context(descriptors_to(other_output))
        live = Live(
            console=console,
            get_renderable=table,
            refresh_per_second=per_second,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        yield stack.enter_context(live)
    if other_output.stat().st_size == 0:
        other_output.unlink()


@contextmanager
def silenced(loggers: tuple[str, ...]) -> Iterator[None]:
    """Let loggers emit warnings and errors only."""
    levels = {name: logging.getLogger(name).level for name in loggers}
    for name in loggers:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def streams_to(stream: Any) -> Iterator[None]:
    """Let print, warnings and the handlers of the root logger write to a stream instead of the terminal.

    Standard output and standard error do not change where they are not a terminal.
    """
    output, error = sys.stdout, sys.stderr
    replaced = [each for each in (output, error) if each.isatty()]
    before = {handler: handler.stream for handler in stream_handlers() if handler.stream in replaced}
    for handler in before:
        handler.setStream(stream)
    sys.stdout, sys.stderr = (stream if each in replaced else each for each in (output, error))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = output, error
        for handler in stream_handlers():  # Hydra makes new ones for each job
            if handler.stream is stream:
                handler.setStream(before.get(handler, output))


def stream_handlers() -> list[Any]:
    """Return the handlers of the root logger that write to standard output or standard error, not to a file."""
    return [handler for handler in logging.getLogger().handlers if type(handler) is logging.StreamHandler]


@contextmanager
def descriptors_to(path: Path, descriptors: tuple[int, ...] | None = None) -> Iterator[None]:
    """Append to a file what is written to standard output and standard error of this process and its children.

    descriptors: those to redirect; None: those that are a terminal.
    """
    chosen = [number for number in STANDARD if os.isatty(number)] if descriptors is None else descriptors
    with path.open("ab", buffering=0) as file:
        copies: dict[int, Any] = {number: os.dup(number) for number in chosen}
        flush()
        for number in chosen:
            os.dup2(file.fileno(), number)
        try:
            yield
        finally:
            flush()
            for number, copy in copies.items():
                os.dup2(copy, number)
                os.close(copy)


def flush() -> None:
    """Write out what Python still buffers for standard output and standard error."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
