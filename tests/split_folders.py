"""Fixtures for tests of encoded data: a folder of data, whose splits a test writes, with a cache next to it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests_support import write_lines

Rows = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the data of a test."""
    path = tmp_path / "data"
    path.mkdir()
    return path


@pytest.fixture
def write(folder: Path) -> Callable[..., None]:
    """Write the rows of each split as JSONL."""

    def write_splits(**splits: Rows) -> None:
        for split, rows in splits.items():
            write_lines(folder / f"{split}.jsonl", rows)

    return write_splits


def cached(data: Path) -> list[Path]:
    """Return the folders in the cache next to the data, complete or not."""
    return sorted((data.parent / "cache" / "encoded").glob("*"))
