"""Exclusive locks on files. A process keeps a lock until it releases it or ends. This module imports nothing heavy.

A network disk may lock a file for one computer only. The file therefore names its owner, which renews the time of the
file. A process on another computer sees by it that the owner still runs.
"""

import contextlib
import errno
import fcntl
import logging
import os
import threading
import time
from pathlib import Path
from socket import gethostname
from typing import TextIO

from firstlight.errors import UserError
from firstlight.files.regular import regular

log = logging.getLogger(__name__)

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # the errors of a file system without locks
SECONDS_BETWEEN_BEATS, SECONDS_WITHOUT_BEAT = 10, 60  # after a minute without a beat, the owner on another host is dead
OWNER = ".owner"  # of the name of a file that replaces a lock
SECONDS_TO_SETTLE = 1.0  # for processes that write the file at the same time


def take(path: Path) -> TextIO | None:
    """Lock a file and return it open, or return None if another process has the lock.

    A forked process inherits the lock and keeps it until it ends. On a file system without locks, a second file with
    the host and the id of this process replaces the lock, with a warning. Raises OSError if the file cannot be opened,
    and UserError if a process on another computer owns the file although its lock is free here.
    """
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if error.errno not in (*NO_LOCKS, errno.EWOULDBLOCK):
            raise
        return _owned(Path(f"{path.absolute()}{OWNER}")) if error.errno in NO_LOCKS else None
    try:
        _refuse_owner_elsewhere(path)
        file.truncate(0)
        _name_owner(file)
    except BaseException:
        file.close()
        raise
    return file


def release(file: TextIO) -> None:
    """Release a lock."""
    if file.name.endswith(OWNER):
        Path(file.name).unlink(missing_ok=True)
    else:
        file.truncate(0)
    file.close()


def is_taken(path: Path) -> bool:
    """Return whether a process has the lock. For a moment, `take` finds the file locked."""
    try:
        with regular(path).open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: readers do not find one another
            return _owner_elsewhere(path) is not None
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return _has_owner(Path(f"{path}{OWNER}"))


def _refuse_owner_elsewhere(path: Path) -> None:
    """Raise UserError if a process on another computer renews a file. Wait until that is certain, a minute at most."""
    seen = path.stat().st_mtime
    while host := _owner_elsewhere(path):
        if path.stat().st_mtime != seen:
            problem = f"a process on {host} uses this folder, and the disk does not share its locks between computers"
            raise UserError(f"{path.parent}: {problem}; wait for that process, or stop it")
        time.sleep(SECONDS_TO_SETTLE)


def _owner_elsewhere(path: Path) -> str | None:
    """Return the host of the process that a file names, if it is another host and that process still runs."""
    host = _named_in(path)[0]
    return host if host not in ("", gethostname()) and _has_owner(path) else None


def _owned(path: Path) -> TextIO | None:
    """Write a file that names this process, and return it open; return None if another process owns it.

    Of several processes that write at the same time, the last one owns the file.
    """
    if _has_owner(path):
        return None
    file = path.open("w", encoding="utf-8")
    _name_owner(file)
    time.sleep(SECONDS_TO_SETTLE)
    if _named_in(path) != (gethostname(), str(os.getpid())):
        file.close()
        return None
    log.warning("%s: the file system has no locks; this file names the process that uses the folder", path)
    return file


def _name_owner(file: TextIO) -> None:
    """Write the host and the id of this process to a file, and renew its time until it is closed."""
    print(gethostname(), os.getpid(), end="", file=file, flush=True)
    threading.Thread(target=_renew, args=(file,), daemon=True).start()


def _named_in(path: Path) -> tuple[str, str]:
    """Return the host and the id of the process that a file names; empty texts if it names none."""
    host, _, process_id = regular(path).read_text(encoding="utf-8", errors="replace")[:300].partition(" ")
    return host, process_id


def _renew(file: TextIO) -> None:
    """Renew the time of a file until it is closed. Processes on other hosts see by it that this one still runs."""
    while not file.closed:
        with contextlib.suppress(FileNotFoundError):  # the lock was released
            os.utime(file.name)
        time.sleep(SECONDS_BETWEEN_BEATS)


def _has_owner(path: Path) -> bool:
    """Return whether the process that a file names still runs. On another host, its last beat must be recent."""
    try:
        host, process_id = _named_in(path)
        if host == gethostname() and process_id.isdecimal():
            with contextlib.suppress(PermissionError):  # a process of another user
                os.kill(int(process_id[:9]), 0)
        return time.time() - path.stat().st_mtime < SECONDS_WITHOUT_BEAT
    except (FileNotFoundError, ProcessLookupError):
        return False
