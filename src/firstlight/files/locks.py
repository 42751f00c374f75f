"""Exclusive locks on files. A process keeps a lock until it releases it or ends. This module imports nothing heavy."""

import errno
import fcntl
import logging
import os
import threading
import time
from pathlib import Path
from socket import gethostname
from typing import TextIO

from firstlight.files.regular import regular

log = logging.getLogger(__name__)

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # the errors of a file system without locks
SECONDS_BETWEEN_BEATS, SECONDS_WITHOUT_BEAT = 10, 60  # after a minute without a beat, the owner on another host is dead
SECONDS_TO_SETTLE = 1.0  # for two processes that replace the file of a dead owner at the same time


class OwnerFile:
    """A file with the host and id of the process that owns it, in place of a lock on a file system without locks.

    A thread renews the file's time, so that processes on other hosts see whether the owner still runs.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._process_id, self._is_closed = path, os.getpid(), threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self._is_closed.wait(SECONDS_BETWEEN_BEATS):
            try:
                os.utime(self.path)
            except OSError as error:
                log.warning("%s cannot be renewed (%s); another process may now use its folder", self.path, error)

    def close(self) -> None:
        """Delete the file, unless this is the copy of a forked process."""
        self._is_closed.set()
        if os.getpid() == self._process_id:
            self.path.unlink(missing_ok=True)


Lock = TextIO | OwnerFile
_held: set[Lock] = set()


def take(path: Path) -> Lock | None:
    """Lock a file and return the lock, or return None if another process has the lock.

    A forked process inherits the lock and keeps it until it ends or calls `give_up_inherited`. On a file system without
    locks, a file with the owner's name replaces the lock, with a warning. Raises OSError if the file cannot be opened.
    """
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            return None
        if error.errno not in NO_LOCKS:
            raise
        lock: Lock | None = _owned(owner_file(path))
    else:
        lock = file
    if lock is not None:
        _held.add(lock)
    return lock


def release(lock: Lock) -> None:
    """Release a lock."""
    _held.discard(lock)
    lock.close()


def is_taken(path: Path) -> bool:
    """Return whether a process has the lock. For a moment, `take` finds the file locked."""
    try:
        with regular(path).open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: readers do not find one another
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return _has_owner(owner_file(path))
    return False


def give_up_inherited() -> None:
    """Close the inherited copies of locks in a forked process. The parent process keeps its locks."""
    for lock in _held:
        lock.close()
    _held.clear()


def owner_file(path: Path) -> Path:
    """Return the path of the file that replaces a lock."""
    return path.with_name(f"{path.name}.owner")


def _owned(path: Path) -> OwnerFile | None:
    """Write a file that names this process as its owner; return None if another process owns it."""
    if _has_owner(path):
        return None
    path.unlink(missing_ok=True)
    owner = f"{gethostname()} {os.getpid()}"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(owner)
        time.sleep(SECONDS_TO_SETTLE)
        if path.read_text(encoding="utf-8") != owner:
            return None
    except (FileExistsError, FileNotFoundError):  # another process was faster
        return None
    log.warning("%s: the file system has no locks; this file names the process that uses the folder", path)
    return OwnerFile(path)


def _has_owner(path: Path) -> bool:
    """Return whether the process that a file names still runs. On another host, its last beat must be recent."""
    try:
        host, _, process_id = regular(path).read_text(encoding="utf-8", errors="replace")[:300].partition(" ")
        age = time.time() - path.stat().st_mtime
        if host == gethostname():
            os.kill(int(process_id), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (PermissionError, ValueError, OverflowError):  # a process of another user; or the file is being written
        pass
    return age < SECONDS_WITHOUT_BEAT
