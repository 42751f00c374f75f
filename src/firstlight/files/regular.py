"""Refuses pipes, sockets and devices where a file is to be read: they may never answer, or never end."""

import errno
import stat
from pathlib import Path

from firstlight.errors import UserError

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class SpecialFileError(OSError, UserError):
    """A pipe, a socket or a device stands where a file should be. strerror: "is a named pipe, not a regular file"."""

    def __str__(self) -> str:
        return f"{self.filename} {self.strerror}; write its content to a file, and name that file"


def regular(path: Path) -> Path:
    """Return the path of a file that is about to be opened.

    Raises SpecialFileError for a pipe, a socket or a device, and FileNotFoundError or PermissionError as opening does.
    A folder passes, since opening it says by itself that it is one.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        return path
    raise SpecialFileError(errno.EINVAL, f"is {KINDS.get(kind, 'of a special kind')}, not a regular file", str(path))
