"""The frame of every command: a mistake is reported in one line, with the right exit code. Imports nothing heavy."""

import errno
import gc
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

from firstlight.errors import Interrupted, RunError, UserError, is_disk_full, is_out_of_memory, reason
from firstlight.spelling import kept, option
from firstlight.terminal_text import discard_output, note, prepare_streams, say
from firstlight.version import __version__

STARTED_AT = time.perf_counter()  # the entry scripts import this module first
USER_MISTAKE = 2
CRASH = 1
INTERRUPTED_BY_CTRL_C = 130
OBJECTS_BETWEEN_COLLECTIONS = 500_000  # by default 700
LONGEST_MESSAGE = 2000  # characters; the name of a column of a damaged file may have megabytes


Result = TypeVar("Result")


def run(main: Callable[[], Result]) -> Result:
    """Call main as a command and return its result; errors are handled by `answered`. --version ends the process.

    Printed text contains no control characters (terminal_text.py). The modules of the current folder can be imported,
    so that settings can name the user's classes.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)  # most objects are those of imports, and collections find nothing
    prepare_streams()
    if "--version" in sys.argv[1:]:
        say(f"firstlight {__version__}")
        sys.exit()
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns of fonts that no figure uses
    with answered():
        try:
            make_importable(Path.cwd())
        except FileNotFoundError:
            fail("the current folder was removed; change to another folder", USER_MISTAKE)
        return main()


def open_page(page: Path | str) -> None:
    """Open a file or an address in the browser, for the option `--open`. Without a browser, a line says so."""
    import webbrowser

    address = page.absolute().as_uri() if isinstance(page, Path) else page
    if not webbrowser.open(address):
        note(f"--open: no browser found; open {page} yourself")


@contextmanager
def answered() -> Iterator[None]:
    """Print an error in one line and exit with 2 for a mistake, 1 for a crash, or 128 + signal for an interruption."""
    with kept():  # messages spell options as this command does
        try:
            yield
        except UserError as error:
            fail(str(error), USER_MISTAKE)
        except RunError as error:
            fail(str(error), CRASH)
        except Interrupted as error:
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                sys.stderr.write("\r")  # over the ^C that the terminal shows
            fail("interrupted", INTERRUPTED_BY_CTRL_C)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            fail(f"the memory is used up ({reason(error)}); use smaller batches or a smaller model", CRASH)
        except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
            discard_output()
            sys.exit(0)
        except OSError as error:
            if is_disk_full(error):
                place = option("paths.log_dir")
                fail(f"the disk is full or a file is too large: {error}; free some space, or set {place}", CRASH)
            if error.errno not in (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EROFS, errno.ENAMETOOLONG):
                raise
            place = option("paths.log_dir", "…")
            fail(f"{error.filename}: {error.strerror}; name another place, such as {place}", USER_MISTAKE)


def make_importable(folder: Path) -> None:
    """Append a folder to the module search path, where its files cannot hide installed packages."""
    if not {str(folder), ""} & set(sys.path):
        sys.path.append(str(folder))


def fail(message: str, exit_code: int) -> NoReturn:
    """Print the message as one line on standard error and end the process."""
    say("error: " + cut(" ".join(message.split())), to=sys.stderr)
    sys.exit(exit_code)


def cut(message: str) -> str:
    """Return a message without its middle if it is very long. Its end says what to do."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[: LONGEST_MESSAGE // 2]} … {message[-LONGEST_MESSAGE // 2 :]}"
