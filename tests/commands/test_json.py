"""`--json`: one shape for each command on standard output, and nothing else there."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from firstlight.classifier import baseline
from run_folders import a_record, fill, make_run
from tests_support import Scripts


def answered(scripts: Scripts, *arguments: str) -> Any:
    """Return what a command writes to standard output, which is valid JSON without NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(scripts.succeed(*arguments, "--json").stdout, parse_constant=refuse)


@pytest.fixture
def run(trained, scripts: Scripts) -> Path:
    return Path(shutil.copytree(trained("stars"), scripts.folder / "logs/stars/runs/one"))


def test_predict_writes_an_object_for_each_text(run: Path, scripts: Scripts) -> None:
    texts = ["It works.", "caf\u00e9 \x1b[31m \u202e", ""]
    done = scripts.succeed("predict", str(run), "--json", "--text", *texts)
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["text"] for each in objects] == texts
    assert done.stdout.isascii()
    assert list(objects[0])[:3] == ["text", "label", "probability_1 star"]
    assert sum(objects[0][name] for name in list(objects[0])[2:]) == pytest.approx(1)
    (scripts.folder / "rows.csv").write_text("id,text\n7,It works.\n")
    (row,) = scripts.succeed("predict", str(run), "--json", "--input", "rows.csv").stdout.splitlines()
    assert [json.loads(row)[name] for name in ("id", "text", "label")] == ["7", texts[0], objects[0]["label"]]
    assert "--output" in scripts.refuse("predict", str(run), "--json", "--input", "rows.csv", "--output", "new.csv")


def test_evaluate_writes_its_record(run: Path, scripts: Scripts) -> None:
    found = answered(scripts, "evaluate", str(run), "--split", "validation")
    record = json.loads((Path(found["folder"]) / "metrics.json").read_text())
    assert found.items() >= record.items()
    assert [row["class"][0] for row in found["per_class"]] == list("12345")


def test_baseline_writes_its_record(scripts: Scripts, reviews_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "REGULARIZATION", (1.0,))  # one fit is enough
    found = answered(scripts, "baseline", "--task", "stars", "--data.path", str(reviews_folder))
    record = json.loads((scripts.folder / found["folder"] / "metrics.json").read_text())
    assert found == {"folder": found["folder"], **record}


def test_report_writes_its_groups_and_the_rows_of_report_csv(tmp_path: Path) -> None:
    fill(tmp_path / "logs")
    found = answered(Scripts(tmp_path), "report", "logs")
    board = next(each for each in found["boards"] if each["name"] == "stars")
    best = board["groups"][board["reference"] - 1]
    assert (board["metric"], board["lower_is_better"]) == ("val/accuracy", False)
    assert best["keys"] == {"model": "small", "dropout": 0}
    assert (best["group_mean"], best["group_seeds"], len(best["runs"])) == (pytest.approx(0.53), 2, 2)
    with (tmp_path / "logs" / "report.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [list(row) for row in found["runs"]] == [list(row) for row in rows]
    assert {row["folder"] for row in found["runs"]} == {row["folder"] for row in rows}


def test_runs_writes_the_record_of_each_run_and_null_for_nan(tmp_path: Path) -> None:
    metrics = {"val/accuracy": 0.5, "val/loss": float("nan")}
    make_run(tmp_path / "logs", "one", metrics=metrics, tags=["first"])
    (make_run(tmp_path / "logs", "two") / "metrics.json").write_text("{")
    found = {Path(each["folder"]).name: each for each in answered(Scripts(tmp_path), "runs")}
    assert found["one"].items() >= (a_record(metrics=metrics | {"val/loss": None}, tags=["first"])).items()
    assert found["one"]["size"] > 0
    assert (found["two"]["status"], found["two"]["task"], found["two"]["metrics"]) == ("unreadable", None, {})
    assert answered(Scripts(tmp_path), "runs", "--where", "seed=7") == []
    chosen = answered(Scripts(tmp_path), "runs", "--where", "status=finished", "--columns", "folder", "val/loss")
    assert chosen == [{"folder": "logs/one", "val/loss": None}]
