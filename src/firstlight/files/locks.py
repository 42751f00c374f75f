"""Exclusive locks on files. A process keeps a lock until it releases it or ends. This module imports nothing heavy."""

import fcntl
from pathlib import Path
from typing import TextIO

_held: set[TextIO] = set()


def take(path: Path) -> TextIO | None:
    """Lock a file and return it open, or return None if another process has the lock.

    A forked process inherits the lock and keeps it until it ends or calls `give_up_inherited`. Raises OSError if the
    file cannot be opened, or if its file system has no locks.
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
    """Release a lock."""
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
    """Close the inherited copies of locks in a forked process. The parent process keeps its locks."""
    for file in _held:
        file.close()
    _held.clear()
