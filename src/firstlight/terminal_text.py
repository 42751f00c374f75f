"""Printing without control characters: text from files, data sets and networks cannot send commands to the terminal.

All lines are printed by `say` or `write_out`, JSON by `write_json`, tables by `firstlight.console`, and lines of a log
by `Formatter`. Imports nothing heavy.
"""

import io
import json
import logging
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TextIO

# The control characters C0 and C1 except tab and newline, which can send commands to a terminal (ESC begins a command,
# OSC sets the title or the clipboard); the characters that change the order in which text is shown
# (https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing); surrogates, which no encoding can write.
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

format_warning = warnings.formatwarning


def visible(text: str) -> str:
    r"""Return the text with control characters as escapes such as `\x1b`; tabs and newlines are unchanged."""
    return COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(*parts: object, to: TextIO | None = None, flush: bool = False) -> None:
    """Print a line on standard output or another stream, with control characters as escapes."""
    print(visible(" ".join(map(str, parts))), file=to, flush=flush)


def note(text: str) -> None:
    """Print a line that begins with `note:` on standard error."""
    say(f"note: {text}", to=sys.stderr)


def write_out(text: str, *, end: str = "\n", flush: bool = False) -> None:
    """Write a result to standard output: with escapes on a terminal, and unchanged into a pipe or a file."""
    print(shown(text), end=end, flush=flush)  # noqa: T201


_results: ContextVar[TextIO | None] = ContextVar("results", default=None)  # standard output within `only_json`


@contextmanager
def only_json(*, wanted: bool) -> Iterator[None]:
    """Within the block, let only `write_json` write to standard output. Everything else goes to standard error.

    wanted: whether the command has `--json`; without it, nothing changes.
    """
    token = _results.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr if wanted else sys.stdout):
            yield
    finally:
        _results.reset(token)


def write_json(value: Any, indent: int | None = 2) -> None:
    """Write a result to standard output as JSON. A number that is not finite is null. Only ASCII is written."""
    print(json.dumps(_plain(value), indent=indent, allow_nan=False, default=str), file=_results.get())


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case float():
            return value if math.isfinite(value) else None
    return value


def discard_output() -> None:
    """Write standard output to the null device from now on, since its reader, such as `head`, has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shown(text: str) -> str:
    """Return a result as `write_out` writes it: unchanged unless standard output is a terminal."""
    return visible(text) if sys.stdout.isatty() else text


class Formatter(logging.Formatter):
    """Formatter of log records that writes control characters as escapes, also in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class LogFile(logging.FileHandler):
    """A log file. On a full disk it stays incomplete; what is shown is the error of the run's other files."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class Handler(logging.StreamHandler[TextIO]):
    """Shows records on what `sys.stdout` is at the moment, so that they go above a live display.

    Information of the loggers in DETAILS is left to the log file. A record may have the attribute `on_terminal`, a text
    that replaces its message on a terminal; the empty text hides it there.
    """

    DETAILS = re.compile(r"firstlight\.(data\.|runs\.history$|[a-z]+\.(data|baseline)$)")

    def __init__(self, stream: object = None) -> None:  # noqa: ARG002  (Hydra passes the one of its own handler)
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """Standard output."""
        return sys.stdout

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless it is a detail or is hidden on a terminal."""
        if record.levelno <= logging.INFO and self.DETAILS.match(record.name):
            return
        if (replacement := getattr(record, "on_terminal", None)) is None or not self.stream.isatty():
            super().emit(record)
        elif replacement:
            say(replacement)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Discard further output if the pipe is closed. The run continues, and its log file has the record."""
        if isinstance(sys.exc_info()[1], BrokenPipeError):
            discard_output()
        else:
            super().handleError(record)


def prepare_streams() -> None:
    """Escape control characters in warnings, in tracebacks and in log lines before logging is configured.

    Characters that the encoding of standard output does not have are written as escapes, as on standard error. A
    closed stream (`>&-`) is opened as the null device, so that the next file does not get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Formatter("%(message)s"))
    warnings.formatwarning = lambda *parts, **named: visible(format_warning(*parts, **named))
    sys.excepthook = _show_exception


def _show_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    say("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"), to=sys.stderr)
