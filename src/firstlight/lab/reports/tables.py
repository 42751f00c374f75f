"""Tables and sections of a report for the terminal, Markdown, HTML and CSV, and the texts of their cells."""

import base64
import csv
import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from firstlight.lab.reports.boards import Board, Group, Spread, not_counted, short_name
from firstlight.runs.summary import PRUNED, SAMPLE_MARK, Run, brief, number
from firstlight.terminal_text import say

if TYPE_CHECKING:
    from rich.table import Table as RichTable

GROUPS_ON_TERMINAL = 20
NUMBER = re.compile(r"[+−-]?[\d,]+(\.\d+)?")
ORDER = ("better", None, "undecided", "worse")  # in which a page sorts groups by their verdicts
FORMULA = re.compile(r"(^|[;\t\n])(?=[=+\-@＝＋－＠\t\n])")  # where OWASP's advice on CSV injection expects a formula


class Column(NamedTuple):
    """Column of a table. is_left: whether its cells are aligned left. is_whole: whether they are never broken."""

    name: str
    is_left: bool = False
    is_whole: bool = False


@dataclass(frozen=True)
class Table:
    """Table with a title. Its cells are texts; in a table that is written as CSV, also numbers.

    columns: names, of which the first is aligned left and the others right, or objects with another alignment.
    """

    title: str
    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Any]]

    @property
    def headers(self) -> list[str]:
        """The names of the columns."""
        return [each.name for each in self._columns]

    @property
    def _columns(self) -> list[Column]:
        every = enumerate(self.columns)
        return [Column(each, is_left=place == 0) if isinstance(each, str) else each for place, each in every]

    def on_terminal(self) -> "RichTable":
        """Return the table for a console."""
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, title_justify="left")
        for name, is_left, is_whole in self._columns:
            table.add_column(name, justify="left" if is_left else "right", no_wrap=is_whole, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self, level: int = 0) -> list[str]:
        """Return the lines of the table. level: that of the heading with its title; 0: without a heading."""
        heading = ["", f"{'#' * level} {escaped(self.title)}", ""] if level else []
        lines = (self.headers, ["---"] * len(self.columns), *self.rows)
        return heading + ["| " + " | ".join(map(escaped, cells)) + " |" for cells in lines]

    def html(self) -> str:
        """Return the table with its title as a section of a page. All texts are escaped."""

        def row(cells: Sequence[str], tag: str) -> str:
            starts = (f"<{tag}>" if column.is_left else f'<{tag} class="number">' for column in self._columns)
            filled = zip(starts, map(html.escape, cells), strict=True)
            return "<tr>" + "".join(f"{start}{cell}</{tag}>" for start, cell in filled) + "</tr>"

        rows = zip(*map(_aligned, zip(*self.rows, strict=True)), strict=True)
        head, body = row(self.headers, "th"), "\n".join(row(each, "td") for each in rows)
        table = f'<table class="plain"><thead>{head}</thead><tbody>\n{body}\n</tbody></table>'
        return f'<section>\n<h2>{html.escape(self.title)}</h2>\n<div class="wide">{table}</div>\n</section>'

    def csv(self) -> str:
        """Return the table as CSV. A text that a spreadsheet would read as a formula begins with an apostrophe."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(map(_word, row) for row in (self.headers, *self.rows))
        return file.getvalue()


@dataclass(frozen=True)
class Section:
    """Section of a report. images: PNG files in the folder of the report."""

    title: str
    sentences: Sequence[str]
    tables: Sequence[Table]
    images: Sequence[Path] = ()

    def show(self) -> None:
        """Print the sentences, the tables and where the images are."""
        from firstlight.console import wide_console

        console = wide_console()
        for part in (*self.sentences, *(table.on_terminal() for table in self.tables)):
            console.print(part)
        for image in self.images:
            say(f"The figure is {image}")

    def plain(self) -> dict[str, Any]:
        """Return the section for JSON."""
        tables = [{"title": each.title, "columns": each.headers, "rows": each.rows} for each in self.tables]
        return {"title": self.title, "sentences": self.sentences, "tables": tables, "images": self.images}

    def markdown(self) -> str:
        """Return the section in Markdown."""
        lines = [f"## {escaped(self.title)}", "", *(f"{escaped(each)}  " for each in self.sentences)]
        for image in self.images:
            lines += ["", f"![{escaped(image.name)}]({image.name})"]
        for table in self.tables:
            lines += table.markdown(3)
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """Return the section for a page, with its images. All texts are escaped."""
        parts = [f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences]
        for image in self.images:
            content = base64.b64encode(image.read_bytes()).decode()
            parts.append(f'<p><img class="figure" alt="{image.stem}" src="data:image/png;base64,{content}"></p>')
        text, tables = "\n".join(parts), "\n".join(table.html() for table in self.tables)
        title = html.escape(self.title)
        return f'<section>\n<h2>{title}</h2>\n{text}\n</section>\n<div class="tables">\n{tables}\n</div>'


def _aligned(cells: Sequence[str]) -> list[str]:
    """Return the cells of a column with spaces after its numbers, so that their points are below each other."""
    decimals = [found and (found[1] or "") for found in map(NUMBER.fullmatch, cells)]
    longest = max((each or "" for each in decimals), key=len)
    spaces = re.sub(r"\d", "\u2007", longest).replace(".", "\u2008")  # as wide as a digit, and as a point
    return [cell if own is None else cell + spaces[len(own) :] for cell, own in zip(cells, decimals, strict=True)]


def _word(value: Any) -> Any:
    """Return the content of a cell of a CSV.

    The run of another person could otherwise start a program on your machine or send data. Numbers are unchanged.
    """
    if isinstance(value, str):
        return FORMULA.sub(r"\1'", value.replace("\r", "\n"))
    return str(value).lower() if isinstance(value, bool) else value


def escaped(text: str) -> str:
    """Return a text on one line, with the special characters of Markdown and HTML escaped."""
    line = " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())
    return re.sub(r"([\\`*|\[])", r"\\\1", line)


def markdown(title: str, notes: Sequence[str], found: Sequence[Board], runs: Sequence[Run]) -> str:
    """Return the report as Markdown: the ranked groups of each task, and the runs that are not counted."""
    lines = [f"# {escaped(title)}", "", *(f"{escaped(note)}  " for note in notes)]
    for board in found:
        lines += ["", f"## {escaped(board.name)}: {escaped(direction(board))}", ""]
        lines += [escaped(board.finding), ""] if board.finding else []
        lines += Table("", headers(board), [[cell.text for cell in row] for row in rows_of(board)]).markdown()
    left = not_counted(found, runs)
    rows = [[run.folder, run.task or "unknown", data_of([run]), run.status, why] for run, why in left]
    if rows:
        lines += Table("Not counted", ["run", "task", "data", "status", "why"], rows).markdown(2)
    return "\n".join(lines) + "\n"


def direction(board: Board) -> str:
    """Return the metric and its direction, such as `val/loss (lower is better)`."""
    if board.metric is None:
        return "no metric for the ranking"
    return f"{board.metric} ({'lower' if board.falls else 'higher'} is better)"


@dataclass(frozen=True)
class Cell:
    """A cell of the table of groups, with the value by which it is sorted."""

    header: str
    text: str
    sort: Any


def headers(board: Board) -> list[str]:
    """Return the headers of the table of groups."""
    return [cell.header for cell in rows_of(board)[0]]


def rows_of(board: Board) -> list[list[Cell]]:
    """Return the cells of each group in the table of groups. All rows have the same headers."""
    columns = (board.metric or "metric", *other_metrics(board))
    places = {name: _decimals([group.spreads.get(name) for group in board.groups]) for name in columns}
    return [_row_of(group, board, places) for group in board.groups]


def _row_of(group: Group, board: Board, places: Mapping[str, int]) -> list[Cell]:
    best, metric = group.best, board.metric or "metric"
    value = best.metrics[board.metric] if best and board.metric else None
    spread = group.spreads.get(metric)
    sizes = dict.fromkeys([*group.parameters[:1], *group.parameters[-1:]])
    left = f" + {len(group.others)} not counted" if group.others else ""
    data = data_of([*group.counted, *group.others])
    known = [run.fit_seconds for run in group.counted if run.fit_seconds is not None]
    seconds = fmean(known) if known else None
    others = {name: group.spreads.get(name) for name in other_metrics(board)}
    pools_others = any(each.differ for each in board.groups)  # runs that differ in more than the seed
    verdict, against = board.verdict(group), list[Cell]()
    if board.reference is not None:
        name = f"against {short_name(board.groups[board.reference].keys)}"
        against = [Cell(name, verdict_of(group, board), ORDER.index(verdict.word if verdict else None))]
    return [
        Cell("rank", "–" if group.rank is None else str(group.rank), group.rank),
        Cell(metric, "pruned" if is_pruned(group) else spread_text(spread, places[metric]), spread and spread.mean),
        *against,
        Cell("best", "–" if value is None else f"{value:,.{places[metric]}f}", value),
        *(Cell(key, brief(group.keys[key]), group.keys[key]) for key in board.keys),
        *([Cell("differ in", ", ".join(group.differ) or "–", len(group.differ))] if pools_others else []),
        Cell("data", data, data),
        Cell("seeds", str(group.seeds), group.seeds),
        Cell("runs", f"{len(group.counted)}{left}", len(group.counted)),
        *(Cell(name, spread_text(each, places[name]), each and each.mean) for name, each in others.items()),
        Cell("parameters", " to ".join(f"{count:,}" for count in sizes) or "–", next(iter(sizes), None)),
        Cell("fit time", duration(seconds), seconds),
        Cell("best run", best.folder if best else "–", best.folder if best else ""),
    ]


def is_pruned(group: Group) -> bool:
    """Return whether a group has no runs but trials that the pruner of a search has stopped."""
    return not group.counted and all(run.status == PRUNED for run in group.others)


def verdict_of(group: Group, board: Board, *, is_short: bool = False) -> str:
    """Return the verdict on a group as text. is_short: whether to leave out the reason."""
    if group.rank is not None and group.rank - 1 == board.reference:
        return "the reference"
    verdict = board.verdict(group)
    if verdict is None:
        return "–"
    metric = board.metric or ""
    return verdict.short_text(metric) if is_short else verdict.text(metric)


def other_metrics(board: Board) -> list[str]:
    """Return the test metrics, which are shown but not used for the ranking."""
    return [name for name in board.metrics if name.startswith("test/")]


def data_of(runs: Sequence[Run]) -> str:
    """Return the data sources of some runs as text."""
    sources = sorted({run.source for run in runs if run.source is not None})
    return ", ".join(SAMPLE_MARK if source == "sample" else source for source in sources) or "–"


def _decimals(spreads: Sequence[Spread | None]) -> int:
    """Return the number of decimals of a column: at most four digits of the largest mean, and one of each interval."""
    known = [spread for spread in spreads if spread is not None and math.isfinite(spread.mean)]
    largest = max((abs(spread.mean) for spread in known), default=0) or 1
    most = max(0, 3 - math.floor(math.log10(largest)))
    needed = [len(f"{spread.mean:.{most}f}".rstrip("0").partition(".")[2]) for spread in known]
    widths = [-math.floor(math.log10(spread.half_width)) for spread in known if spread.half_width]
    return min(max([0, *needed, *widths]), most + 2)


def spread_text(spread: Spread | None, decimals: int | None = None) -> str:
    """Return the mean with half of its 95% interval, such as `0.475 ± 0.003`, or only the mean of one seed.

    decimals: of both numbers; None: four significant digits of the mean, and two of the interval.
    """
    if spread is None:
        return "–"
    if decimals is not None:
        width = "" if spread.half_width is None else f" ± {spread.half_width:.{decimals}f}"
        return f"{spread.mean:,.{decimals}f}{width}"
    if spread.half_width is None:
        return number(spread.mean)
    return f"{number(spread.mean)} ± {spread.half_width:.2g}"


def duration(seconds: float | None) -> str:
    """Return a duration as text, in seconds, minutes or hours."""
    if seconds is None:
        return "–"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def groups_table(board: Board) -> Table:
    """Return the table of the best groups of a board for the terminal, and of `report --log`."""
    found = zip(board.groups, rows_of(board), strict=True)
    groups = [(group, row) for group, row in found if not is_pruned(group)][:GROUPS_ON_TERMINAL]
    against = None if board.reference is None or len(board.groups) == 1 else f"against rank {board.reference + 1}"
    headers, rows = {"seeds": "seeds", board.metric or "metric": "mean ± 95%", "best": "best"}, []
    if len(groups) == 1 or len({tuple(group.parameters) for group, _ in groups}) > 1:
        headers["parameters"] = "parameters"
    for group, row in groups:
        cell = {each.header: each.text for each in row}
        verdict = [verdict_of(group, board, is_short=True)] if against else []
        name = short_name(group.keys) + (f" (differ in: {', '.join(group.differ)})" if group.differ else "")
        rows.append([cell["rank"], name, *(cell[header] for header in headers), *verdict])
    numbers = [Column(name, is_whole=True) for name in headers.values()]
    columns = [Column("rank"), Column("group", is_left=True), *numbers]
    columns += [Column(against, is_left=True)] if against else []
    return Table(f"{board.name}: {direction(board)}", columns, rows)
