"""The table of all runs, with the values of each run and of its group: as rows, and as a pandas DataFrame."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstlight.lab.reports.all_runs import SavedPredictions, direction_of, gather
from firstlight.lab.reports.boards import Board, Group, boards, reason
from firstlight.lab.reports.findings import judged
from firstlight.lab.reports.tables import Table
from firstlight.runs.summary import KEYS, Run, Value

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

log = logging.getLogger(__name__)

FIRST = ("rank", *KEYS)
MIDDLE = (
    *("data_source", "generated_sample", "kind", "status", "reason", "metric", "value", "group_mean", "group_sd"),
    *("group_half_width", "group_seeds", "group_runs", "group_differs_in", "verdict", "verdict_p"),
    *("best_of_group", "apart", "tags", "note"),
)
COSTS = ("parameters", "steps", "tokens", "fit_seconds", "tokens_per_second")  # attributes of a run
LAST = (*COSTS, "compute_flops", "compute_from", "folder")
FLOATS = {  # numbers that are not counts, also if all values are integers or are missing
    *("dropout", "value", "group_mean", "group_sd", "group_half_width", "verdict_p"),
    *("fit_seconds", "tokens_per_second", "compute_flops"),
}


def columns(runs: Sequence[Run]) -> list[str]:
    """Return the names of the columns, in order. They include all keys and metrics of the runs."""
    keys = sorted({key for run in runs for key in run.keys})
    metrics = sorted({name for run in runs for name in run.metrics})
    return [*dict.fromkeys((*FIRST, *keys, *MIDDLE, *metrics, *LAST))]


def runs_table(found: Sequence[Board], runs: Sequence[Run]) -> Table:
    """Return the table of all runs. A missing value is None."""
    names = columns(runs)
    return Table("", names, [[row.get(name) for name in names] for row in run_rows(found, runs)])


def run_rows(found: Sequence[Board], runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Yield a row for each run, as a dict by column. The best runs of each task are first, uncounted runs are last.

    A missing value is None or has no key.
    """
    for board in found:
        for group in board.groups:
            of_group = _of_group(board, group)
            for run in group.counted:
                yield of_group | row_of(run, board.metric, "") | {"best_of_group": run is group.best}
    for board in found:
        for group in board.groups:
            yield from (row_of(run, board.metric, reason(run, board.metric)) for run in group.others)
    yield from (row_of(run, None, run.why) for run in runs if run.task is None)


def plain_board(board: Board) -> dict[str, Any]:
    """Return a board for JSON: its metric, its finding, and its groups with their runs."""
    groups = [
        {"keys": group.keys, **_of_group(board, group), "runs": [run.folder for run in group.counted]}
        for group in board.groups
    ]
    reference = None if board.reference is None else board.reference + 1
    facts = {name: getattr(board, name) for name in ("name", "task", "metric", "finding")}
    return {**facts, "lower_is_better": board.falls, "reference": reference, "groups": groups}


def _of_group(board: Board, group: Group) -> dict[str, Any]:
    spread, verdict = group.spreads.get(board.metric or ""), board.verdict(group)
    return {
        "rank": group.rank,
        "group_mean": spread and spread.mean,
        "group_sd": spread and spread.deviation,
        "group_half_width": spread and spread.half_width,
        "group_seeds": group.seeds,
        "group_runs": len(group.counted),
        "group_differs_in": ", ".join(group.differ),
        "verdict": verdict and verdict.word,
        "verdict_p": verdict and verdict.p,
        "apart": board.note,
    }


def row_of(run: Run, metric: str | None, why: str) -> dict[str, Value]:
    """Return the values of a run by column, without those of its group. why: the reason why it is not counted."""
    compute, compute_from = run.compute or (None, None)
    return {
        **run.keys,
        **run.metrics,
        "data_source": run.source,
        "generated_sample": run.is_sample,
        "kind": "baseline" if run.is_baseline else "run",
        "status": run.status,
        "reason": why,
        "metric": metric,
        "value": run.metrics.get(metric or ""),
        "best_of_group": False,
        "tags": " ".join(run.tags),
        "note": run.note,
        **{name: getattr(run, name) for name in COSTS},
        "compute_flops": compute,
        "compute_from": compute_from,
        "folder": run.folder,
    }


def list_runs(folder: Path) -> "pandas.DataFrame":
    """Return the runs below a folder as the rows and columns of `report.csv`. Raises UserError."""
    import pandas  # takes half a second

    runs = gather(folder)
    load = SavedPredictions(folder)
    found = [judged(board, load) for board in boards(runs, direction_of(runs))]
    for run, problem in load.damaged.items():
        log.warning("not compared by texts: %s: %s", folder / run, problem)
    rows = list(run_rows(found, runs))
    for row in rows:
        row["folder"] = str(folder / row["folder"])
    table = pandas.DataFrame(rows, columns=columns(runs)).convert_dtypes()
    floats = FLOATS.union(*(run.metrics for run in runs))
    return table.astype({name: "float64" for name in floats if pandas.api.types.is_numeric_dtype(table[name])})
