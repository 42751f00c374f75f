"""The writer of rows to CSV, TSV, JSONL and Parquet."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.files.atomic import replacing

ROWS_AT_ONCE = 1024  # rows of Parquet that are written together


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
