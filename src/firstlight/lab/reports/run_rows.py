"""Rows of a table of all runs, with the values of each run and of its group."""

from collections.abc import Iterator, Sequence
from typing import Any

from firstlight.lab.reports.table import Board, Group, accuracy_half_width, reason
from firstlight.runs.summary import KEYS, Run

FIRST_COLUMNS = ("rank", *KEYS)
MIDDLE_COLUMNS = (
    *("data_source", "generated_sample", "kind", "status", "reason", "metric", "value", "group_mean", "group_sd"),
    *("group_half_width", "split_half_width", "group_seeds", "group_runs", "group_differs_in", "verdict"),
    *("verdict_p", "best_of_group", "on_pareto_front", "apart"),
)
LAST_COLUMNS = (
    *("parameters", "steps", "tokens", "fit_seconds", "tokens_per_second", "compute_flops", "compute_from", "folder"),
)


def columns(runs: Sequence[Run]) -> list[str]:
    """Return the names of the columns, in order. They include all keys and metrics of the runs."""
    names = [*FIRST_COLUMNS, *sorted({key for run in runs for key in run.keys})]
    names += [*MIDDLE_COLUMNS, *sorted({name for run in runs for name in run.metrics}), *LAST_COLUMNS]
    return list(dict.fromkeys(names))


def run_rows(found: Sequence[Board], runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Yield a row for each run, as a dict by column. The best runs of each task are first, uncounted runs are last.

    A missing value is None or has no key.
    """
    for board in found:
        for group in board.groups:
            spread = group.spreads.get(board.metric or "")
            of_group = {
                "rank": group.rank,
                "group_mean": spread.mean if spread else None,
                "group_sd": spread.deviation if spread else None,
                "group_half_width": spread.half_width if spread else None,
                "split_half_width": accuracy_half_width(group, board.metric),
                "group_seeds": group.seeds,
                "group_runs": len(group.counted),
                "group_differs_in": ", ".join(group.differ),
                **_of_verdict(board, group),
                "apart": board.note,
            }
            for run in group.counted:
                of_run = {"best_of_group": run is group.best} | _of_front(board, run)
                yield of_group | _row(run, board.metric, "") | of_run
    for board in found:
        for group in board.groups:
            yield from (_row(run, board.metric, reason(run, board.metric)) for run in group.others)
    yield from (_row(run, None, run.why) for run in runs if run.task is None)


def _of_front(board: Board, run: Run) -> dict[str, Any]:
    """Return whether a trial is on the Pareto front of its search; {} for other runs."""
    front = board.front
    if front is None or run not in (*front.best, *front.others):
        return {}
    return {"on_pareto_front": run in front.best}


def _of_verdict(board: Board, group: Group) -> dict[str, Any]:
    verdict = board.verdict(group)
    return {"verdict": verdict.word, "verdict_p": verdict.p} if verdict else {}


def _row(run: Run, metric: str | None, why: str) -> dict[str, Any]:
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
        "parameters": run.parameters,
        "steps": run.steps,
        "tokens": run.tokens,
        "fit_seconds": run.fit_seconds,
        "tokens_per_second": run.tokens_per_second,
        "compute_flops": compute,
        "compute_from": compute_from,
        "folder": run.folder,
    }
