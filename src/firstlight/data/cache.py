"""The cache: folders that are written once and verified by their checksums whenever they are opened.

A folder is written under a temporary name, flushed to the disk and renamed, so a killed process leaves no incomplete
folder. Its file SHA256SUMS lists the checksum of every other file, in the format of `sha256sum -c`. A damaged folder is
written again.
"""

import errno
import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.errors import RunError, UserError, is_disk_full
from firstlight.files.atomic import sync
from firstlight.files.regular import regular

log = logging.getLogger(__name__)

CHECKSUMS = "SHA256SUMS"
TEMPORARY = ".writing-"
LOCK = "lock"  # a file in a temporary folder, locked by the process that writes the folder
SECONDS_TO_LOCK = 60  # at the longest, a new temporary folder
TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)  # the errors of a rename to a name that exists


def provide(folder: Path, fill: Callable[[Path], object], doing: str) -> None:
    """Write a folder of the cache, unless it exists and is undamaged.

    If several processes write the folder at the same time, the result of the first one to finish is kept.

    Args:
        folder: the folder; its parents are created.
        fill: writes files into the empty folder that it gets. It may write scratch files next to that folder, which
            are removed.
        doing: the line to log when the folder is written, such as "Encoding reviews.csv".

    Raises:
        RunError: if the disk is full. The message names the folder and the options to change.
    """
    if os.path.lexists(folder):
        if (problem := damage(folder)) is None:
            return
        log.warning("%s is damaged (%s); it is written again", folder, problem)
    log.info(doing)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder.parent)
        with _workspace(folder.parent) as workspace:
            content = workspace / "content"
            content.mkdir()
            fill(content)
            _seal(content)
            _install(content, folder)
        sync(folder.parent)
    except FileExistsError as error:
        raise UserError(f"{error.filename} is not a folder; remove it, or set data.cache_dir") from None
    except Exception as error:
        if not is_disk_full(error):
            raise
        problem = f"{folder.parent}: the disk is full ({error})"
        raise RunError(f"{problem}; free some space, or set data.cache_dir to a folder on another disk") from error


def damage(folder: Path) -> str | None:
    """Return a short description of the damage of a folder of the cache, or None if it is undamaged.

    Raises PermissionError if the folder is not readable.
    """
    try:
        if not folder.is_dir():
            return "it is not a folder"
        lines = regular(folder / CHECKSUMS).read_text(encoding="utf-8", errors="replace").splitlines()
        listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        if not listed:
            return f"{CHECKSUMS} is empty"
        for name in sorted(listed.keys() | _files(folder)):
            if name not in listed or _digest(folder / name) != listed[name]:
                return f"{name!r} has changed since it was written"
    except PermissionError:
        raise
    except (OSError, ValueError) as error:  # a file is missing, a name has a null byte, or the folder is replaced
        return str(error)
    return None


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as .npy. If the disk is full, the OSError has an errno, which that of `numpy.save` lacks."""
    with path.open("wb") as file:
        writer: Any = SimpleNamespace(write=file.write)  # so that numpy does not use the file descriptor
        np.save(writer, array)


def _files(folder: Path) -> set[str]:
    """Return the names in a folder without the list of checksums and without hidden files of file managers."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {CHECKSUMS}


def _digest(path: Path) -> str:
    with regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seal(folder: Path) -> None:
    """Write the list of checksums and flush all files to the disk."""
    names = sorted(_files(folder))
    lines = [f"{_digest(folder / name)}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
    for name in (*names, CHECKSUMS):
        sync(folder / name)
    sync(folder)


def _install(content: Path, folder: Path) -> None:
    """Rename the content to the folder. A damaged folder is moved away; an undamaged one is kept."""
    while True:
        try:
            os.rename(content, folder)  # noqa: PTH104  (Path.rename hides that the target may exist)
        except OSError as error:
            if error.errno not in TAKEN:
                raise
            if damage(folder) is None:
                return
            away = Path(tempfile.mkdtemp(dir=content.parent)) / "damaged"
            with suppress(FileNotFoundError):  # another process has moved the folder
                folder.rename(away)
        else:
            return


@contextmanager
def _workspace(parent: Path) -> Iterator[Path]:
    """Create a temporary folder and remove it at the end. Its lock tells other processes that it is in use."""
    made = tempfile.TemporaryDirectory(dir=parent, prefix=TEMPORARY, ignore_cleanup_errors=True)
    with made as name, Path(name, LOCK).open("w") as lock:
        with suppress(OSError):  # a disk without locks, where stale folders are never removed
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


def _remove_stale(parent: Path) -> None:
    """Remove the temporary folders that killed processes left. A new folder may not be locked yet, so it stays."""
    for path in parent.glob(f"{TEMPORARY}*"):
        # a lock that fails is in use, of another user, or on a disk without locks
        with suppress(OSError), (path / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - path.stat().st_mtime > SECONDS_TO_LOCK:
                shutil.rmtree(path, ignore_errors=True)
