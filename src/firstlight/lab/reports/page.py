"""The report as one HTML page that works offline. It contains the data as JSON, two libraries and page.js."""

import base64
import gzip
import html
import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from firstlight.lab import framed, packaged
from firstlight.lab.reports.all_runs import SavedPredictions
from firstlight.lab.reports.boards import Board, Direction, Group, label_of, not_counted, reason, short_name
from firstlight.lab.reports.tables import Cell, data_of, direction, headers, rows_of
from firstlight.runs.gather import thinned
from firstlight.runs.summary import SAMPLE_MARK, Curve, Run, brief

POLICY = "script-src 'unsafe-inline' 'unsafe-eval' data:; font-src data:; form-action 'none'"
MOST_NUMBERS = 1_500_000  # numbers in all curves; a page of a thousand runs is then smaller than 20 MB
FEWEST_POINTS = 20  # points of a curve, for any number of curves
DETAILED = 60  # best runs of a board, whose confusion matrices and texts are included
OF_A_BOARD = ("name", "task", "note", "is_sample", "metric", "swept", "metrics")  # attributes that the page has
OF_A_RUN = ("folder", "command", "files", "status", "parameters", "steps", "is_sample", "is_baseline")
WITH_CELLS = 12  # best runs of a board, for which the texts of the confusion matrix are included


def page(
    title: str,
    notes: Sequence[str],
    found: Sequence[Board],
    runs: Sequence[Run],
    falls: Direction,
    load: SavedPredictions,
    first: str = "",
) -> str:
    """Return the whole page. All texts of runs are escaped.

    load: returns the saved predictions of a run, or None. first: HTML of the sections before the others.
    """
    body = Template(packaged("reports/page.html")).substitute(
        notes="\n".join(f"<p>{html.escape(note)}</p>" for note in notes),
        findings="\n".join(f"<li>{html.escape(board.finding)}</li>" for board in found if board.finding),
        first=first,
        libraries=as_script(libraries()),
        data=as_script(content(found, runs, falls, load)),
        script=packaged("reports/page.js"),
    )
    return framed(title, body, ("reports/page.css",), POLICY)


@cache
def libraries() -> dict[str, str]:
    """Return the libraries of the page: Plotly, DataTables, and the style of DataTables.

    They are compressed by gzip, in base 64. The page unpacks them with the browser's `DecompressionStream`.
    The files of DataTables are part of the itables package, which is not imported because it would import pandas.
    """
    itables = Path(str(distribution("itables").locate_file("itables/html")))
    plotly = files("plotly") / "package_data" / "plotly.min.js"
    contents = {"plotly": plotly, "tables": itables / "dt_bundle.js", "style": itables / "dt_bundle.css"}
    packed = {name: gzip.compress(content.read_bytes(), mtime=0) for name, content in contents.items()}
    return {name: base64.b64encode(content).decode() for name, content in packed.items()}


def as_script(data: Any) -> str:
    """Return data as JSON for a script element. Characters that could end the element are escaped."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def content(found: Sequence[Board], runs: Sequence[Run], falls: Direction, load: SavedPredictions) -> dict[str, Any]:
    """Return the data for page.js. Numbers that are not finite, such as NaN, are null."""
    most = max(FEWEST_POINTS, MOST_NUMBERS // (3 * max(1, sum(len(run.curves) for run in runs))))  # points of a curve
    metrics = {name for run in runs for name in [*run.metrics, *run.curves]}
    return {
        "boards": [_board(board, most, load) for board in found],
        "falls": {name: falls(name) for name in sorted(metrics)},
        "detailed": DETAILED,
        "withCells": WITH_CELLS,
        "sampleMark": SAMPLE_MARK,
        "left": [
            {"folder": run.folder, "task": run.task, "data": data_of([run]), "status": run.status, "why": why}
            for run, why in not_counted(found, runs)
        ],
    }


def _board(board: Board, most: int, load: SavedPredictions) -> dict[str, Any]:
    ranks: dict[float, int] = {}  # of the values; runs with equal values have one rank
    for place, run in enumerate(board.runs, start=1):
        if not reason(run, board.metric):
            ranks.setdefault(run.metrics[str(board.metric)], place)
    group_of = {id(run): index for index, group in enumerate(board.groups) for run in (*group.counted, *group.others)}
    return {
        **{name: getattr(board, name) for name in OF_A_BOARD},
        "direction": direction(board),
        "headers": headers(board),
        "groups": [_group(group, row, board) for group, row in zip(board.groups, rows_of(board), strict=True)],
        "runs": [
            _run(run, board, ranks, place, group_of[id(run)], most, load)
            for place, run in enumerate(board.runs, start=1)
        ],
    }


def _group(group: Group, row: Sequence[Cell], board: Board) -> dict[str, Any]:
    spread = group.spreads.get(board.metric or "")
    return {
        "name": short_name(group.keys),
        "cells": [cell.text for cell in row],
        "sort": [finite(cell.sort) if isinstance(cell.sort, float) else cell.sort for cell in row],
        "mean": finite(spread.mean if spread else None),
        "halfWidth": finite(spread.half_width if spread else None),
        "differ": group.differ,
    }


def _run(
    run: Run, board: Board, ranks: dict[float, int], place: int, group: int, most: int, load: SavedPredictions
) -> dict[str, Any]:
    why = reason(run, board.metric)
    compute, compute_from = run.compute or (None, None)
    matrix = run.confusion if place <= DETAILED else None
    predictions = load(run) if matrix and len(matrix.classes) == 2 else None
    return {
        **{name: getattr(run, name) for name in OF_A_RUN},
        "rank": None if why else ranks[run.metrics[str(board.metric)]],
        "label": label_of(run, board),
        "group": group,
        "keys": {key: brief(run.keys.get(key)) for key in (*board.swept, "seed")},
        "settings": {key: brief(value) for key, value in run.keys.items()} | run.notes,
        "data": data_of([run]),
        "why": why,
        "metrics": {name: finite(value) for name, value in run.metrics.items()},
        "seconds": finite(run.fit_seconds),
        "compute": finite(compute),
        "computeFrom": compute_from,
        "curves": _packed(run.curves, most),
        "confusion": matrix and {"classes": matrix.classes, "counts": matrix.counts},
        "cells": load.texts(run, matrix.classes) if matrix and place <= WITH_CELLS else None,
        "auc": finite(predictions.auc) if predictions else None,
        "texts": run.texts if place <= DETAILED else None,
    }


def _packed(curves: dict[str, Curve], most: int) -> list[dict[str, Any]]:
    """Return the curves of a run. Curves with the same steps and times are stored together."""
    moments: dict[tuple[Any, ...], dict[str, Any]] = {}
    for name, curve in curves.items():
        chosen = thinned(range(len(curve.values)), most)
        steps = [curve.steps[index] for index in chosen]
        seconds = [round(curve.seconds[index], 1) for index in chosen]
        together = moments.setdefault((*steps, *seconds), {"steps": steps, "seconds": seconds, "values": {}})
        together["values"][name] = [finite(curve.values[index]) for index in chosen]
    return list(moments.values())


def finite(value: float | None) -> float | int | None:
    """Return a number with five significant digits, or None if it is missing or not finite."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.5g}")
