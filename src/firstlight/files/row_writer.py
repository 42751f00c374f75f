"""The writer of rows to CSV, TSV and JSONL."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.files.atomic import replacing

ENDINGS = (".csv", ".tsv", ".jsonl")

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
