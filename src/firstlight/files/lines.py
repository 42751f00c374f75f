"""The reader of text files, line by line, for every text that the user gives."""

import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from firstlight.choices import nearest
from firstlight.errors import UserError
from firstlight.files.regular import SpecialFileError, regular

LONGEST_LINE = 2**28  # bytes; a file without line feeds, such as a sparse one, could fill the memory
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # splitlines also splits at other characters
COMPRESSED = (".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz")
SPREADSHEETS = (".xlsx", ".xls", ".ods")


def read_text(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file. Every line ending becomes a line feed; the last line may have none.

    Raises UserError with file and line if the file is empty or not text.
    """
    is_empty = True
    for _, line in read_lines(path):
        is_empty = False
        yield from _LINE.findall(line.replace("\r\n", "\n").replace("\r", "\n"))
    if is_empty:
        raise UserError(f"{path}:1: the file is empty; name a file with text")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the lines of a UTF-8 file, as `lines_of` does. Raises UserError if it cannot be read."""
    check_file(path)
    with path.open("rb") as file:
        yield from lines_of(file, path)


def lines_of(file: BinaryIO, name: object) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the lines of a UTF-8 file, with their line endings and without a byte-order mark.

    If the file has no line feed, a carriage return ends a line, as in files from old Macs. Raises UserError with the
    name of the file and the number of the line.
    """
    lines: Iterator[bytes] = iter(partial(file.readline, LONGEST_LINE), b"")
    first = next(lines, b"")
    if b"\r" in first and not first.endswith(b"\n"):  # the first line is the complete file
        lines = iter(first.replace(b"\r", b"\n").splitlines(keepends=True))
    elif first:
        lines = chain([first], lines)
    for line, raw in enumerate(lines, start=1):
        if len(raw) == LONGEST_LINE:
            raise UserError(f"{name}:{line}: the line has {LONGEST_LINE:,} bytes or more; divide it into lines")
        text = _decode(raw, f"{name}:{line}")
        yield line, text.removeprefix("\ufeff") if line == 1 else text


def _decode(raw: bytes, place: str) -> str:
    """Return the text of bytes. Raises UserError for a NUL byte and for bytes that are not UTF-8."""
    if b"\0" in raw:
        raise UserError(f"{place}: the line contains a NUL byte; save the file as UTF-8 text, unpacked")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{place}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8 text") from None


def check_file(path: Path) -> None:
    """Raise UserError unless a path is a readable file that needs not be unpacked or converted first."""
    try:
        is_folder = regular(path).is_dir()
    except SpecialFileError:
        raise
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}{look_alike(path)}") from None
    ending = path.suffix.lower()
    if is_folder:
        raise UserError(f"{path} is a folder; name a file in it")
    if ending in COMPRESSED:
        raise UserError(f"{path}: the file is compressed; unpack it, and name the unpacked file, such as {path.stem}")
    if ending in SPREADSHEETS:
        raise UserError(f"{path}: the file is a spreadsheet; save it as CSV, and name {path.stem}.csv")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path}: no permission to read it; check its owner and mode")


def look_alike(path: Path) -> str:
    """Return `; did you mean …?` with the path in the same folder that is most similar to a missing one."""
    folder = path.parent
    names = os.listdir(folder) if folder.is_dir() and os.access(folder, os.R_OK) else []  # noqa: PTH208
    meant = nearest(path.name, names)
    return f"; did you mean {str(path.with_name(meant))!r}?" if meant else "; check the name"
