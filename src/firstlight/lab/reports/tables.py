"""Tables and sections of a report, which write themselves for the terminal, as Markdown, as HTML and as CSV."""

import base64
import csv
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from firstlight.terminal_text import say

if TYPE_CHECKING:
    from rich.table import Table as RichTable

NUMBER = re.compile(r"[+−-]?[\d,]+(\.\d+)?")
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
