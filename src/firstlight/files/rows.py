"""The one reader and the one writer of local files: rows of CSV, TSV, JSONL, Parquet and plain text."""

import csv
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from firstlight.errors import UserError
from firstlight.files.regular import SpecialFileError, regular

TEXT_COLUMN = "text"  # the one column of a plain text file
LONGEST_FIELD = 2**26  # characters of a CSV field; an open quote would otherwise read the whole file into memory
ROWS_AT_ONCE = 1024  # of Parquet
MOST_NAMED = 20  # columns in a message
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # splitlines cuts at other marks too

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
    """A file does not have a column that is wanted.

    problem: the message without a remedy; column: the one that is wanted; present: the columns that the file has.
    """

    def __init__(self, message: str, problem: str = "", column: str = "", present: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problem, self.column, self.present = problem, column, present


class Row(NamedTuple):
    """A row and where it begins: a line of the file, or the number of the row in Parquet, both from 1."""

    line: int
    values: dict[str, Any]


def read_rows(path: Path, columns: Sequence[str] = ()) -> Iterator[Row]:
    """Stream the rows of a file, whose ending says its format; no columns named means all of them.

    Raises UserError, naming file and line, for whatever cannot be read: before the first row where that is possible.
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
        raise UserError(f"{path}: {error.strerror}{_did_you_mean(path.name, _names_beside(path))}") from None
    if is_folder:
        raise UserError(f"{path} is a folder; name a file in it")
    if not os.access(path, os.R_OK):
        raise UserError(f"{path}: no permission to read it; check its owner and mode")


def _check_packing(path: Path) -> None:
    """Raise UserError for a file that another program must open first."""
    ending = path.suffix.lower()
    if ending in COMPRESSED:
        raise UserError(f"{path}: the file is compressed; unpack it, and name what was in it, such as {path.stem}")
    if ending in SPREADSHEETS:
        raise UserError(f"{path}: the file is a spreadsheet; save it as CSV, and name {path.stem}.csv")


def _names_beside(path: Path) -> list[str]:
    folder = path.parent
    return [sibling.name for sibling in folder.iterdir()] if folder.is_dir() and os.access(folder, os.R_OK) else []


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else "; check the name"


def _never_none(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    """Pass the rows on. Raises UserError if there are none."""
    row = None
    for row in rows:
        yield row
    if row is None:
        problem = "has no rows" if path.stat().st_size else "is empty"
        raise UserError(f"{path}:1: the file {problem}; name a file with data")


def _check_columns(wanted: Sequence[str], present: Collection[str], place: str) -> None:
    """Raise MissingColumnError if a wanted column is missing."""
    for column in wanted:
        if column not in present:
            problem = f"{place}: no column {column!r}; the columns are {listed(present)}"
            raise MissingColumnError(problem + _did_you_mean(column, present), problem, column, list(present))


def listed(names: Collection[str]) -> str:
    """Return the names in one line, of many the first ones and how many more there are."""
    shown = ", ".join(islice(names, MOST_NAMED))
    return f"{shown} and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else shown


# --- text, line by line ---


def read_text(path: Path) -> Iterator[str]:
    """Stream the lines of a UTF-8 file, each with "\n" at its end, whatever ended it; the last may have none.

    Raises UserError, naming file and line, for what is empty or no text.
    """
    _check_file(path)
    _check_packing(path)
    if path.stat().st_size == 0:
        raise UserError(f"{path}:1: the file is empty; name a file with text")
    for _, line in read_lines(path):
        yield from _LINE.findall(line.replace("\r\n", "\n").replace("\r", "\n"))


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file with their numbers and ends, but without a byte-order mark.

    Where no line ends with a line feed, a carriage return ends a line, as in files of old Macs.
    """
    with regular(path).open("rb") as file:
        lines: Iterator[bytes] = file
        first = next(file, b"")
        if b"\r" in first and not first.endswith(b"\n"):  # the first line is the whole file
            lines = iter(first.replace(b"\r", b"\n").splitlines(keepends=True))
        elif first:
            lines = chain([first], file)
        for line, raw in enumerate(lines, start=1):
            text = _decode(raw, f"{path}:{line}")
            yield line, text.removeprefix("\ufeff") if line == 1 else text


def _decode(raw: bytes, place: str) -> str:
    """Raise UserError for broken UTF-8 and for NUL."""
    if b"\0" in raw:
        raise UserError(f"{place}: a NUL byte; save the file as UTF-8 text")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{place}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8 text") from None


def _read_text(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    _check_columns(columns, [TEXT_COLUMN], f"{path}:1")
    for line, text in read_lines(path):
        yield Row(line, {TEXT_COLUMN: text.removesuffix("\n").removesuffix("\r")})


# --- JSON, one object a line ---


def _read_json_lines(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    for line, text in read_lines(path):
        if text.strip():
            values = _parse_object(text, f"{path}:{line}")
            _check_columns(columns, values, f"{path}:{line}")
            yield Row(line, {column: values[column] for column in columns or values})


def _parse_object(text: str, place: str) -> dict[str, Any]:
    """Raise UserError unless the text is one JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 5,000 brackets
        problem = str(error)
    else:
        if isinstance(value, dict):
            return value
        problem = f"it is a {type(value).__name__}"
    raise UserError(f"{place}: not a JSON object ({problem}); write one object a line")


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
                f"{place}: the row has {len(fields)} field{'s' * (len(fields) > 1)} and the header {len(header)}; "
                f"quote a field with {delimiter!r} in it, or fill in what is missing"
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
    _check_columns(columns, header, place)


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records, blank lines left out, each with the line on which it begins."""
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
            raise UserError(f"{path}:{line}: {problem}; close every quote, and double a quote within quotes") from None
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
            _check_columns(columns, present, str(path))
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(columns) or None):
                for values in batch.to_pylist():
                    yield Row(next(number), {column: values[column] for column in columns or present})
    except (ArrowException, OSError, UnicodeDecodeError) as error:  # a text in it may be no UTF-8
        problem = str(error).partition("\n")[0]
        raise UserError(f"{path}: broken Parquet ({problem}); write or download the file again") from None


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


def dataset_files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by split (train, validation, test), such as train.jsonl, dev.csv, test.parquet.

    Raises UserError if there are none, or two for one split.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; name one with files such as train.jsonl")
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
        raise UserError(f"{folder} has no split; expected {_either(SPLITS)}, ending in {_either(READERS)}")
    return {split: files[split] for split in dict.fromkeys(SPLITS.values()) if split in files}


def _either(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"


class RowWriter:
    """Write rows to CSV, TSV, JSONL or Parquet, by the ending: the whole file or, if anything fails, none of it.

        with RowWriter(Path("scored.csv"), ["text", "stars"]) as writer:
            writer.write({"text": "Good.", "stars": 4})

    Raises UserError if the ending is of none of these formats, or if the file has no folder to be written to.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        if path.suffix.lower() not in _WRITERS:
            raise UserError(f"{path}: no way to write {path.suffix or 'no ending'!r}; end it in {_either(_WRITERS)}")
        if path.is_dir():
            raise UserError(f"{path} is a folder; name a file")
        if not path.parent.is_dir():
            raise UserError(f"{path}: there is no folder {path.parent}; make it, or name another")
        if not os.access(path.parent, os.W_OK):
            raise UserError(f"{path}: no permission to write to {path.parent}; name another folder")
        self._path, self._columns = path, columns
        self._unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        self._rows = _WRITERS[path.suffix.lower()](self._unfinished, columns)

    def __enter__(self) -> Self:
        self._write = self._rows.__enter__()
        return self

    def write(self, values: Mapping[str, Any]) -> None:
        """Add a row, which has a value for each column."""
        assert values.keys() == set(self._columns), f"{list(values)} for the columns {self._columns}"
        self._write({column: values[column] for column in self._columns})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._rows.__exit__(kind, error, traceback)
            if kind is None:
                self._unfinished.replace(self._path)
        finally:
            self._unfinished.unlink(missing_ok=True)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write equal rows, at least one, as RowWriter does."""
    with RowWriter(path, list(rows[0])) as file:
        for row in rows:
            file.write(row)


_Write = Callable[[dict[str, Any]], object]


@contextmanager
def _write_delimited(path: Path, columns: Sequence[str], delimiter: str) -> Iterator[_Write]:
    """Quote all that is not a number: Python 3.11 would leave a carriage return bare."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writeheader()
        yield writer.writerow


@contextmanager
def _write_json_lines(path: Path, _columns: Sequence[str]) -> Iterator[_Write]:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield lambda values: file.write(json.dumps(values, ensure_ascii=False) + "\n")


class _ParquetRows(AbstractContextManager[_Write]):
    """Writes in groups of ROWS_AT_ONCE, of which the first decides the columns' types."""

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
            raise UserError(f"Parquet wants one type a column ({error}); write .jsonl instead") from None
        self._rows = []

    def _first_schema(self) -> Any:
        """The types of the first rows; a column without values is taken to be text."""
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
    """Spell out the lone surrogates of a text, as the other formats do."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


_Writer = Callable[[Path, Sequence[str]], AbstractContextManager[_Write]]
_WRITERS: dict[str, _Writer] = {
    ".csv": partial(_write_delimited, delimiter=","),
    ".tsv": partial(_write_delimited, delimiter="\t"),
    ".jsonl": _write_json_lines,
    ".ndjson": _write_json_lines,
    ".parquet": _ParquetRows,
}
