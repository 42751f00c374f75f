"""Text for a terminal: what a file, a data set or a network wrote is shown as text and commands nothing.

Every line that the program prints goes through `say` or `write_out`, every table through `firstlight.console`, every
line of a log through `Formatter`. Imports nothing heavy.
"""

import io
import logging
import re
import sys
import traceback
import warnings
from types import TracebackType
from typing import TextIO

# The control characters C0 and C1 except tab and newline, with which a text can command a terminal (ESC begins a
# command, OSC sets the title or the clipboard); the characters that change the order in which text is shown
# (https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing); halves of characters, which no encoding has.
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

format_warning = warnings.formatwarning


def visible(text: str) -> str:
    r"""Return the text with every character that could command a terminal as an escape, such as `\x1b`.

    Tabs, newlines and all that can be read remain.
    """
    return COMMANDS.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def say(*parts: object, to: TextIO | None = None, flush: bool = False) -> None:
    """Print a line for people, on standard output or another stream; what it holds of data is made visible."""
    print(visible(" ".join(map(str, parts))), file=to, flush=flush)


def note(text: str) -> None:
    """Print a line that begins with `note:` on standard error."""
    say(f"note: {text}", to=sys.stderr)


def write_out(text: str, *, end: str = "\n", flush: bool = False) -> None:
    """Write a result to standard output: made visible on a terminal, and as it is into a pipe or a file."""
    print(shown(text), end=end, flush=flush)  # noqa: T201


def shown(text: str) -> str:
    """Return a result as `write_out` writes it: as it is, unless standard output is a terminal."""
    return visible(text) if sys.stdout.isatty() else text


class Formatter(logging.Formatter):
    """Formats a record of a log in visible characters, the traceback of an exception included."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class Handler(logging.StreamHandler[TextIO]):
    """Shows records on what `sys.stdout` is at the moment, so that they go above a live display.

    Information of the loggers in DETAILS is left to the log file. A record may have the attribute `on_terminal`, a text
    that replaces its message on a terminal; the empty text hides it there.
    """

    DETAILS = ("firstlight.data.", "firstlight.callbacks.reference_lines", "firstlight.runs.history")

    def __init__(self, stream: object = None) -> None:  # noqa: ARG002  (Hydra passes the one of its own handler)
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """Standard output."""
        return sys.stdout

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless it is a detail or is hidden on a terminal."""
        if record.levelno <= logging.INFO and record.name.startswith(self.DETAILS):
            return
        if (replacement := getattr(record, "on_terminal", None)) is None or not self.stream.isatty():
            super().emit(record)
        elif replacement:
            say(replacement)


def prepare_streams() -> None:
    """Make warnings, log lines before a log is set up and tracebacks visible; no character can fail to be printed.

    What the encoding of standard output does not have is written as an escape, as Python does on standard error.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Formatter("%(message)s"))
    warnings.formatwarning = _format_warning
    sys.excepthook = _show_exception


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    return visible(format_warning(message, category, filename, lineno, line))


def _show_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    say("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"), to=sys.stderr)
