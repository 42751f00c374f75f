"""The reader and the writer of local files: rows of CSV, TSV, JSONL, Parquet and plain text."""

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

from firstlight.choices import listed, nearest
from firstlight.errors import UserError
from firstlight.files.atomic import replacing
from firstlight.files.regular import SpecialFileError, regular

TEXT_COLUMN = "text"  # the only column of a plain text file
LONGEST_LINE = 2**28  # bytes; a file without line feeds, such as a sparse one, could fill the memory
LONGEST_FIELD = 2**26  # characters of a CSV field; otherwise an open quote could read the complete file into memory
MOST_ROWS, MOST_PACKED = 10, 1000  # of Parquet: rows, and bytes without compression, for each byte of the file
ROWS_AT_ONCE = 1024  # rows of Parquet that are read or written together
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # splitlines also splits at other characters

COMPRESSED = (".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz")
SPREADSHEETS = (".xlsx", ".xls", ".ods")
SPLITS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}


class MissingColumnError(UserError):
    """Error if a file does not have a required column.

    problem: the message without a fix; column: the required column; present: the columns of the file.
    """

    def __init__(self, message: str, problem: str = "", column: str = "", present: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problem, self.column, self.present = problem, column, present


class Row(NamedTuple):
    """A row and its position: the line on which it begins, or in Parquet the number of the row, both from 1."""

    line: int
    values: dict[str, Any]


def read_rows(path: Path, columns: Sequence[str] = ()) -> Iterator[Row]:
    """Return an iterator over the rows of a file. The ending of its name determines the format.

    columns: the columns to read; empty: all. Raises UserError with file and line for content that cannot be read. The
    error is raised before the first row if possible.
    """
    _check_file(path)
    _check_packing(path)
    read = READERS.get(path.suffix.lower(), _read_text)
    return _never_none(path, read(path, columns))


def _check_file(path: Path) -> None:
    try:
        is_folder = regular(path).is_dir()
    except SpecialFileError:
        raise
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}{look_alike(path)}") from None
    if is_folder:
        raise UserError(f"{path} is a folder; name a file in it")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path}: no permission to read it; check its owner and mode")


def look_alike(path: Path) -> str:
    """Return `; did you mean …?` with the path in the same folder that is most similar to a missing one."""
    meant = nearest(path.name, _names_beside(path))
    return f"; did you mean {str(path.with_name(meant))!r}?" if meant else "; check the name"


def _check_packing(path: Path) -> None:
    """Raise UserError for a file that must be unpacked or converted first."""
    ending = path.suffix.lower()
    if ending in COMPRESSED:
        raise UserError(f"{path}: the file is compressed; unpack it, and name the unpacked file, such as {path.stem}")
    if ending in SPREADSHEETS:
        raise UserError(f"{path}: the file is a spreadsheet; save it as CSV, and name {path.stem}.csv")


def _names_beside(path: Path) -> list[str]:
    folder = path.parent
    return [sibling.name for sibling in folder.iterdir()] if folder.is_dir() and os.access(folder, os.R_OK) else []


