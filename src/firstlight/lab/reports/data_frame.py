"""The table of the report as a pandas DataFrame, for notebooks."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas  # type: ignore[import-untyped]

from firstlight.lab.reports.all_runs import direction_of, found_runs
from firstlight.lab.reports.boards import boards
from firstlight.lab.reports.findings import judged
from firstlight.lab.reports.run_rows import FLOATS, INTEGERS, columns, run_rows
from firstlight.lab.reports.saved_predictions import SavedPredictions

log = logging.getLogger(__name__)


def list_runs(folder: Path) -> pandas.DataFrame:
    """Return the runs below a folder as the rows and columns of `report.csv`. Raises UserError."""
    runs = found_runs(folder)
    load = SavedPredictions(folder)
    found = [judged(board, load) for board in boards(runs, direction_of(runs))]
    for run, problem in load.damaged.items():
        log.warning("not compared by texts: %s: %s", folder / run, problem)
    rows = list(run_rows(found, runs))
    for row in rows:
        row["folder"] = str(folder / row["folder"])
    floats = FLOATS.union(*(run.metrics for run in runs))
    return pandas.DataFrame({name: _column(name, [row.get(name) for row in rows], floats) for name in columns(runs)})


def _column(name: str, values: Sequence[Any], floats: set[str]) -> pandas.Series:
    """Return a column whose type can hold all values."""
    known = [value for value in values if value is not None]
    kinds = {type(value) for value in known}
    dtype: str | None = "object"
    if kinds <= {int, float} and (name in floats or float in kinds):
        dtype = "float64"
    elif kinds <= {int} and (known or name in INTEGERS) and all(abs(value) < 2**63 for value in known):
        dtype = "Int64"
    elif kinds == {bool}:
        dtype = "bool" if len(known) == len(values) else "boolean"
    elif kinds == {str}:
        dtype = None  # pandas 3 has a type for text, and pandas 2 takes objects
    return pandas.Series(values, dtype=dtype)
