"""The cache: folders that are filled once and checked against their checksums whenever they are opened.

A folder is filled under a temporary name, flushed to the disk and renamed, so that a killed process leaves nothing that
looks complete. Its file SHA256SUMS, which `sha256sum -c` reads too, lists the checksum of every other file. A damaged
folder is filled again.
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstlight.errors import RunError, UserError, is_disk_full

log = logging.getLogger(__name__)

CHECKSUMS = "SHA256SUMS"
TEMPORARY = ".writing-"
LOCK = "lock"  # in a temporary folder; held by the process that fills it
TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)  # what stands where a folder is to be renamed to
A_DAY = 24 * 60 * 60.0


def provide(folder: Path, fill: Callable[[Path], object], doing: str) -> None:
    """Make sure that a folder of the cache is there and undamaged: leave it as it is, or fill it.

    Several processes may do so at once: the first one to finish is kept.

    Args:
        folder: the folder; its parents are made.
        fill: writes files into the empty folder that it is given. Scratch files may lie beside that folder; they are
            removed.
        doing: what is logged when the folder is filled, such as "Encoding reviews.csv".

    Raises:
        RunError: if the disk is full. The message names the folder and the remedy.
    """
    if os.path.lexists(folder):
        problem = damage(folder)
        if problem is None:
            return
        log.warning("%s is damaged (%s); it is made again", folder, problem)
    log.info(doing)
    try:
        _make_parents(folder)
        _remove_stale(folder.parent)
        with _workspace(folder.parent) as workspace:
            content = workspace / "content"
            content.mkdir()
            fill(content)
            _seal(content)
            _install(content, folder)
        sync(folder.parent)
    except Exception as error:
        if not is_disk_full(error):
            raise
        raise RunError(
            f"{folder.parent}: the disk is full ({error}); free some space, or set data.cache_dir to a folder on "
            "another disk"
        ) from error


def damage(folder: Path) -> str | None:
    """Return what is wrong with a folder of the cache in a few words, None if it is as it was written.

    Raises PermissionError if it may not be read.
    """
    try:
        if not folder.is_dir():
            return "it is not a folder"
        if not (folder / CHECKSUMS).is_file():
            return f"it has no {CHECKSUMS}"
        lines = (folder / CHECKSUMS).read_text(encoding="utf-8", errors="replace").splitlines()
        listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        found = _files(folder)
        if missing := listed.keys() - found:
            return f"{min(missing)!r} is missing"
        if foreign := found - listed.keys():
            return f"{min(foreign)!r} is not listed in {CHECKSUMS}"
        if not listed:
            return f"{CHECKSUMS} is empty"
        for name in sorted(found):
            if not (folder / name).is_file():  # a pipe would never end
                return f"{name!r} is not a file"
            if _digest(folder / name) != listed[name]:
                return f"{name!r} has another checksum than when it was written"
    except PermissionError:
        raise
    except OSError as error:  # the disk cannot read it, or another process is replacing it
        return str(error)
    return None


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as .npy. `numpy.save` alone loses the reason where a disk is full: its OSError has no errno."""
    with path.open("wb") as file:
        np.save(_Writer(file.write), array)


class _Writer(NamedTuple):
    """A file of which numpy knows no more than how to write to it."""

    write: Callable[[bytes], int]


def sync(path: Path) -> None:
    """Flush a file to the disk, or the names in a folder, so that they outlast a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_parents(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UserError(f"{error.filename} is not a folder; remove it, or set data.cache_dir") from None


def _files(folder: Path) -> set[str]:
    """The names in a folder without the list of checksums; hidden ones are left out, which file managers make."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {CHECKSUMS}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seal(folder: Path) -> None:
    """Write the list of checksums, and flush all to the disk."""
    names = sorted(_files(folder))
    lines = [f"{_digest(folder / name)}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
    for name in (*names, CHECKSUMS):
        sync(folder / name)
    sync(folder)


def _install(content: Path, folder: Path) -> None:
    """Rename the content to the folder. A damaged folder is moved away; what another process finished is kept."""
    while True:
        try:
            os.rename(content, folder)  # noqa: PTH104  (Path.rename hides that the target may exist)
        except OSError as error:
            if error.errno not in TAKEN:
                raise
            if damage(folder) is None:
                return
            away = Path(tempfile.mkdtemp(dir=content.parent)) / "damaged"
            with suppress(FileNotFoundError):  # another process has moved it
                folder.rename(away)
        else:
            return


@contextmanager
def _workspace(parent: Path) -> Iterator[Path]:
    """A temporary folder, locked so that other processes see that this one lives, and removed at the end."""
    path = Path(tempfile.mkdtemp(dir=parent, prefix=TEMPORARY))
    try:
        with (path / LOCK).open("w") as lock:
            with suppress(OSError):  # a disk without locks; there, nobody removes what others left
                fcntl.flock(lock, fcntl.LOCK_EX)
            if path.is_dir():
                yield path
                return
    finally:
        shutil.rmtree(path, ignore_errors=True)
    with _workspace(parent) as another:  # a process that cleans up was faster to lock the folder, and removed it
        yield another


def _remove_stale(parent: Path) -> None:
    """Remove the temporary folders of processes that have been killed."""
    for path in parent.glob(f"{TEMPORARY}*"):
        try:
            with (path / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except FileNotFoundError:  # it is about to be locked, or about to be gone, or is of an earlier version
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > A_DAY:
                    shutil.rmtree(path, ignore_errors=True)
        except OSError:  # its process lives; or it is another user's, or on a disk without locks
            continue
