"""Tests of `python src/report.py`: its files, its output, its errors, and the page in a real browser."""

import csv
import json
import math
import re
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from browser import Opened, open_file
from firstlight.files.rows import write_rows
from firstlight.runs.predictions import Predictions, write_predictions
from run_folders import NASTY, a_history, fill, make_run, write_confusion
from tests_support import ROOT, Done, Scripts, imported_by

METRIC = "val/accuracy"
FILES = ("report.html", "report.md", "report.csv")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of `fill` with its report."""
    home = tmp_path_factory.mktemp("home")
    fill(home / "logs")
    done = report(home, "logs")
    (home / "stdout").write_text(done.stdout)
    (home / "stderr").write_text(done.stderr)
    return home / "logs"


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "report.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def data_of(folder: Path) -> dict[str, Any]:
    """Return the JSON in the page."""
    html = (folder / "report.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, flags=re.DOTALL)
    return json.loads(found[1])


def report(home: Path, *arguments: str) -> Done:
    """Make a report, which succeeds."""
    return Scripts(home).succeed("report", *arguments)


def test_every_run_is_in_every_file(logs: Path) -> None:
    rows = rows_of(logs)
    assert len(rows) == 12
    assert {row["folder"] for row in rows} == {
        str(path.parent.relative_to(logs)) for path in logs.glob("**/metrics.json")
    }
    written = [run["folder"] for board in data_of(logs)["boards"] for run in board["runs"]]
    assert {*written, "stars/runs/now"} == {row["folder"] for row in rows}
    assert (logs / "report.html").stat().st_size < 2_500_000
    best = [(row["rank"], row["model"]) for row in rows if row["task"] == "stars" and row["best_of_group"] == "true"]
    assert best == [("1", "small"), ("2", "small"), ("3", "tfidf"), ("4", "tiny"), ("5", "tiny")]
    markdown = (logs / "report.md").read_text(encoding="utf-8")
    assert "## names (GENERATED SAMPLE): val/loss (lower is better)" in markdown
    assert "## stars: val/accuracy (higher is better)" in markdown
    assert "10 of 12 runs are counted, 2 are not" in markdown
    assert "| 1 | 0.53 ± 0.13 | the reference | 0.54 | small | 0 | local | 2 | 2 | 0.43 ± 0.13 | 20,011 |" in markdown
    assert "| tiny | 0.1 | local | 0 | 0 + 1 not counted |" in markdown


def test_what_is_not_counted_is_told_with_its_reason_in_every_file_and_on_stderr(logs: Path) -> None:
    stderr = (logs.parent / "stderr").read_text()
    assert f"not counted: logs/sweeps/grid/seed-3 (failed): {NASTY}" in stderr
    assert "not counted: logs/stars/runs/now (unreadable): metrics.json is cut short" in stderr
    left = {run["folder"]: run["why"] for run in data_of(logs)["left"]}
    assert left.keys() == {"sweeps/grid/seed-3", "stars/runs/now"}
    assert left["sweeps/grid/seed-3"] == NASTY
    assert left["stars/runs/now"].startswith("metrics.json is cut short")
    assert {row["folder"]: row["reason"] for row in rows_of(logs) if row["reason"]} == left
    assert "metrics.json is cut short" in (logs / "report.md").read_text(encoding="utf-8")


def test_the_terminal_has_the_best_groups_and_where_the_files_are(logs: Path) -> None:
    stdout = (logs.parent / "stdout").read_text()
    assert stdout.splitlines()[-1] == "The report is logs/report.html"
    for part in ("stars: val/accuracy (higher is better)", "small · dropout 0", "0.53 ± 0.13", "logs/report.html"):
        assert part in stdout
    assert stdout.index("small · dropout 0 ") < stdout.rindex("tfidf")
    assert "names (GENERATED SAMPLE)" in stdout
    assert "the numbers say nothing about real data" in stdout


def test_group_by_and_metric_choose_what_is_grouped_and_what_ranks(tmp_path: Path) -> None:
    fill(tmp_path / "logs")
    report(tmp_path, "logs", "--group-by", "model", "--metric", "val/loss")
    best = [row for row in rows_of(tmp_path / "logs") if row["best_of_group"] == "true" and row["task"] == "stars"]
    sizes = [(row["model"], row["group_runs"], row["group_seeds"]) for row in best]
    assert sizes == [("small", "4", "2"), ("tfidf", "1", "1"), ("tiny", "4", "2")]
    assert float(best[0]["group_mean"]) == pytest.approx(1.2)
    assert {row["metric"] for row in best} == {"val/loss"}
    markdown = (tmp_path / "logs" / "report.md").read_text(encoding="utf-8")
    assert "Grouped by model." in markdown
    assert "## stars: val/loss (lower is better)" in markdown


def test_a_baseline_is_named_by_its_values_and_every_other_group_has_a_verdict(tmp_path: Path) -> None:
    fill(tmp_path / "logs")
    done = report(tmp_path, "logs", "--baseline", "model=tiny", "dropout=0.2")
    best = {(row["model"], row["dropout"]): row for row in rows_of(tmp_path / "logs") if row["best_of_group"] == "true"}
    assert best["small", "0"]["verdict"] == "better"
    assert best["tiny", "0"]["verdict"] == "worse"
    assert (best["tiny", "0.2"]["verdict"], float(best["small", "0"]["verdict_p"])) == ("", 0.0)
    assert "against tiny · dropout 0.2" in (tmp_path / "logs" / "report.md").read_text(encoding="utf-8")
    assert "against rank 4" in done.stdout
    assert "runs without predictions/validation.npz, whose texts are not compared: 8." in done.stderr


def test_the_predictions_of_an_evaluation_replace_those_that_an_earlier_version_did_not_write(tmp_path: Path) -> None:
    for model, predicted in (("tiny", [0] * 18), ("small", [0, 1, 2] * 6)):
        for seed in (1, 2):
            accuracy = (1.0 if model == "small" else 0.33) - 0.01 * seed
            run = make_run(tmp_path / "logs", f"{model}-{seed}", model=model, seed=seed, metrics={METRIC: accuracy})
            with_predictions(run, predicted)
            if model == "tiny":
                (run / "evaluate" / "validation").mkdir(parents=True)
                (run / "predictions" / "validation.npz").rename(run / "evaluate" / "validation" / "predictions.npz")
    assert report(tmp_path, "logs").stderr == ""
    assert "by seeds only" not in (tmp_path / "logs" / "report.md").read_text(encoding="utf-8")


def test_a_damaged_file_of_predictions_is_reported_and_the_seeds_decide(tmp_path: Path) -> None:
    damaged = fill(tmp_path / "logs") / "sweeps" / "grid" / "dropout-0_model-tiny_seed-1" / "predictions"
    damaged.mkdir()
    (damaged / "validation.npz").write_bytes(b"PK\x03\x04")
    where = "not compared by texts: logs/sweeps/grid/dropout-0_model-tiny_seed-1: predictions/validation.npz"
    assert f"{where} cannot be read" in report(tmp_path, "logs").stderr


def with_predictions(run: Path, predicted: list[int]) -> str:
    """Write predictions of 18 texts of three classes into a run's folder, and return its name for --compare."""
    guesses, targets = np.array(predicted), np.arange(18) % 3
    hits = (guesses == targets).astype(np.int64)
    losses = np.where(hits, 0.25, 2.0).astype(np.float32)
    ones = np.ones_like(targets)
    predictions = Predictions(np.arange(18), losses, ones, hits, "k", targets=targets, predicted=guesses)
    write_predictions(run / "predictions" / "validation.npz", predictions)
    return str(run.relative_to(run.parents[1]))


