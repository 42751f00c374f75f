"""The frame around every entry script: one line for a mistake, and the right exit code. Imports nothing heavy."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TypeVar

from firstlight.errors import Interrupted, RunError, UserError, is_disk_full
from firstlight.spelling import kept, option
from firstlight.terminal_text import prepare_streams, say

STARTED_AT = time.perf_counter()  # the entry scripts import this module first
USER_MISTAKE = 2
CRASH = 1
INTERRUPTED_BY_CTRL_C = 130
LONGEST_MESSAGE = 2000  # characters: a damaged file may have a name of a column of megabytes


Result = TypeVar("Result")


def run(main: Callable[[], Result]) -> Result:
    """Call main as a command: see `answered`.

    No text that is printed commands the terminal (terminal_text.py). The modules of the current folder can be
    imported, so that settings can name the user's own classes.
    """
    prepare_streams()
    make_importable(Path.cwd())
    with answered():
        return main()


def run_module(name: str) -> None:
    """Run the `main` of a module of commands.

    A command that is started by `python -m` is the module `__main__`. It passes its own name here, so that its
    functions are those of the module, which other processes can import.
    """
    run(import_module(name).main)


@contextmanager
def answered() -> Iterator[None]:
    """Turn an error into one line and end the process: 2 for a mistake, 1 for a crash, 128 + signal if interrupted."""
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
        except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except (PermissionError, NotADirectoryError) as error:
            fail(
                f"{error.filename}: {error.strerror}; name another place, such as {option('paths.log_dir', '…')}",
                USER_MISTAKE,
            )
        except OSError as error:
            if not is_disk_full(error):
                raise
            fail(f"the disk is full: {error}; free some space, or set {option('paths.log_dir')} to another disk", CRASH)


def make_importable(folder: Path) -> None:
    """Put a folder at the end of the module search path, where its files hide no installed package."""
    if not {str(folder), ""} & set(sys.path):
        sys.path.append(str(folder))


def fail(message: str, exit_code: int) -> NoReturn:
    """Print the message as one line on standard error and end the process."""
    say("error: " + cut(" ".join(message.split())), to=sys.stderr)
    sys.exit(exit_code)


def cut(message: str) -> str:
    """Return a message without its middle where it is very long; its end is the remedy."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[: LONGEST_MESSAGE // 2]} … {message[-LONGEST_MESSAGE // 2 :]}"