def _never_none(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows. Raises UserError if there are none."""
    row = None
    for row in rows:
        yield row
    if row is None:
        problem = "has no rows" if path.stat().st_size else "is empty"
        raise UserError(f"{path}:1: the file {problem}; name a file with data")


def check_columns(wanted: Sequence[str], present: Collection[str], place: str) -> None:
    """Raise MissingColumnError if a required column is missing."""
    for column in wanted:
        if column not in present:
            problem = f"{place}: the column {column!r} does not exist; the columns are {listed(present, most=20)}"
            meant = nearest(column, present)
            hint = f"; did you mean {meant!r}?" if meant else "; check the name"
            raise MissingColumnError(problem + hint, problem, column, list(present))


# --- text, line by line ---


def read_text(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file. Every line ending becomes a line feed; the last line may have none.

    Raises UserError with file and line if the file is empty or not text.
    """
    _check_file(path)
    _check_packing(path)
    if path.stat().st_size == 0:
        raise UserError(f"{path}:1: the file is empty; name a file with text")
    for _, line in read_lines(path):
        yield from _LINE.findall(line.replace("\r\n", "\n").replace("\r", "\n"))


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the lines of a UTF-8 file, as `lines_of` does. Raises UserError if it cannot be read."""
    _check_file(path)
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
        raise UserError(
            f"{place}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8 text, unpacked"
        ) from None


def _read_text(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    check_columns(columns, [TEXT_COLUMN], f"{path}:1")
    for line, text in read_lines(path):
        yield Row(line, {TEXT_COLUMN: text.removesuffix("\n").removesuffix("\r")})


# --- JSON, one object per line ---


def _read_json_lines(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    for line, text in read_lines(path):
        if text.strip():
            values = _parse_object(text, f"{path}:{line}")
            check_columns(columns, values, f"{path}:{line}")
            yield Row(line, {column: values[column] for column in columns or values})


def _parse_object(text: str, place: str) -> dict[str, Any]:
    """Return the JSON object of a text. Raises UserError if the text is not a JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:  # such as a number of 5,000 digits, or 5,000 brackets
        problem = str(error)
    else:
        if isinstance(value, dict):
            return value
        problem = f"it is a {type(value).__name__}"
    raise UserError(f"{place}: the line is not a JSON object ({problem}); write one object per line")


# --- CSV and TSV ---


def _read_delimited(path: Path, columns: Sequence[str], delimiter: str) -> Iterator[Row]:
    header: list[str] = []
    for line, fields in _records(path, delimiter):
        place = f"{path}:{line}"
        if not header:
            header = fields
            _check_header(header, columns, place)
        elif len(fields) != len(header):
            raise UserError(
                f"{place}: the row has {len(fields)} field{'s' * (len(fields) > 1)}, but the header has {len(header)}; "
                f"quote fields that contain {delimiter!r}, or add the missing fields"
            )
        else:
            values = dict(zip(header, fields, strict=True))
            yield Row(line, {column: values[column] for column in columns or header})


def _check_header(header: list[str], columns: Sequence[str], place: str) -> None:
    [(name, count)] = Counter(header).most_common(1)
    if count > 1:
        raise UserError(f"{place}: two columns are named {name!r}; rename one of them")
    if len(header) == 1 and ";" in header[0] and header[0] not in columns:
        raise UserError(f"{place}: the columns are separated by ';'; save the file with commas, or as .tsv with tabs")
    check_columns(columns, header, place)


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record begins, and its fields. Blank lines are skipped."""
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader((text for _, text in read_lines(path)), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = str(error).partition(" - ")[0]
            raise UserError(f"{path}:{line}: {problem}; close every quote, and double quotes inside a field") from None
        if fields:
            yield line, fields


# --- Parquet ---


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    number = count(start=1)
    try:
        with ParquetFile(path) as file:
            present = file.schema_arrow.names
            check_columns(columns, present, str(path))
            size, groups = path.stat().st_size, map(file.metadata.row_group, range(file.num_row_groups))
            unpacked = sum(each.total_byte_size for each in groups)
            if file.metadata.num_rows > MOST_ROWS * size or unpacked > MOST_PACKED * size:
                raise UserError(f"{path}: the Parquet file expands to far more than its {size:,} bytes; write it again")
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(columns) or None):
                for values in batch.to_pylist():
                    yield Row(next(number), {column: values[column] for column in columns or present})
    except (ArrowException, OSError, UnicodeDecodeError) as error:  # a text may not be UTF-8
        problem = str(error).partition("\n")[0]
        raise UserError(f"{path}: the Parquet file is broken ({problem}); write or download the file again") from None


_Reader = Callable[[Path, Sequence[str]], Iterator[Row]]
READERS: dict[str, _Reader] = {
    ".csv": partial(_read_delimited, delimiter=","),
    ".tsv": partial(_read_delimited, delimiter="\t"),
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json_lines,
    ".parquet": _read_parquet,
    ".txt": _read_text,
}


def is_plain_text(path: Path) -> bool:
    """Return whether each line of a file is a row with only a text."""
    return READERS.get(path.suffix.lower(), _read_text) is _read_text


def dataset_files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by split (train, validation, test), such as train.jsonl, dev.csv, test.parquet.

    Raises UserError if the folder has none of these files, or two for one split.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; name a folder with files such as train.jsonl")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = SPLITS.get(path.stem.lower())
        if split is None or path.suffix.lower() not in READERS:
            continue
        if split in files:
            raise UserError(f"{folder}: {files[split].name} and {path.name} are both the {split} split; remove one")
        files[split] = path
    if not files:
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() in COMPRESSED:
                raise UserError(f"{folder} has no split, but {path.name}, which is compressed; unpack it")
        raise UserError(f"{folder} has no split; expected {listed(SPLITS, 'or')}, ending in {listed(READERS, 'or')}")
    return {split: files[split] for split in dict.fromkeys(SPLITS.values()) if split in files}


class RowWriter:
    """Writer of rows to CSV, TSV, JSONL or Parquet, depending on the file's ending. After an error, no file is left.

        with RowWriter(Path("scored.csv"), ["text", "stars"]) as writer:
            writer.write({"text": "Good.", "stars": 4})

    Raises UserError if the ending is not supported, or if the folder does not exist or is not writable.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        if path.suffix.lower() not in _WRITERS:
            raise UserError(f"{path}: the ending {path.suffix!r} is not supported; use {listed(_WRITERS, 'or')}")
        if path.is_dir():
            raise UserError(f"{path} is a folder; name a file")
        if not path.parent.is_dir():
            raise UserError(f"{path}: the folder {path.parent} does not exist; create it, or name another")
        if not os.access(path.parent, os.W_OK):
            raise UserError(f"{path}: no permission to write to {path.parent}; name another folder")
        self._path, self._columns, self._opened = path, columns, ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            unfinished = stack.enter_context(replacing(self._path))
            self._write = stack.enter_context(_WRITERS[self._path.suffix.lower()](unfinished, self._columns))
            self._opened = stack.pop_all()
        return self

    def write(self, values: Mapping[str, Any]) -> None:
        """Write a row, which must have a value for each column."""
        assert values.keys() == set(self._columns), f"{list(values)} for the columns {self._columns}"
        self._write({column: values[column] for column in self._columns})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, traceback)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write at least one row with RowWriter. All rows must have the same columns."""
    with RowWriter(path, list(rows[0])) as file:
        for row in rows:
            file.write(row)


_Write = Callable[[dict[str, Any]], object]


@contextmanager
def _write_delimited(path: Path, columns: Sequence[str], delimiter: str) -> Iterator[_Write]:
    """Yield a function that writes a row. Python 3.11 does not quote carriage returns, so all texts are quoted."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writeheader()
        yield writer.writerow


