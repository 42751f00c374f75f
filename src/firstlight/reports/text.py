"""Reports as Markdown and as CSV."""

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from firstlight.reports.rows import Run, shown
from firstlight.reports.run_rows import columns, run_rows
from firstlight.reports.table import Board, Group, Spread, not_counted

SAMPLE_MARK = "GENERATED SAMPLE"


def markdown(title: str, notes: Sequence[str], found: Sequence[Board], runs: Sequence[Run]) -> str:
    """Return the report as Markdown: the ranked groups of each task, and the runs that are not counted."""
    lines = [f"# {_escaped(title)}", "", *(f"{_escaped(note)}  " for note in notes)]
    for board in found:
        lines += ["", f"## {_escaped(board.name)}: {_escaped(direction(board))}", ""]
        header = headers(board)
        lines += [_line(header), _line(["---"] * len(header))]
        lines += [_line(cells(group, board)) for group in board.groups]
    if left := list(not_counted(found, runs)):
        lines += ["", "## Not counted", "", _line(["run", "task", "data", "status", "why"]), _line(["---"] * 5)]
        lines += [_line([run.folder, run.task or "unknown", data_of([run]), run.status, why]) for run, why in left]
    return "\n".join(lines) + "\n"


def direction(board: Board) -> str:
    """Return the metric and its direction, such as `val/loss (lower is better)`."""
    if board.metric is None:
        return "no metric for the ranking"
    return f"{board.metric} ({'lower' if board.falls else 'higher'} is better)"


def headers(board: Board) -> list[str]:
    """Return the headers of the table of groups."""
    metric = board.metric or "metric"
    last = [*other_metrics(board), "parameters", "fit time", "best run"]
    return ["rank", metric, "best", *board.keys, "data", "seeds", "runs", *last]


def cells(group: Group, board: Board) -> list[str]:
    """Return the cells of a group in the table of groups."""
    best = group.best
    value = best.metrics[board.metric] if best and board.metric else None
    return [
        "–" if group.rank is None else str(group.rank),
        spread_text(group.spreads.get(board.metric or "")),
        "–" if value is None else number(value),
        *(shown(group.keys[key]) for key in board.keys),
        data_of([*group.counted, *group.others]),
        str(group.seeds),
        f"{len(group.counted)} + {len(group.others)} not counted" if group.others else str(len(group.counted)),
        *(spread_text(group.spreads.get(name)) for name in other_metrics(board)),
        " to ".join(f"{count:,}" for count in dict.fromkeys([*group.parameters[:1], *group.parameters[-1:]])) or "–",
        duration(group.seconds),
        best.folder if best else "–",
    ]


def other_metrics(board: Board) -> list[str]:
    """Return the test metrics, which are shown but not used for the ranking."""
    return [name for name in board.metrics if name.startswith("test/")]


def data_of(runs: Sequence[Run]) -> str:
    """Return the data sources of some runs as text."""
    sources = sorted({run.source for run in runs if run.source is not None})
    return ", ".join(SAMPLE_MARK if source == "sample" else source for source in sources) or "–"


def spread_text(spread: Spread | None) -> str:
    """Return a text such as `0.475 ± 0.003`, or only the mean without a deviation."""
    if spread is None:
        return "–"
    if spread.deviation is None:
        return number(spread.mean)
    return f"{number(spread.mean)} ± {spread.deviation:.2g}"


def number(value: float) -> str:
    """Return a number as text, with four significant digits."""
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """Return a duration as text, in seconds, minutes or hours."""
    if seconds is None:
        return "–"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def table(found: Sequence[Board], runs: Sequence[Run]) -> str:
    """Return the report as CSV, with a line for each run and the values of its group, the best first."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns(runs), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _word(value) for name, value in row.items()} for row in run_rows(found, runs))
    return file.getvalue()


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, texts)) + " |"


def _escaped(text: str) -> str:
    """Return a text on one line, with the special characters of Markdown and HTML escaped."""
    line = " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())
    return re.sub(r"([\\`*|\[])", r"\\\1", line)
