"""The reader of rows of CSV, TSV, JSONL, Parquet and plain text."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.files.lines import COMPRESSED, check_file, read_lines

TEXT_COLUMN = "text"  # the only column of a plain text file
LONGEST_FIELD = 2**26  # characters of a CSV field; otherwise an open quote could read the complete file into memory
MOST_ROWS, MOST_PACKED = 10, 1000  # of Parquet: rows, and bytes without compression, for each byte of the file
ROWS_AT_ONCE = 1024  # rows of Parquet that are read or written together

SPLITS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}


class MissingColumnError(UserError):
    """Error if a file does not have a required column. column: its name; present: the columns of the file."""

    def __init__(self, message: str, column: str = "", present: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.column, self.present = column, present


class Row(NamedTuple):
    """A row and its position: the line on which it begins, or in Parquet the number of the row, both from 1."""

    line: int
    values: dict[str, Any]


def read_rows(path: Path, columns: Sequence[str] = ()) -> Iterator[Row]:
    """Return an iterator over the rows of a file. The ending of its name determines the format.

    columns: the columns to read; empty: all. Raises UserError with file and line for content that cannot be read. The
    error is raised before the first row if possible.
    """
    check_file(path)
    read = READERS.get(path.suffix.lower(), _read_text)
    return _never_none(path, read(path, columns))


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
            raise MissingColumnError(problem, column, list(present))


# --- plain text ---


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
            problem = f"{place}: the row has {len(fields)} fields, but the header has {len(header)}"
            raise UserError(f"{problem}; quote fields that contain {delimiter!r}, or add the missing ones")
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