@contextmanager
def _write_json_lines(path: Path, _columns: Sequence[str]) -> Iterator[_Write]:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield lambda values: file.write(json.dumps(values, ensure_ascii=False) + "\n")


class _ParquetRows(AbstractContextManager[_Write]):
    """Writer of Parquet in groups of ROWS_AT_ONCE rows. The first group determines the types of the columns."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path, self._columns = path, columns
        self._rows: list[dict[str, Any]] = []
        self._writer: Any = None

    def __enter__(self) -> _Write:
        return self._write

    def _write(self, values: dict[str, Any]) -> None:
        self._rows.append({column: _encodable(value) for column, value in values.items()})
        if len(self._rows) == ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        from pyarrow import ArrowException, Table
        from pyarrow.parquet import ParquetWriter

        try:
            if self._writer is None:
                self._writer = ParquetWriter(self._path, self._first_schema())
            self._writer.write_table(Table.from_pylist(self._rows, schema=self._writer.schema))
        except ArrowException as error:
            raise UserError(f"Parquet requires one type per column ({error}); write .jsonl instead") from None
        self._rows = []

    def _first_schema(self) -> Any:
        """Return the types of the first rows. A column without values gets the type of texts."""
        import pyarrow as pa

        inferred = pa.Table.from_pydict({name: [row[name] for row in self._rows] for name in self._columns}).schema
        return pa.schema(
            [(field.name, pa.string() if pa.types.is_null(field.type) else field.type) for field in inferred]
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None and (self._rows or self._writer is None):
                self._flush()
        finally:
            if self._writer is not None:
                self._writer.close()


def _encodable(value: Any) -> Any:
    """Return a value. In a text, lone surrogates are written as escape sequences, as in the other formats."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


_Writer = Callable[[Path, Sequence[str]], AbstractContextManager[_Write]]
_WRITERS: dict[str, _Writer] = {
    ".csv": partial(_write_delimited, delimiter=","),
    ".tsv": partial(_write_delimited, delimiter="\t"),
    ".jsonl": _write_json_lines,
    ".ndjson": _write_json_lines,
    ".parquet": _ParquetRows,
}
