"""Tests of reports as Markdown and CSV."""

import csv
import io
from typing import Any

import pytest

from firstlight.lab.reports.boards import Spread, boards
from firstlight.lab.reports.run_rows import runs_table
from firstlight.lab.reports.text import cells, data_of, duration, headers, markdown, spread_text
from firstlight.runs.summary import Run, number

METRIC = "val/accuracy"


def a_run(name: str, value: float = 0.5, **changes: Any) -> Run:
    keys = {"task": "stars", "model": "tiny", "dropout": 0.1, "seed": 1} | changes.pop("keys", {})
    given = {"status": "finished", "source": "local", "optimized_metric": METRIC, "metrics": {METRIC: value}} | changes
    return Run(name, keys=keys, **given)


def falls(metric: str) -> bool:
    return metric.endswith("loss")


RUNS = [
    a_run("a", 0.25, parameters=1009, fit_seconds=3.0, flops=7),
    a_run("b", 0.75, keys={"seed": 2}, parameters=1009, fit_seconds=5.0),
    a_run("c", 0.125, keys={"model": "small"}, metrics={METRIC: 0.125, "test/accuracy": 0.0625}, parameters=20_011),
    a_run("d", keys={"model": "small", "seed": 2}, metrics={}, status="failed", why="RunError: the loss is nan"),
    a_run("e", 0.9, source="sample"),
    Run("f", "unreadable", why="metrics.json is empty"),
]


def rows_of(markdown_text: str, heading: str) -> list[list[str]]:
    part = markdown_text.split(f"## {heading}")[1].split("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in part.splitlines() if line.startswith("|")
    ]


def test_markdown_has_a_line_for_each_group_and_for_all_that_does_not_count() -> None:
    text = markdown("logs: 6 runs", ["a note"], boards(RUNS, falls), RUNS)
    assert text.startswith("# logs: 6 runs\n\na note  \n")
    header, _, first, second = rows_of(text, "stars: val/accuracy (higher is better)")
    assert header == headers(boards(RUNS, falls)[0])
    assert dict(zip(header, first, strict=True)) == {
        "rank": "1",
        "model": "tiny",
        "data": "local",
        "seeds": "2",
        "runs": "2",
        METRIC: "0.5 ± 3.2",
        "test/accuracy": "–",
        "best": "0.75",
        "parameters": "1,009",
        "fit time": "4.0 s",
        "best run": "b",
    }
    assert dict(zip(header, second, strict=True)) == {
        "rank": "2",
        "model": "small",
        "data": "local",
        "seeds": "1",
        "runs": "1 + 1 not counted",
        METRIC: "0.125",
        "test/accuracy": "0.0625",
        "best": "0.125",
        "parameters": "20,011",
        "fit time": "–",
        "best run": "c",
    }
    (_, _, sample) = rows_of(text, "stars (GENERATED SAMPLE): val/accuracy (higher is better)")
    assert "GENERATED SAMPLE" in sample
    assert rows_of(text, "Not counted")[2:] == [
        ["d", "stars", "local", "failed", "RunError: the loss is nan"],
        ["f", "unknown", "–", "unreadable", "metrics.json is empty"],
    ]


def test_where_all_counts_nothing_is_said_of_what_does_not() -> None:
    assert "Not counted" not in markdown("t", [], boards(RUNS[:2], falls), RUNS[:2])


def test_nothing_that_a_run_says_is_markdown_or_html() -> None:
    reason = "a|b\n<img src=x onerror=y> `c` *d* [e](f) &amp; \\g"
    run = a_run("x|y", metrics={}, status="failed", why=reason)
    text = markdown("t", [], boards([run], falls), [run])
    line = text.splitlines()[-1]
    assert "<" not in line
    assert line.replace("\\|", "").count("|") == 6
    assert "a\\|b &lt;img src=x onerror=y> \\`c\\` \\*d\\* \\[e](f) &amp;amp; \\\\g" in line


def test_csv_has_a_line_for_each_run_beside_the_numbers_of_its_group() -> None:
    lines = list(csv.DictReader(io.StringIO(runs_table(boards(RUNS, falls), RUNS).csv())))
    assert [line["folder"] for line in lines] == ["b", "a", "c", "e", "d", "f"]
    first = lines[0]
    assert (first["rank"], first["model"], first["seed"], first["metric"], first["value"]) == (
        *("1", "tiny", "2", METRIC, "0.75"),
    )
    assert (float(first["group_mean"]), first["group_seeds"], first["group_runs"]) == (0.5, "2", "2")
    assert float(first["group_sd"]) == pytest.approx(0.353553, rel=1e-4)
    assert [line["best_of_group"] for line in lines] == ["true", "false", "true", "true", "false", "false"]
    assert [line["generated_sample"] for line in lines] == ["false", "false", "false", "true", "false", "false"]
    assert [line["rank"] for line in lines] == ["1", "1", "2", "1", "", ""]
    assert (lines[1]["compute_flops"], lines[1]["compute_from"]) == ("7.0", "counted by the run")
    assert lines[2]["test/accuracy"] == "0.0625"
    assert (lines[2]["group_sd"], lines[3]["data_source"]) == ("", "sample")
    assert (lines[4]["status"], lines[4]["reason"], lines[4]["value"]) == ("failed", "RunError: the loss is nan", "")
    assert (lines[5]["task"], lines[5]["status"], lines[5]["reason"]) == ("", "unreadable", "metrics.json is empty")


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
    runs = [a_run("r", -0.5, keys={"model": text, text: -1e-05}) for text in formulas]
    written = runs_table(boards(runs, falls), runs).csv()
    assert "\r" not in written
    lines = list(csv.DictReader(io.StringIO(written, newline="")))
    assert {line["model"] for line in lines} == set(formulas.values())
    assert {line["value"] for line in lines} == {"-0.5"}
    for line in lines:
        assert set(formulas.values()) <= line.keys()
        assert line[line["model"]] == "-1e-05"


def test_every_cell_has_its_header() -> None:
    for group_by in (None, ["dropout"], []):
        for board in boards(RUNS, falls, group_by=group_by):
            for group in board.groups:
                assert len(cells(group, board)) == len(headers(board))


@pytest.mark.parametrize(
    ("spread", "text"),
    [
        (None, "–"),
        (Spread(0.47512, None), "0.4751"),
        (Spread(0.47512, 0.00126, 0.00312), "0.4751 ± 0.0031"),
        (Spread(2, 0, 0), "2 ± 0"),
    ],
)
def test_a_mean_has_half_of_its_interval_where_there_is_one(spread: Spread | None, text: str) -> None:
    assert spread_text(spread) == text


def test_numbers_and_times_are_short() -> None:
    assert [number(value) for value in (0.123456, 12345.6, 1e-7)] == ["0.1235", "12,346", "1e-07"]
    assert [duration(value) for value in (None, 3.21, 119, 121, 7201)] == ["–", "3.2 s", "119.0 s", "2.0 min", "2.0 h"]


def test_data_is_named_and_the_sample_marked() -> None:
    assert data_of([a_run("a"), a_run("b", source="hub"), a_run("c", source=None)]) == "hub, local"
    assert data_of([a_run("a", source="sample")]) == "GENERATED SAMPLE"
    assert data_of([]) == "–"
