"""The exceptions that the commands print in one line, without a traceback."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from firstlight.spelling import spelled


class UserError(ValueError):
    """A mistake of the user; exit code 2.

    The message names the key, or the file and line, then the value, then what to do. Options are written as for
    `train`, such as `data.path=…`, and shown as the user would type them.
    """

    def __str__(self) -> str:
        return spelled(super().__str__())


class RunError(RuntimeError):
    """A failure of a run that is not a mistake of the user, such as a full disk or a NaN loss; exit code 1.

    Options in the message are shown as the user would type them.
    """

    def __str__(self) -> str:
        return spelled(super().__str__())


class Interrupted(SystemExit):
    """The run stopped at the end of a step because of a signal; exit code 128 + signal."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)  # unchanged, so that it can be pickled
        self.signal_number = signal_number
        self.code = self.exit_code = 128 + signal_number

    def __str__(self) -> str:
        return f"interrupted by signal {self.signal_number}"


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether a full disk, a quota or a limit of the size of files caused an exception."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether Python or torch, on a CPU or a GPU, could not allocate memory."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error)


def reason(error: BaseException) -> str:
    """Return the innermost of a chain of errors in one line, such as why a module cannot be imported."""
    while error.__cause__ is not None:
        error = error.__cause__
    last = (str(error).strip().splitlines() or [""])[-1]
    return last if isinstance(error, ImportError) else f"{type(error).__name__}: {last}"


@contextmanager
def arguments_of(key: str) -> Iterator[None]:
    """Turn an error about the arguments of a class that the configuration names into a UserError."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{key}: {error}; its arguments are in the files of the group {key}") from error
