"""Writing of complete files: a reader never sees an incomplete one, and an interruption leaves the previous one."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = ".tmp"  # the ending of a temporary file


@contextmanager
def replacing(path: Path, before: Callable[[], None] | None = None) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which is renamed to `path` at the end of the block.

    After an error in the block, the temporary file is removed, and `path` is unchanged. before: function that is called
    when the temporary file is complete on the disk, before it is renamed.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=UNFINISHED)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        sync(unfinished)
        unfinished.chmod(0o644)
        if before is not None:
            before()
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder, which is renamed to `path` at the end of the block.

    After an error in the block, the temporary folder is removed. `path` must not exist.
    """
    unfinished = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}-", suffix=UNFINISHED))
    try:
        yield unfinished
        for file in (*unfinished.rglob("*"), unfinished):
            sync(file)
        unfinished.chmod(0o755)
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file, completely or not at all."""
    with replacing(path) as unfinished:
        unfinished.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def leftovers(folder: Path) -> list[Path]:
    """Return the temporary files below a folder, which remain of processes that were killed while they wrote them."""
    return list(folder.rglob(f".*-????????{UNFINISHED}"))


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk, so that they survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
