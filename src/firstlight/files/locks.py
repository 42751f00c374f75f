"""Locks on files, which processes hold against each other until they end. Imports nothing heavy."""

import fcntl
from pathlib import Path
from typing import TextIO

_held: set[TextIO] = set()


def take(path: Path) -> TextIO | None:
    """Return the open file whose lock this process now has, or None if another process has it.

    A forked process inherits the lock and keeps it as long as it lives, unless it calls `give_up_inherited`. Raises
    OSError if the file cannot be opened, or if its file system has no locks.
    """
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except OSError:
        file.close()
        raise
    _held.add(file)
    return file


def release(file: TextIO) -> None:
    """Give a lock back."""
    _held.discard(file)
    file.close()


def is_taken(path: Path) -> bool:
    """Return whether a process has the lock. Raises OSError if the file system has no locks."""
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def give_up_inherited() -> None:
    """Close the copies of locks that a forked process has inherited. The process that took them keeps them."""
    for file in _held:
        file.close()
    _held.clear()