def test_two_runs_are_compared_on_the_terminal_and_on_a_page(window: Opened, tmp_path: Path) -> None:
    data = {"source": "local", "fingerprint": "f", "classes": ["bad", "so-so", "good"]}
    a = make_run(tmp_path / "logs", "a", metrics={METRIC: 1 / 3}, data=data)
    b = make_run(tmp_path / "logs", "b", model="small", metrics={METRIC: 1.0}, data=data, lines=a_history(7, 0.5))
    names = [with_predictions(a, [0] * 18), with_predictions(b, [0, 1, 2] * 6)]
    page, done = reported(window, tmp_path, "logs", "--compare", *names)
    assert done.stdout.startswith("A  logs/a\nB  logs/b\nB is better than A by 66.7 ± ")
    assert "12 of 18 predictions changed." in done.stdout
    assert re.search(r"model +│ +tiny │ +small", done.stdout)
    assert done.stdout.splitlines()[-1] == "The page is logs/compare.html"
    assert done.stderr == ""
    html = (tmp_path / "logs" / "compare.html").read_text(encoding="utf-8")
    assert "<td>so-so</td>" + "".join(f'<td class="number">{each}</td>' for each in ("6", "0.0%", "100.0%")) in html
    assert "<p>B is better than A by 66.7 ± " in html
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["a", "b", "compare.html"]
    assert {line["name"] for line in traces(page, "curves-steps")} == {"tiny · run A", "small · run B"}


