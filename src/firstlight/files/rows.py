"""The reader of rows of CSV, TSV, JSON, Parquet, Excel, plain text, and folders of texts, and their writer."""

import csv
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.files.atomic import replacing
from firstlight.files.lines import EXCEL, check_expansion, check_file, ending_of, read_lines, say_once, unpacked_name

TEXT_COLUMN = "text"  # the only column of a plain text file
LABEL_COLUMN = "label"  # the other column of a folder with a folder of texts for each class
UNLABELED = "unsup"  # the folder of IMDb with texts that have no label
SEPARATORS = (",", ";", "\t", "|")  # of columns, which are recognized in the header
LONGEST_FIELD = 2**26  # characters of a CSV field; otherwise an open quote could read the complete file into memory
MOST_ROWS, MOST_PACKED = 10, 1000  # of Parquet: rows, and bytes without compression, for each byte of the file
ROWS_AT_ONCE = 1024  # rows of Parquet that are read or written together

SPLITS = {"train": "train", **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"), "test": "test"}


class MissingColumnError(UserError):
    """Error if a file does not have a required column. column: its name."""

    def __init__(self, message: str, column: str = "") -> None:
        super().__init__(message)
        self.column = column


class Row(NamedTuple):
    """A row and its position from 1: the line on which it begins, or its number in Parquet and in an array of JSON."""

    line: int
    values: dict[str, Any]


class Layout(NamedTuple):
    """How a text file is read. separator: the character between columns; None: recognized in the header."""

    separator: str | None = None
    encoding: str = "utf-8"


def read_rows(path: Path, columns: Sequence[str] = (), layout: Layout = Layout()) -> Iterator[Row]:  # noqa: B008
    """Return an iterator over the rows of a file, whose name ends in its format, or of a folder of classes.

    columns: the columns to read; empty: all. Raises UserError with file and line for content that cannot be read. The
    error is raised before the first row if possible.
    """
    if os.path.isdir(path) and class_files(path):  # noqa: PTH112  (Path.is_dir raises OSError for a long name)
        return _with_columns(path, _read_classes(path, layout), columns)
    check_file(path)
    read = READERS.get(ending_of(path), _read_text)
    rows = read(path, columns) if read is _read_parquet else read(path, layout)
    return _with_columns(path, rows, columns)


def _with_columns(path: Path, rows: Iterator[Row], columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows with some columns, or with all. Raises UserError for a missing column, and without rows."""
    has_header = ending_of(path) in (".csv", ".tsv", EXCEL)
    row = None
    for row in rows:
        check_columns(columns, row.values, f"{path}:{1 if has_header else row.line}")
        yield Row(row.line, {column: row.values[column] for column in columns}) if columns else row
    if row is None:
        problem = "has no rows" if path.stat().st_size else "is empty"
        raise UserError(f"{path}:1: the file {problem}; name a file with data")


def check_columns(wanted: Sequence[str], present: Collection[str], place: str) -> None:
    """Raise MissingColumnError if a required column is missing."""
    for column in wanted:
        if column not in present:
            problem = f"{place}: the column {column!r} does not exist; the columns are {listed(present, most=20)}"
            raise MissingColumnError(problem, column)


# --- plain text ---


def _read_text(path: Path, layout: Layout) -> Iterator[Row]:
    for line, text in read_lines(path, layout.encoding):
        yield Row(line, {TEXT_COLUMN: text.removesuffix("\n").removesuffix("\r")})


def class_files(folder: Path) -> list[Path]:
    """Return the texts of a folder with a folder for each class, sorted. [] for another folder."""
    classes = (each for each in sorted(folder.iterdir()) if each.is_dir() and each.name != UNLABELED)
    texts = (text for each in classes for text in sorted(each.iterdir()))
    return [text for text in texts if text.is_file() and "/." not in f"/{text.relative_to(folder)}"]


def text_files(path: Path) -> list[Path]:
    """Return the .txt files of a folder, sorted, or the path itself if it is a file."""
    return sorted(path.glob("*.txt")) if path.is_dir() else [path]


def _read_classes(folder: Path, layout: Layout) -> Iterator[Row]:
    if (folder / UNLABELED).is_dir():
        say_once(f"{folder}: the texts of {UNLABELED} have no label and are left out")
    for number, file in enumerate(class_files(folder), start=1):
        text = "".join(line for _, line in read_lines(file, layout.encoding))
        yield Row(number, {TEXT_COLUMN: text, LABEL_COLUMN: file.parent.name})


# --- JSON, one object per line, or an array of objects ---


def _read_json(path: Path, layout: Layout) -> Iterator[Row]:
    lines = (text for _, text in read_lines(path, layout.encoding) if text.strip())
    if not next(lines, "").lstrip().startswith("["):
        yield from _read_json_lines(path, layout)
        return
    try:
        values = json.loads("".join(line for _, line in read_lines(path, layout.encoding)))
    except (ValueError, RecursionError) as error:
        place = f"{path}:{getattr(error, 'lineno', 1)}"
        raise UserError(f"{place}: the file is not a JSON array ({error}); correct it") from None
    for number, value in enumerate(values, start=1):
        yield _row_of_object(path, number, value)


def _read_json_lines(path: Path, layout: Layout) -> Iterator[Row]:
    for line, text in read_lines(path, layout.encoding):
        if text.strip():
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:  # also a number of 5,000 digits, or 5,000 brackets
                problem = f"{path}:{line}: the line is not a JSON object ({error})"
                raise UserError(f"{problem}; write one object per line") from None
            yield _row_of_object(path, line, value)


def _row_of_object(path: Path, line: int, value: Any) -> Row:
    if not isinstance(value, dict):
        raise UserError(f"{path}:{line}: the row is not a JSON object, but a {type(value).__name__}; correct it")
    return Row(line, value)


# --- CSV and TSV ---


def _read_delimited(path: Path, layout: Layout, delimiter: str) -> Iterator[Row]:
    header: list[str] = []
    delimiter = layout.separator or delimiter
    for line, fields in _records(path, delimiter, layout.encoding):
        place = f"{path}:{line}"
        if not header:
            header = fields
            other = next((each for each in SEPARATORS if each in header[0]), None)
            if other and len(header) == 1 and layout.separator is None:
                say_once(f"{path}: the columns are separated by {other!r}; data.separator sets another character")
                yield from _read_delimited(path, layout._replace(separator=other), delimiter)
                return
            [(name, times)] = Counter(header).most_common(1)
            if times > 1:
                raise UserError(f"{place}: two columns are named {name!r}; rename one of them")
        elif len(fields) != len(header):
            problem = f"{place}: the row has {len(fields)} fields, but the header has {len(header)}"
            raise UserError(f"{problem}; quote fields that contain {delimiter!r}, or add the missing ones")
        else:
            yield Row(line, dict(zip(header, fields, strict=True)))


def _records(path: Path, delimiter: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record begins, and its fields. Blank lines are skipped."""
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader((text for _, text in read_lines(path, encoding)), delimiter=delimiter, strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        problem = str(error).partition(" - ")[0]
        raise UserError(f"{path}:{line}: {problem}; close every quote, and double quotes inside a field") from None


# --- Excel and Parquet ---


def _read_excel(path: Path, _layout: Layout) -> Iterator[Row]:
    """Yield the rows of the first sheet, with all values as text."""
    from pandas import read_excel  # type: ignore[import-untyped]

    try:
        with ZipFile(path) as archive:
            check_expansion(path, sum(each.file_size for each in archive.infolist()))
        table = read_excel(path, dtype=str, keep_default_na=False, engine="openpyxl")
    except UserError:
        raise
    except ImportError:
        problem = f"{path}: Excel files require the extra excel"
        raise UserError(f"{problem}; install firstlight[excel] with pip, or save the file as CSV") from None
    except (BadZipFile, KeyError, ValueError, OSError) as error:
        raise UserError(f"{path}: the Excel file is broken ({error}); save it again, or save it as CSV") from None
    names = list(map(str, table.columns))
    for line, fields in enumerate(table.values.tolist(), start=2):
        if any(fields):
            yield Row(line, dict(zip(names, fields, strict=True)))


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows with only some columns, since a file of the Hub can have many others."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    number = count(start=1)
    try:
        with ParquetFile(path) as file:
            check_columns(columns, file.schema_arrow.names, str(path))
            size, groups = path.stat().st_size, map(file.metadata.row_group, range(file.num_row_groups))
            unpacked = sum(each.total_byte_size for each in groups)
            if file.metadata.num_rows > MOST_ROWS * size or unpacked > MOST_PACKED * size:
                raise UserError(f"{path}: the Parquet file expands to far more than its {size:,} bytes; write it again")
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(columns) or None):
                yield from (Row(next(number), values) for values in batch.to_pylist())
    except (ArrowException, OSError, UnicodeDecodeError) as error:  # a text may not be UTF-8
        problem = str(error).partition("\n")[0]
        raise UserError(f"{path}: the Parquet file is broken ({problem}); write or download the file again") from None


READERS: dict[str, Callable[..., Iterator[Row]]] = {  # all read all columns, except that of Parquet
    ".csv": partial(_read_delimited, delimiter=","),
    ".tsv": partial(_read_delimited, delimiter="\t"),
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
    EXCEL: _read_excel,
    ".txt": _read_text,
}


def is_plain_text(path: Path) -> bool:
    """Return whether each line of a file is a row with only a text."""
    return path.is_file() and READERS.get(ending_of(path), _read_text) is _read_text


def dataset_files(folder: Path, only_split: str = "train") -> dict[str, Path]:
    """Return the files of a folder by split (train, validation, test), such as train.jsonl, dev.csv, test.parquet.

    If each class is a folder of texts, return the folders of the splits, or the folder itself as `only_split`. Raises
    UserError if the folder has none of these files, or two for one split.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; name a folder with files such as train.jsonl")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        name = unpacked_name(path)
        split = SPLITS.get((name.name.rpartition("-")[2] if path.is_dir() else name.stem).lower())
        if split is None or not (class_files(path) if path.is_dir() else name.suffix.lower() in READERS):
            continue
        if split in files:
            raise UserError(f"{folder}: {files[split].name} and {path.name} are both the {split} split; remove one")
        files[split] = path
    if not files and class_files(folder):
        return {only_split: folder}
    if not files:
        expected = f"expected {listed(SPLITS, 'or')}, ending in {listed(READERS, 'or', most=9)}"
        raise UserError(f"{folder} has no split; {expected}, or a folder of texts for each class")
    return {split: files[split] for split in dict.fromkeys(SPLITS.values()) if split in files}


# --- writing ---

ENDINGS = (".csv", ".tsv", ".jsonl")  # of files that are written

Write = Callable[[dict[str, Any]], object]  # writes a row


def check_output(path: Path, endings: Sequence[str] = ENDINGS) -> None:
    """Raise UserError if the ending is not supported, or if the folder does not exist or is not writable."""
    if path.suffix.lower() not in endings:
        raise UserError(f"{path}: the ending {path.suffix!r} is not supported; use {listed(endings, 'or')}")
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist; create it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path}: no permission to write to {path.parent}; name another folder")


@contextmanager
def row_writer(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    """Yield a function that writes a row, a dict with the columns. After an error, no file is left.

        with row_writer(Path("scored.csv"), ["text", "stars"]) as write:
            write({"text": "Good.", "stars": 4})

    The ending of the name determines the format: CSV, TSV or JSONL. Raises UserError as `check_output` does.
    """
    check_output(path)
    ending = path.suffix.lower()
    with (
        replacing(path) as unfinished,
        unfinished.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        if ending == ".jsonl":
            yield lambda values: file.write(json.dumps(values, ensure_ascii=False) + "\n")
            return
        delimiter = "," if ending == ".csv" else "\t"
        # Python 3.11 does not quote carriage returns, so all texts are quoted.
        writer = csv.DictWriter(file, columns, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writeheader()
        yield writer.writerow


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write at least one row with `row_writer`. All rows must have the same columns."""
    with row_writer(path, list(rows[0])) as write:
        for row in rows:
            write(dict(row))
