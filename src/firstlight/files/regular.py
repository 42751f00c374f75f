"""A check for regular files. Reading a pipe, a socket or a device could block or never end."""

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
    """Error if a path is a pipe, a socket or a device. strerror: "is a named pipe, not a regular file"."""

    def __str__(self) -> str:
        return f"{self.filename} {self.strerror}; write its content to a file, and name that file"


def regular(path: Path) -> Path:
    """Return the path if it is a regular file or a folder.

    Raises SpecialFileError for a pipe, a socket or a device, and FileNotFoundError or PermissionError like `open`. A
    folder is returned, because opening it raises a clear error.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        return path
    raise SpecialFileError(errno.EINVAL, f"is {KINDS.get(kind, 'a special file')}, not a regular file", str(path))
