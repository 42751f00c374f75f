"""A check for regular files. Reading a pipe, a socket or a device could block or never end."""

import errno
import stat
from pathlib import Path

from firstlight.errors import UserError

KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class SpecialFileError(OSError, UserError):
    """Error if a path is a pipe, a socket or a device. strerror: "is a named pipe, not a regular file"."""

    def __str__(self) -> str:
        return f"{self.filename} {self.strerror}; write its content to a file, and name that file"


class LargeFileError(OSError, UserError):
    """Error if a file has more bytes than its reader expects."""


def regular(path: Path, most: int | None = None) -> Path:
    """Return the path if it is a regular file or a folder.

    most: the largest number of bytes that the caller reads; None: no limit. Raises SpecialFileError for a pipe, a
    socket or a device, LargeFileError, and FileNotFoundError or PermissionError like `open`. A folder is
    returned, because opening it raises a clear error.
    """
    status = path.stat()
    kind = stat.S_IFMT(status.st_mode)
    if most is not None and status.st_size > most:
        raise LargeFileError(f"{path} has {status.st_size:,} bytes, more than the {most:,} that are read")
    is_of_kernel = path.resolve().parts[1:2] in (("proc",), ("sys",))  # reading one may fail, or never end
    if kind in (stat.S_IFREG, stat.S_IFDIR) and not is_of_kernel:
        return path
    raise SpecialFileError(errno.EINVAL, f"is {KINDS.get(kind, 'a special file')}, not a regular file", str(path))
