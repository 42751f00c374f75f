"""The writer of rows to CSV, TSV, JSONL and Parquet."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.files.atomic import replacing

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
ROWS_AT_ONCE = 1024  # rows of Parquet that are written together

Write = Callable[[dict[str, Any]], object]  # writes a row


def check_output(path: Path) -> None:
    """Raise UserError if the ending is not supported, or if the folder does not exist or is not writable."""
    if path.suffix.lower() not in ENDINGS:
        raise UserError(f"{path}: the ending {path.suffix!r} is not supported; use {listed(ENDINGS, 'or')}")
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

    The ending of the name determines the format: CSV, TSV, JSONL or Parquet. Raises UserError as `check_output` does.
    """
    check_output(path)
    ending = path.suffix.lower()
    with replacing(path) as unfinished:
        if ending == ".parquet":
            with _parquet_writer(unfinished, columns) as write:
                yield write
            return
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            if ending in (".csv", ".tsv"):
                delimiter = "," if ending == ".csv" else "\t"
                # Python 3.11 does not quote carriage returns, so all texts are quoted.
                writer = csv.DictWriter(
                    file, columns, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n"
                )
                writer.writeheader()
                yield writer.writerow
            else:
                yield lambda values: file.write(json.dumps(values, ensure_ascii=False) + "\n")


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write at least one row with `row_writer`. All rows must have the same columns."""
    with row_writer(path, list(rows[0])) as write:
        for row in rows:
            write(dict(row))


@contextmanager
def _parquet_writer(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    """Yield a function that writes Parquet in groups of rows. The first group determines the types of the columns.

    A column without values in the first group has the type of texts.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rows: list[dict[str, Any]] = []
    writers: list[Any] = []  # of the file, once the types are known

    def flush() -> None:
        try:
            if not writers:
                types = pa.Table.from_pydict({name: [row[name] for row in rows] for name in columns}).schema
                texts = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in types]
                writers.append(stack.enter_context(ParquetWriter(path, pa.schema(texts))))
            writers[0].write_table(pa.Table.from_pylist(rows, schema=writers[0].schema))
        except pa.ArrowException as error:
            raise UserError(f"Parquet requires one type per column ({error}); write .jsonl instead") from None
        rows.clear()

    def write(values: dict[str, Any]) -> None:
        rows.append({column: _encodable(value) for column, value in values.items()})
        if len(rows) == ROWS_AT_ONCE:
            flush()

    with ExitStack() as stack:
        yield write
        if rows or not writers:
            flush()


def _encodable(value: Any) -> Any:
    """Return a value. In a text, lone surrogates are written as escape sequences, as in the other formats."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value