A = "logs/sweeps/grid/dropout-0_model-tiny_seed-1"
MISTAKES = {
    "logs --baseline model=medium": "--baseline model=medium: no group has these values; there are small · dropout 0;",
    "logs --baseline tiny": "--baseline tiny: stars has 2 such groups: tiny · dropout 0.2; tiny · dropout 0",
    "logs --metric val/acuracy": "--metric val/acuracy must be one of val/accuracy, val/loss",
    "logs --metric test/accuracy": "--metric test/accuracy must be one of val/accuracy, val/loss",
    "logs/sweeps/grid/seed-3 --metric val/loss": "of the finished runs, of which there are none",
    "logs --group-by model droput": "--group-by droput must be one of context_length, dropout,",
    "nowhere": "nowhere: the folder does not exist",
    "a_file": "a_file: the folder does not exist",
    "empty": "empty: the folder has no runs; train a run first",
    f"logs --compare {A} logs/names/runs/one": "the tasks are stars and names; name two runs of one task",
    f"logs --compare {A} logs/sweeps/grid/seed-3": "--compare logs/sweeps/grid/seed-3: the run is failed (",
    f"logs --compare {A} nowhere": "nowhere: the run folder does not exist",
    f"logs --compare {A} {A} --metric val/f1": "--metric val/f1: not measured by both runs; there are test/accuracy,",
    f"logs --compare {A} {A} --group-by model": "--group-by does not apply to --compare",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_is_one_line_exit_code_2_and_nothing_is_written(arguments: str, logs: Path) -> None:
    home = logs.parent
    (home / "empty" / "deep").mkdir(parents=True, exist_ok=True)
    (home / "a_file").write_text("")
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    done = Scripts(home).run("report", *arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert MISTAKES[arguments] in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_half_a_character_in_a_record_does_not_stop_the_report_which_replaces_an_earlier_one(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a", status="failed", metrics={})
    record = json.loads((path / "metrics.json").read_text()) | {"reason": "it \ud83d broke"}
    (path / "metrics.json").write_text(json.dumps(record))
    (tmp_path / "report.csv").write_text("before")
    report(tmp_path, ".")
    assert [row["reason"] for row in rows_of(tmp_path)] == ["it ? broke"]


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    make_run(tmp_path, "a")
    script = str(ROOT / "src" / "report.py")
    run = f"runpy.run_path({script!r}, run_name='__main__')"
    imported = imported_by(f"import runpy, sys; sys.argv = ['report.py', {str(tmp_path)!r}]; {run}")
    assert not imported & {"torch", "lightning", "matplotlib", "pandas", "numpy", "hydra", "itables"}


def test_a_real_sweep_and_a_failed_job_are_reported(scripts: Scripts, drawn_training: list[str]) -> None:
    grid = ["-m", *drawn_training, "optimizer.lr=1e-3,1e30", "seed=1,2", "trainer.max_steps=6", "logger=none"]
    assert scripts.run("train", *grid, "trainer.val_check_interval=3").returncode == 1
    report(scripts.folder, "logs")
    rows = rows_of(scripts.folder / "logs")
    assert [(row["rank"], row["status"], row["group_seeds"], row["optimizer.lr"]) for row in rows] == [
        *[("1", "finished", "2", "0.001")] * 2,
        *[("", "failed", "", "1e+30")] * 2,
    ]
    assert all("loss" in row["reason"] for row in rows[2:])
    for row in rows[:2]:
        record = json.loads((scripts.folder / "logs" / row["folder"] / "metrics.json").read_text())
        assert float(row["value"]) == record["metrics"][METRIC]
    (board,) = data_of(scripts.folder / "logs")["boards"]
    assert board["swept"] == []  # the rate of a failed run is no axis
    assert {name for curve in board["runs"][0]["curves"] for name in curve["values"]} >= {METRIC, "train/loss"}
    assert board["runs"][0]["confusion"] is not None


@pytest.fixture(scope="module")
def opened(browser: Any, logs: Path) -> Opened:
    found = open_file(browser, logs / "report.html")
    found.page.wait_for_selector("body[data-drawn]")
    return found


@pytest.fixture
def stars(opened: Opened) -> Any:
    """Return the page with the tab of stars open and without filters."""
    opened.page.locator("#tabs button", has_text="names").click()
    opened.page.locator("#tabs button", has_text="stars").click()
    return opened.page


def reported(window: Opened, home: Path, *arguments: str) -> tuple[Any, Done]:
    """Make a report, and open its page, which must show no error and request nothing. Return both."""
    done = report(home, *arguments)
    window.visit((home / done.stdout.splitlines()[-1].split()[-1]).as_uri())
    window.page.wait_for_selector("#left table, body[data-drawn]")
    assert (window.errors, window.foreign) == ([], [])
    return window.page, done


def texts(page: Any, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def place_of(page: Any, table: str, header: str) -> int:
    """Return the number of a column of a table, from 1."""
    return texts(page, f"#{table}_wrapper .dt-scroll-head thead tr:first-child > *").index(header) + 1


def column(page: Any, table: str, header: str) -> list[str]:
    """Return the cells of a column of a table, in the displayed order."""
    return texts(page, f"#{table} tbody tr td:nth-child({place_of(page, table, header)})")


def traces(page: Any, plot: str) -> list[dict[str, Any]]:
    """Return the traces of a plot."""
    return page.evaluate(f"document.getElementById('{plot}').data ?? []")


def redrawn(page: Any, change: Any) -> None:
    """Make a change that redraws the plots, and wait for the redraw."""
    before = page.evaluate("document.body.dataset.drawn")
    change()
    page.wait_for_function(f"document.body.dataset.drawn !== '{before}'")


def sort_by(page: Any, table: str, header: str) -> None:
    rows = f"document.querySelector('#{table} tbody').innerText"
    before = page.evaluate(rows)
    page.locator(f"#{table}_wrapper .dt-scroll-head thead tr:first-child > *", has_text=header).first.click()
    page.wait_for_function(f"before => {rows} !== before", arg=before)  # the table is sorted after the click


def filter_field(page: Any, header: str) -> Any:
    fields = "#runs_wrapper .dt-scroll-head thead tr:nth-child(2)"
    return page.locator(f"{fields} > :nth-child({place_of(page, 'runs', header)}) input")


def test_the_page_opens_without_an_error_or_a_request(opened: Opened) -> None:
    assert opened.errors == []
    assert opened.foreign == []
    assert len([address for address in opened.requests if address.startswith("file:")]) == 1
    assert opened.page.title() == "logs: 12 runs"
    assert texts(opened.page, "#tabs button") == ["stars (10)", "names (GENERATED SAMPLE) (1)"]


def test_the_page_opens_with_its_findings_and_what_is_compared(stars: Any) -> None:
    header = stars.locator("#intro").inner_text()
    assert "10 of 12 runs are counted, 2 are not" in header
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d", header)
    assert "0.53 ± 0.13" in texts(stars, "#overview tbody tr")[0]
    stars_finding, names_finding = texts(stars, "#findings li")
    assert stars_finding.startswith("stars: small is better than tiny by 16.0 ± 0.0 points, with 20 times")
    assert names_finding == "names (GENERATED SAMPLE): val/loss is 2.25 (one seed)."
    assert stars.evaluate("document.querySelector('#findings').getBoundingClientRect().top") < 200
    assert column(stars, "groups", "against small · dropout 0")[:2] == [
        *("the reference", "worse by 6.0 ± 0.0 points (by seeds only)")
    ]
    (means,) = traces(stars, "means")
    assert (means["x"][0], means["error_x"]["array"][0]) == (pytest.approx(0.53), pytest.approx(0.127, abs=0.001))
    (parallel,) = traces(stars, "parallel")
    assert [dimension["label"] for dimension in parallel["dimensions"]] == ["model", "dropout", "seed", METRIC]
    assert parallel["dimensions"][0]["ticktext"] == ["small", "tfidf", "tiny"]
    assert len(parallel["dimensions"][-1]["values"]) == 9


def test_sections_without_content_are_left_out(opened: Opened) -> None:
    page = opened.page

    def shown() -> set[str]:
        plots = ("means", "curves-steps", "parallel", "parameters", "heat", "confusion", "texts", "overview", "left")
        assert not page.locator("section:has(#numbers)").is_visible()  # no key has three numbers
        return {plot for plot in plots if page.locator(f"section:has(#{plot})").is_visible()}

    page.locator("#tabs button", has_text="names").click()
    assert shown() == {"curves-steps", "texts", "overview", "left"}
    page.locator("#tabs button", has_text="stars").click()
    assert shown() == {*("means", "curves-steps", "parallel", "parameters", "heat", "confusion", "overview", "left")}


def test_the_tables_are_ranked_and_sort_by_numbers_at_a_click(stars: Any) -> None:
    assert column(stars, "groups", "rank") == ["1", "2", "3", "4", "5", "–"]
    assert column(stars, "groups", METRIC)[0] == "0.53 ± 0.13"
    assert column(stars, "runs", METRIC)[:3] == ["0.54", "0.52", "0.48"]
    for table in ("groups", "runs"):
        for expected in ("503", "20,011"):
            sort_by(stars, table, "parameters")
            assert next(count for count in column(stars, table, "parameters") if count != "–") == expected


def test_a_filter_leaves_the_runs_that_pass_in_the_table_and_in_every_plot(stars: Any) -> None:
    assert len(traces(stars, "curves-steps")) == 9
    redrawn(stars, lambda: filter_field(stars, "model").fill("small"))
    assert column(stars, "runs", "model") == ["small"] * 4
    assert "all 4 filtered runs of 10" in stars.locator("#drawn").inner_text()
    assert len(traces(stars, "curves-steps")) == len(traces(stars, "curves-seconds")) == 4
    points = [count for trace in traces(stars, "parameters") if trace["mode"] == "markers" for count in trace["x"]]
    assert points == [20_011] * 4
    assert len(traces(stars, "parallel")[0]["line"]["color"]) == 4
    redrawn(stars, lambda: filter_field(stars, "dropout").fill("0.2"))
    assert column(stars, "runs", METRIC) == ["0.48", "0.46"]
    redrawn(stars, lambda: filter_field(stars, "dropout").fill(""))
    redrawn(stars, lambda: filter_field(stars, "model").fill(""))
    redrawn(stars, lambda: stars.locator("#runs_wrapper input[type=search]").first.fill("tfidf"))
    assert column(stars, "runs", "model") == ["tfidf"]
    redrawn(stars, lambda: filter_field(stars, "model").fill("nothing"))
    assert "no runs match the filters" in stars.locator("#runs").inner_text()
    assert "The filtered runs have no curve" in stars.locator("#curves-steps").inner_text()
    assert traces(stars, "heat") == []


def test_curves_sizes_and_compute_are_drawn_for_the_chosen_metric(stars: Any) -> None:
    over_steps, over_seconds = traces(stars, "curves-steps")[0], traces(stars, "curves-seconds")[0]
    assert over_steps["x"] == [5 * index + 4 for index in range(11)]
    assert over_seconds["x"] == pytest.approx([0.5 * index + 0.25 for index in range(11)], abs=0.06)
    assert over_steps["y"][1] == pytest.approx(0.75)
    for plot, front in {"parameters": [503, 20_011], "compute": [2e9, 3e9, 6e10, 9e10]}.items():
        layout = stars.evaluate(f"document.getElementById('{plot}').layout")
        assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "log")
        (line,) = (trace for trace in traces(stars, plot) if trace.get("meta") == "front")
        assert line["x"] == front
        assert line["y"] == sorted(line["y"])
        assert line["y"][-1] == pytest.approx(0.54)
    assert "counted by the run" in stars.locator("#compute").inner_text()
    redrawn(stars, lambda: stars.locator("#metric").select_option("val/loss"))
    (line,) = (trace for trace in traces(stars, "parameters") if trace.get("meta") == "front")
    assert line["y"] == sorted(line["y"], reverse=True)
    assert line["x"] == [503, 20_011]
    assert traces(stars, "curves-steps")[0]["y"][0] == pytest.approx(1.1 * 1.53)


def test_the_heat_map_has_the_means_of_any_two_keys(stars: Any) -> None:
    stars.locator("#heat-x").select_option("model")
    redrawn(stars, lambda: stars.locator("#heat-y").select_option("dropout"))
    (trace,) = traces(stars, "heat")
    layout = stars.evaluate("document.getElementById('heat').layout")
    assert (layout["xaxis"]["ticktext"], layout["yaxis"]["ticktext"]) == (
        *(["small", "tfidf", "tiny"], ["0", "0.2", "–"]),
    )
    expected = [[0.53, None, 0.31], [0.47, None, 0.37], [None, 0.43, None]]
    assert [[value and round(value, 6) for value in row] for row in trace["z"]] == expected
    redrawn(stars, lambda: stars.locator("#heat-y").select_option("model"))
    assert "Choose two different keys" in stars.locator("#heat").inner_text()


def test_the_metric_is_drawn_against_a_learning_rate_with_a_line_for_each_width(window: Opened, tmp_path: Path) -> None:
    for dim, kind, rate, seed in product((32, 128), ("standard", "mup"), (0.001, 0.01, 0.1), (1, 2)):
        best = 0.01 if kind == "mup" or dim == 32 else 0.001
        loss = 2.2 - dim / 1000 + abs(math.log10(rate / best)) + 0.01 * seed
        keys = (f"model.dim={dim}", f"model.parametrization={kind}", f"optimizer.lr={rate}")
        name = "_".join((*keys, str(seed)))
        make_run(tmp_path, name, *keys, seed=seed, optimized_metric="val/loss", metrics={"val/loss": loss})
    page, _ = reported(window, tmp_path, ".")
    chosen = [page.locator(f"#number-{place}").input_value() for place in ("x", "lines", "panels")]
    assert chosen == ["optimizer.lr", "model.dim", "model.parametrization"]
    lines = {(trace["xaxis"], trace["name"]): trace for trace in traces(page, "numbers")}
    assert lines.keys() == {(axis, f"dim {dim}") for axis in ("x", "x2") for dim in (32, 128)}  # mup, then standard
    assert lines["x2", "dim 128"]["y"] == [pytest.approx(2.087 + each) for each in (0, 1, 2)]
    best = {line: trace["x"][trace["marker"]["size"].index(12)] for line, trace in lines.items()}
    assert best == {("x", "dim 32"): 0.01, ("x", "dim 128"): 0.01, ("x2", "dim 32"): 0.01, ("x2", "dim 128"): 0.001}
    assert page.evaluate("document.getElementById('numbers').layout.xaxis2.type") == "log"


def test_confusion_matrices_are_those_of_the_best_or_of_the_selected_runs(stars: Any) -> None:
    assert "best 4 filtered runs" in stars.locator("#confusion-note").inner_text()
    matrix = stars.evaluate("document.querySelector('#confusion .plot').data[0]")
    assert matrix["z"][1] == pytest.approx([2 / 9, 3 / 9, 4 / 9])
    assert matrix["text"][2] == ["0<br>0%", "7<br>39%", "11<br>61%"]
    redrawn(stars, lambda: stars.locator("#runs tbody tr", has_text="dropout-0_model-tiny_seed-1").first.click())
    assert stars.locator("#confusion .plot").count() == 1
    assert "#9 · tiny · dropout 0 · seed 1" in stars.locator("#confusion").inner_text()


def test_a_click_on_a_cell_of_a_confusion_matrix_shows_its_texts_and_two_classes_have_an_auc(window, tmp_path) -> None:
    run = make_run(tmp_path, "a")
    write_confusion(run, [[2, 1], [0, 1]], ["bad", "good"])
    (run / "reviews").mkdir()
    write_rows(
        run / "reviews" / "validation.csv",
        [
            {"text": text, "stars": label, "true": true, "prediction": predicted, "p(bad)": 1 - share, "p(good)": share}
            for text, label, true, predicted, share in (
                ("It broke.", "1 star", "bad", "bad", 0.01),
                (NASTY, "2 stars", "bad", "good", 0.875),
                ("It works.", "5 stars", "good", "good", 0.9),
            )
        ],
    )
    targets, predicted, losses = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 2.5, 0.3])
    hits = (targets == predicted).astype(np.int64)
    saved = Predictions(np.arange(4), losses.astype(np.float32), np.ones(4, np.int64), hits, "k", targets, predicted)
    write_predictions(run / "predictions" / "validation.npz", saved)
    damaged = make_run(tmp_path, "b", metrics={METRIC: 0.1})
    write_confusion(damaged, [[1, 1], [1, 1]], ["bad", "good"])
    (damaged / "reviews").mkdir()
    (damaged / "reviews" / "validation.csv").write_text("text,true,prediction,p(good)\na,good,good,nan\n")
    page, _ = reported(window, tmp_path, ".")
    cell = page.locator("#cell")

    def click(matrix: int, row: int, column: int) -> None:
        label = page.locator("#confusion .hovertext")  # Plotly's click has the cell of its last hover, which is later
        box = page.locator("#confusion .nsewdrag").nth(matrix).bounding_box()
        while label.count():  # on a busy machine, Plotly may miss that the pointer has left a cell
            page.mouse.move(box["x"] + 3, box["y"] + 3)
            page.mouse.move(0, 0)
            page.wait_for_timeout(100)
        page.mouse.move(box["x"] + box["width"] * (0.25 + column / 2), box["y"] + box["height"] * (0.25 + row / 2))
        label.wait_for()
        page.mouse.down()
        page.mouse.up()

    page.locator("#confusion").scroll_into_view_if_needed()
    click(0, 0, 1)
    assert "true bad, predicted good" in cell.inner_text()
    assert cell.locator("td").all_inner_texts() == ["2 stars", "good", "0.875", NASTY]
    click(0, 0, 0)
    assert "2 texts of the validation split; the 1 most confident ones are shown." in cell.inner_text()
    click(1, 0, 0)
    assert "if their training wrote reviews/validation.csv" in cell.inner_text()
    redrawn(page, page.locator("#runs tbody tr").first.click)
    assert "AUC of the validation split\t0.6667" in texts(page, "#details tr")
    assert cell.inner_text() == ""


def test_a_click_on_a_run_shows_its_settings_results_files_and_command(stars: Any) -> None:
    assert not stars.locator("#details").is_visible()
    assert not stars.locator("#runs_wrapper .dt-paging").is_visible(), "ten rows fit on a page"
    row = stars.locator("#runs tbody tr", has_text="dropout-0_model-small_seed-2")
    redrawn(stars, row.click)
    details = stars.locator("#details")
    rows = [text.split("\t") for text in texts(stars, "#details tr")]
    assert ["optimizer.lr", "0.001"] in rows
    assert ["val/loss", "1.16"] in rows
    assert ["so-so", "9", "0.2727", "0.3333", "0.3000"] in rows  # 3 of 11 predicted, and of 9 true
    assert "model=small dropout=0 seed=2 optimizer.lr=1e-3" in details.locator("pre").inner_text()
    link = urlsplit(details.locator("a", has_text="metrics.json").evaluate("each => each.href"))
    assert json.loads(Path(unquote(link.path)).read_text())["seed"] == 2
    assert stars.evaluate("document.querySelector('#details .plot').data.map(each => each.name)") == [METRIC]
    redrawn(stars, row.click)
    assert not details.is_visible()


def test_generated_data_is_marked_in_every_view(opened: Opened) -> None:
    page = opened.page
    page.locator("#tabs button", has_text="names").click()
    assert page.locator("#groups .badge").count() == 1
    assert page.locator("#runs .badge").count() == 1
    assert page.locator("#texts .badge").count() == 1
    assert "[generated sample]" in page.locator("#texts figcaption").inner_text()
    for plot in ("curves-steps", "curves-seconds", "parallel", "parameters", "compute", "heat"):
        found = page.locator(f"#{plot}")
        assert "GENERATED SAMPLE" in found.inner_text() or not traces(page, plot)
    assert traces(page, "curves-steps")[0]["text"].startswith("[generated sample]")
    assert page.locator("#tabs [aria-selected=true]").inner_text() == "names (GENERATED SAMPLE) (1)"


def test_what_a_run_says_is_shown_as_text(opened: Opened) -> None:
    page = opened.page
    page.locator("#tabs button", has_text="names").click()
    assert page.locator("#texts pre").inner_text() == f"né\n\n{NASTY}"
    assert NASTY in page.locator("#left").inner_text()
    page.locator("#tabs button", has_text="stars").click()
    assert NASTY in page.locator("#runs").inner_text()
    assert page.locator("main b, main img").count() == 0
    assert page.title() == "logs: 12 runs"
    assert opened.errors == []


def test_names_of_folders_keys_and_classes_are_text_too(window: Opened, tmp_path: Path) -> None:
    tag = "<img src=x onerror=alert(1)>"
    for seed, value in ((1, "<b>x<b>"), (2, "$&'\"")):
        path = make_run(tmp_path, f"{tag}-{seed}", f"+a.{tag}={value}", seed=seed, model=value, task=f"<i>{tag}")
        write_confusion(path, [[1, 2], [3, 4]], ["<u>c</u>", "&amp;"])
    page, _ = reported(window, tmp_path, ".")
    assert page.locator("main img, main b, main i, main u").count() == 0
    shown = {"runs": f"{tag}-1", "confusion": "<u>c</u>", "curves-steps": "<b>x<b>", "heat": "<b>x<b>"}
    assert [place for place, text in shown.items() if text not in page.locator(f"#{place}").inner_text()] == []


def test_of_many_runs_the_best_are_drawn_and_the_page_says_so(window: Opened, tmp_path: Path) -> None:
    for seed in range(71):
        make_run(tmp_path, f"seed-{seed}", seed=seed, metrics={METRIC: 0.2 + 0.01 * seed}, lines=a_history(3))
    page, _ = reported(window, tmp_path, ".")
    assert "The plots show the best 60 of the 71 filtered runs." in page.locator("#drawn").inner_text()
    lines = traces(page, "curves-steps")
    assert len(lines) == 60
    assert len(traces(page, "parallel")[0]["line"]["color"]) == 60
    assert not page.locator("#parameters").is_visible(), "all parameters are equal"
    assert not any(line["text"] == "seed 10" for line in lines)
    redrawn(page, lambda: page.locator("#most").select_option("all"))
    assert len(traces(page, "curves-steps")) == 71
    assert len(traces(page, "heat")) == 0  # one key alone, the seed


def test_the_headers_of_wide_tables_are_above_their_cells(window: Opened, tmp_path: Path) -> None:
    for seed, model in ((1, "mine.net.GRUNet"), (2, "mine.net.attention.LongTransformer")):
        keys = [f"model._target_={model}", f"model.num_layers={seed}", f"module.loss._target_=losses.loss_{seed}"]
        keys += [f"optimizer.lr={seed}e-3", f"optimizer.weight_decay={seed}e-2", f"trainer.max_steps={10 * seed}"]
        name = f"{model}_num_layers-{seed}_lr-0.00{seed}_weight_decay-0.0{seed}"
        make_run(tmp_path / "logs", name, *keys, seed=seed, model=f"m{seed}", dropout=0.1 * seed)
    page, _ = reported(window, tmp_path, "logs")
    for table in ("groups", "runs"):
        container = page.locator(".dt-container", has=page.locator(f"#{table}"))
        headers, cells = (
            container.locator(part).evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().x)")
            for part in (".dt-scroll-head tr:first-child > *", ".dt-scroll-body tbody tr:first-child > *")
        )
        assert headers == pytest.approx(cells, abs=1)
    (header,) = page.locator("#runs_wrapper .dt-scroll-head .dt-column-title", has_text=re.compile("^model$")).all()
    assert header.bounding_box()["height"] < 30, "no word is broken"


def test_a_page_without_a_readable_run_says_why(window: Opened, tmp_path: Path) -> None:
    make_run(tmp_path, "a")
    (tmp_path / "a" / "metrics.json").write_text("{")
    page, _ = reported(window, tmp_path, ".")
    assert "cut short or broken" in page.locator("#left").inner_text()
    assert page.locator("#runs").count() == 0


def test_optimized_mode_decides_which_values_are_better(tmp_path: Path) -> None:
    for model, value in (("tiny", 1.0), ("small", 3.0)):
        optimized = {"optimized_metric": "val/energy", "optimized_mode": "min", "metrics": {"val/energy": value}}
        make_run(tmp_path / "logs", model, f"model={model}", **optimized | {"model": model})
    done = report(tmp_path)
    assert "val/energy (lower is better)" in done.stdout
    assert [row["model"] for row in rows_of(tmp_path / "logs")] == ["tiny", "small"]
