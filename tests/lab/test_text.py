"""Tests of reports as Markdown and CSV."""

import csv
import io
import re

from firstlight.lab.reports.boards import boards
from firstlight.lab.reports.run_rows import runs_table
from firstlight.lab.reports.tables import Table, markdown
from firstlight.runs.summary import Run
from run_folders import a_row, falls

METRIC = "val/accuracy"

RUNS = [
    a_row("a", 0.25, parameters=1009, fit_seconds=3.0, flops=7),
    a_row("b", 0.75, keys={"seed": 2}, parameters=1009, fit_seconds=5.0),
    a_row("c", 0.125, keys={"model": "small"}, metrics={METRIC: 0.125, "test/accuracy": 0.0625}, parameters=20_011),
    a_row("d", keys={"model": "small", "seed": 2}, metrics={}, status="failed", why="RunError: the loss is nan"),
    a_row("e", 0.9, source="sample"),
    Run("f", "unreadable", why="metrics.json is empty"),
]


def test_nothing_that_a_run_says_is_markdown_or_html() -> None:
    reason = "a|b\n<img src=x onerror=y> `c` *d* [e](f) &amp; \\g"
    run = a_row("x|y", metrics={}, status="failed", why=reason)
    text = markdown("t", [], boards([run], falls), [run])
    line = text.splitlines()[-1]
    assert "<" not in line
    assert line.replace("\\|", "").count("|") == 6
    assert "a\\|b &lt;img src=x onerror=y> \\`c\\` \\*d\\* \\[e](f) &amp;amp; \\\\g" in line


def test_no_text_of_a_run_is_a_formula_in_a_spreadsheet() -> None:
    formulas = {
        "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
        '=HYPERLINK("http://x")': '\'=HYPERLINK("http://x")',
        "@SUM(A1)": "'@SUM(A1)",
        "+cmd": "'+cmd",
        "-cmd": "'-cmd",
        "＝1": "'＝1",
        "\t=1": "'\t'=1",
        "\r=1": "'\n'=1",
        "a;=1": "a;'=1",
        "a\r=1": "a\n'=1",
        "a=b-c": "a=b-c",
        "'=1": "'=1",
    }
    runs = [a_row("r", -0.5, keys={"model": text, text: -1e-05}) for text in formulas]
    written = runs_table(boards(runs, falls), runs).csv()
    assert "\r" not in written
    lines = list(csv.DictReader(io.StringIO(written, newline="")))
    assert {line["model"] for line in lines} == set(formulas.values())
    assert {line["value"] for line in lines} == {"-0.5"}
    for line in lines:
        assert set(formulas.values()) <= line.keys()
        assert line[line["model"]] == "-1e-05"


def test_in_a_page_the_points_of_a_column_are_below_each_other() -> None:
    numbers = ["1,234", "−0.5", "0.25", "12 s"]
    page = Table("", ("name", "value"), [["a", number] for number in numbers]).html()
    found = re.findall(r'<td class="number">(.*?)</td>', page)
    assert found == ["1,234\u2008\u2007\u2007", "−0.5\u2007", "0.25", "12 s"], "spaces of a point and of digits"
