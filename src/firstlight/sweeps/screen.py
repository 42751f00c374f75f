"""Where the output of a sweep goes: the live table to the terminal, what jobs and libraries write to files."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from rich.console import ConsoleDimensions, RenderableType
from rich.live import Live

from firstlight.console import Console

OUTPUT = "output.txt"  # in the folder of a job: what it prints; in the folder of a sweep: what nothing else has caught
STANDARD = (1, 2)  # the file descriptors of standard output and standard error


class TerminalConsole(Console):
    """A console that writes to one terminal and has its size, wherever standard input, output and error go."""

    @property  # type: ignore[misc]  # nothing sets it
    def size(self) -> ConsoleDimensions:
        """The size of the terminal."""
        return ConsoleDimensions(*os.get_terminal_size(self.file.fileno()))


@contextmanager
def live_table(table: Callable[[], RenderableType], per_second: float, other_output: Path) -> Iterator[Live]:
    """Show a table at the bottom of the terminal until the end of the block, which removes it.

    Log lines and what this process prints appear above it. What else is written to the terminal by this process or
    its children, such as a library in C, is appended to the file other_output.
    """
    with ExitStack() as stack:
        terminal = stack.enter_context(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace"))
        live = Live(
            console=TerminalConsole(file=terminal, soft_wrap=True),
            get_renderable=table,
            refresh_per_second=per_second,
            transient=True,
            redirect_stderr=sys.stderr.isatty(),
        )
        stack.enter_context(descriptors_to(other_output, [number for number in STANDARD if os.isatty(number)]))
        yield stack.enter_context(live)
    if other_output.stat().st_size == 0:
        other_output.unlink()


@contextmanager
def own_output(folder: Path) -> Iterator[None]:
    """Let a job, its processes and its libraries write to a file in its folder instead of the terminal."""
    with (
        (folder / OUTPUT).open("a", encoding="utf-8", buffering=1) as file,
        descriptors_to(folder / OUTPUT, STANDARD),
        redirect_stdout(file),
        redirect_stderr(file),
    ):
        yield


@contextmanager
def descriptors_to(path: Path, descriptors: Sequence[int]) -> Iterator[None]:
    """Append to a file what this process and its children write to some file descriptors."""
    with path.open("ab", buffering=0) as file, ExitStack() as stack:
        flush()
        for number in descriptors:
            copy = os.dup(number)
            stack.callback(os.close, copy)
            stack.callback(os.dup2, copy, number)
            os.dup2(file.fileno(), number)
        stack.callback(flush)
        yield


def flush() -> None:
    """Write out what Python still buffers for standard output and standard error."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
