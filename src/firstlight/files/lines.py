"""The reader of text files, line by line, for every text that the user gives."""

import bz2
import codecs
import gzip
import logging
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from firstlight.choices import nearest
from firstlight.errors import UserError
from firstlight.files.regular import SpecialFileError, regular

log = logging.getLogger(__name__)

LONGEST_LINE = 2**28  # bytes; a file without line feeds, such as a sparse one, could fill the memory
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # splitlines also splits at other characters
PACKED = (".gz", ".bz2", ".zip")  # read as the file in it
EXCEL = ".xlsx"
UTF_8 = "utf-8"
MOST_UNPACKED = 200  # bytes for each byte of a packed file of more than SMALL bytes
NO_LOOK_ALIKE = "; check the name"
SMALL = 2**26  # bytes without compression
NO_TEXT = {  # the first bytes of files that are no text
    b"%PDF-": "a PDF",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"PK\x03\x04": "a document or an archive",
    b"\xd0\xcf\x11\xe0": "a document",
}


def read_text(path: Path, encoding: str = UTF_8) -> Iterator[str]:
    """Yield the lines of a text. Every line ending becomes a line feed; the last line may have none.

    Raises UserError with file and line if the file is empty or not text.
    """
    line = None
    for _, line in read_lines(path, encoding):
        yield from _LINE.findall(line.replace("\r\n", "\n").replace("\r", "\n"))
    if line is None:
        raise UserError(f"{path}:1: the file is empty; name a file with text")


def read_lines(path: Path, encoding: str = UTF_8) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the lines of a text file, as `lines_of` does. Raises UserError if it cannot be read."""
    check_file(path)
    if path.suffix.lower() == EXCEL:
        raise UserError(f"{path}: the file is a spreadsheet; save it as text, and name that file")
    num_characters = 0
    with _unpacked(path) as file:
        for line, text in lines_of(file, path, encoding):
            num_characters += len(text)
            check_expansion(path, num_characters)
            yield line, text


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, or the file that is packed in it. Raises UserError if it cannot be unpacked."""
    try:
        if path.suffix.lower() == ".zip":
            with ZipFile(path) as archive, archive.open(_member(archive, path)) as member:
                yield member
        else:
            opened: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
            with opened.get(path.suffix.lower(), open)(path, "rb") as file:
                yield file
    except (BadZipFile, OSError, EOFError, zlib.error, RuntimeError) as error:
        raise UserError(f"{path}: the file cannot be unpacked ({error}); unpack it, and name its content") from None


def _member(archive: ZipFile, path: Path) -> str:
    """Return the name of the only file of an archive. Raises UserError if it has another number of files."""
    names = [each.filename for each in archive.infolist() if not each.is_dir()]
    names = [name for name in names if not name.startswith("__MACOSX/")]
    if len(names) != 1:
        raise UserError(f"{path}: the archive must have one file, not {len(names)}; unpack it, and name one of them")
    return names[0]


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in lower case. If it is packed, this is that of the file in it."""
    name = unpacked_name(path)
    if path.suffix.lower() == ".zip" and not name.suffix and path.is_file():
        with _unpacked(path) as member:
            name = Path(member.name)
    return name.suffix.lower()


def unpacked_name(path: Path) -> Path:
    """Return a path without a last .gz, .bz2 or .zip."""
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


def check_expansion(path: Path, size: int) -> None:
    """Raise UserError if the content of a file has far more bytes than the file. size: that of the content."""
    if size > SMALL and size > MOST_UNPACKED * path.stat().st_size:
        raise UserError(f"{path}: the file expands to more than {MOST_UNPACKED} times its size; unpack it yourself")


@cache
def say_once(sentence: str) -> None:
    """Log how a file is read, which is read several times."""
    log.info("%s", sentence)


def lines_of(file: IO[bytes], name: object, encoding: str = UTF_8) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the lines of a text file, with their line endings and without a byte-order mark.

    A byte-order mark replaces the encoding. If the file has no line feed, a carriage return ends a line, as in files
    from old Macs. Raises UserError with the name of the file and the number of the line.
    """
    lines: Iterator[bytes] = iter(partial(file.readline, LONGEST_LINE), b"")
    first = next(lines, b"")
    for beginning, what in NO_TEXT.items():
        if first.startswith(beginning):
            raise UserError(f"{name}: the file is {what}, not text; export it as text or CSV, and name that file")
    if first.startswith(codecs.BOM_UTF8):
        say_once(f"{name}: read as UTF-8, because it begins with a byte-order mark")
        encoding = UTF_8
    if b"\r" in first and not first.endswith(b"\n"):  # the first line is the complete file
        lines = iter(first.replace(b"\r", b"\n").splitlines(keepends=True))
    elif first:
        lines = chain([first], lines)
    for line, raw in enumerate(lines, start=1):
        if len(raw) == LONGEST_LINE:
            raise UserError(f"{name}:{line}: the line has {LONGEST_LINE:,} bytes or more; divide it into lines")
        if b"\0" in raw:
            raise UserError(f"{name}:{line}: the line contains a NUL byte; save the file as UTF-8 text, unpacked")
        text = _decoded(raw, f"{name}:{line}", encoding)
        yield line, text.removeprefix("\ufeff") if line == 1 else text


def _decoded(raw: bytes, place: str, encoding: str) -> str:
    """Return the text of bytes. Raises UserError for bytes that are not of the encoding."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"{place}: byte 0x{raw[error.start]:02x} is not {encoding.upper()}"
        raise UserError(f"{problem}; save the file as UTF-8 text, or set data.encoding, such as cp1252") from None


def check_file(path: Path) -> None:
    """Raise UserError unless a path is a readable file that needs not be unpacked or converted first."""
    try:
        is_folder = regular(path).is_dir()
    except SpecialFileError:
        raise
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}{look_alike(path)}") from None
    ending = unpacked_name(path).suffix.lower()
    if is_folder:
        raise UserError(f"{path} is a folder; name a file in it")
    if ending in (".xz", ".zst", ".7z", ".rar", ".tar", ".tgz"):
        raise UserError(f"{path}: the file is compressed; unpack it, and name the unpacked file, such as {path.stem}")
    if ending in (".xls", ".ods"):
        raise UserError(f"{path}: the file is a spreadsheet; save it as CSV, and name {path.stem}.csv")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path}: no permission to read it; check its owner and mode")


def look_alike(path: Path) -> str:
    """Return `; did you mean …?` with the path in the same folder that is very similar to a missing one."""
    folder = path.parent
    names = os.listdir(folder) if folder.is_dir() and os.access(folder, os.R_OK) else []  # noqa: PTH208
    meant = nearest(path.name, names, cutoff=0.8)
    return f"; did you mean {str(path.with_name(meant))!r}?" if meant else NO_LOOK_ALIKE
