"""`firstlight.list_runs`: the table of the report as a DataFrame."""

import csv
import math
from pathlib import Path

import pandas
import pytest
from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype

import firstlight
from run_folders import make_baseline, make_run
from tests_support import Scripts, imported_by


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five runs of two settings, of which one failed; a baseline; a run that cannot be read; another task."""
    folder = tmp_path_factory.mktemp("home") / "logs"
    for model, seed, accuracy in (("tiny", 1, 0.5), ("tiny", 2, 0.25), ("small", 1, 0.75), ("small", 2, 0.625)):
        overrides = (f"model={model}", f"seed={seed}", "optimizer.lr=1e-3", "+model.causal=true")
        metrics = {"val/accuracy": accuracy, "val/loss": 2.0, "test/accuracy": 1}
        make_run(
            folder, f"sweeps/{model}-{seed}", *overrides, model=model, seed=seed, dropout=0, metrics=metrics, tokens=7
        )
    make_run(folder, "sweeps/failed", status="failed", reason="RunError: the loss is nan", metrics={}, steps=None)
    make_baseline(folder, "stars/baseline/then", metrics={"val/accuracy": 0.4375})
    make_run(folder, "names/runs/one", task="names", optimized_metric="val/loss", source="sample")
    (make_run(folder, "stars/runs/now") / "metrics.json").write_text("")
    return folder


def test_the_rows_and_columns_are_those_of_the_report(logs: Path) -> None:
    table = firstlight.list_runs(logs)
    assert Scripts(logs.parent).run("report", "logs").returncode == 0
    with (logs / "report.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(table.columns) == list(rows[0])
    assert len(table) == len(rows) == 8
    for (_, found), written in zip(table.iterrows(), rows, strict=True):
        for name in table.columns:
            assert same(found[name], written[name]) or name == "folder", (name, found[name], written[name])
        assert Path(str(found["folder"])) == logs / written["folder"]


def same(value: object, written: str) -> bool:
    """Whether a cell of the DataFrame says what the CSV says."""
    if pandas.isna(value):
        return written == ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return written != "" and math.isclose(value, float(written))
    return str(value) == written or str(value).lower() == written


def test_numbers_are_numbers_whatever_their_values(logs: Path) -> None:
    table = firstlight.list_runs(logs)
    for name in ("dropout", "value", "group_mean", "group_sd", "test/accuracy", "val/loss", "fit_seconds"):
        assert is_float_dtype(table[name]), name
    for name in ("rank", "seed", "context_length", "parameters", "steps", "tokens", "group_runs"):
        assert is_integer_dtype(table[name]), name
    for name in ("generated_sample", "best_of_group", "model.causal"):
        assert is_bool_dtype(table[name]), name
    assert is_float_dtype(table["optimizer.lr"])
    counted = table[(table["status"] == "finished") & (table["task"] == "stars")]
    assert counted.groupby("model")["value"].mean().to_dict() == {"small": 0.6875, "tfidf": 0.4375, "tiny": 0.375}


def test_a_key_with_words_and_numbers_keeps_both(tmp_path: Path) -> None:
    for index, value in enumerate(("1e-3", "auto", str(2**70))):
        make_run(tmp_path, f"run-{index}", f"optimizer.lr={value}", f"data.max={2**70}")
    table = firstlight.list_runs(tmp_path).sort_values("folder")
    assert table["optimizer.lr"].tolist() == [0.001, "auto", 2**70]
    assert table["data.max"].tolist() == [2**70] * 3


def test_neither_the_import_nor_the_table_needs_torch(logs: Path) -> None:
    heavy = {"torch", "lightning", "pandas", "numpy", "hydra", "matplotlib"}
    assert not imported_by("import firstlight") & heavy
    assert imported_by(f"import firstlight; firstlight.list_runs({str(logs)!r})") & heavy == {"numpy", "pandas"}
    assert {"list_runs", "load"} <= set(firstlight.__all__)
