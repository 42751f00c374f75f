"""The exceptions that the entry scripts print in one line, without a traceback."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from firstlight.spelling import spelled


class UserError(ValueError):
    """What the user asked for cannot be done; exit code 2.

    The message names the key, or the file and line, then the value, then the remedy. Options are written as for a
    training, such as `data.path=…`, and shown as the user would type them.
    """

    def __str__(self) -> str:
        return spelled(super().__str__())


class RunError(RuntimeError):
    """A run could not go on, for no mistake in what was asked: a full disk, a loss that is no number; exit code 1.

    Options in the message are shown as the user would type them.
    """

    def __str__(self) -> str:
        return spelled(super().__str__())


class Interrupted(BaseException):
    """A signal asked the run to stop, and it did so at the end of a step; exit code 128 + signal."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)  # as it is, so that it can be handed from process to process
        self.signal_number = signal_number
        self.exit_code = 128 + signal_number

    def __str__(self) -> str:
        return f"interrupted by signal {self.signal_number}"


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an exception, or one that led to it, says that a disk or a quota is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def reason(error: BaseException) -> str:
    """What a module said when it was imported, in one line: the innermost of a chain of errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    last = (str(error).strip().splitlines() or [""])[-1]
    return last if isinstance(error, ImportError) else f"{type(error).__name__}: {last}"


@contextmanager
def arguments_of(key: str) -> Iterator[None]:
    """What a class or function that the configuration names does not accept is the user's mistake."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{key}: {error}; its arguments are in the files of the group {key}") from error
