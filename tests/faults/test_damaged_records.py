"""Readers of damaged records of a run either answer or give a one-line error."""

import csv
import json
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest

from faults.conftest import TASKS, RunOf
from faults.damage import Damage, answered, damages, is_refused, quiet, try_damages
from faults.trials import Trials, number_of
from firstlight.commands.report import ReportOptions, report
from firstlight.files.plain_yaml import read_config
from firstlight.kind.load import load
from firstlight.lab.reports.run_rows import list_runs
from firstlight.runs.history import HistoryLogger
from firstlight.runs.named import find_run
from firstlight.runs.predictions import Predictions, write_predictions
from run_folders import CLASSES, make_run, write_confusion
from tests_support import Scripts, contents

RECORDS = 120  # trials for each reader
REPORTS = 60  # trials of reports, each of which takes 0.1 s
FORMULAS = 60  # trials of reports with formulas
RESUMES = 4  # trials for each file, way to resume and task
READ_BY_A_REPORT = (
    *("metrics.json", "history.jsonl", "config.yaml", ".hydra/hydra.yaml", "confusion_matrix/validation.csv"),
    *("samples/00000010.txt", "predictions/validation.npz"),
)
READ_BY_A_RESUMED_RUN = (
    *("metrics.json", "config.yaml", ".hydra/overrides.yaml", ".hydra/config.yaml", ".hydra/hydra.yaml"),
    "history.jsonl",
)


@pytest.mark.faults("damaged bytes: metrics.json")
def test_a_loaded_run_answers_for_a_damaged_record(trials: Trials, copied: RunOf) -> None:
    run = copied("names")

    def use() -> None:
        loaded = answered(lambda: load(run / "checkpoints" / "best.ckpt"))
        for name in ("record", "metrics"):
            answered(partial(getattr, loaded, name))
        answered(lambda: repr(loaded))
        answered(lambda: load(run))
        for name in ("latest", "best:val/loss"):
            answered(partial(find_run, name, run.parent))

    try_damages(trials, run / "metrics.json", use, RECORDS, "metrics.json", "value")


@pytest.mark.faults("damaged bytes: history.jsonl")
def test_a_damaged_history_is_read_or_refused(trials: Trials, copied: RunOf) -> None:
    run = copied("names")
    loaded = load(run)

    def use() -> None:
        loaded.__dict__.pop("history", None)
        answered(lambda: loaded.history)
        before = (run / "history.jsonl").read_bytes()
        seconds = answered(lambda: HistoryLogger(run / "history.jsonl").start(10))
        if seconds is None:
            assert (run / "history.jsonl").read_bytes() == before, "a history with an error must not be changed"

    try_damages(trials, run / "history.jsonl", use, RECORDS, "history.jsonl", "value")


@pytest.mark.faults("damaged bytes: config.yaml")
def test_a_damaged_configuration_is_read_or_refused(trials: Trials, copied: RunOf) -> None:
    path = copied("names") / "config.yaml"
    try_damages(trials, path, lambda: answered(lambda: read_config(path)), RECORDS, "config.yaml", "value")


@pytest.mark.faults("damaged bytes: a report of runs")
@pytest.mark.parametrize("name", READ_BY_A_REPORT)
def test_a_report_names_what_is_damaged_and_shows_the_rest(name: str, trials: Trials, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    make_run(logs, "whole", "dropout=0.5", dropout=0.5)  # another setting than that of the damaged run
    run = make_run(logs, "damaged", "optimizer.lr=0.5", texts="What it wrote.\n", counts=[[1] * len(CLASSES)] * 3)
    write_confusion(run, [[5, 1, 0], [0, 7, 2], [1, 1, 3]])
    hits, losses = np.arange(19) % 2, np.linspace(0.1, 2, 19, dtype=np.float32)
    write_predictions(run / "predictions" / "validation.npz", Predictions(np.arange(19), losses, hits + 1, hits, "k"))
    (run / "config.yaml").write_text("dropout: 0.1\noptimizer:\n  lr: 0.5\nmodel:\n  dim: 32\n")
    (run / ".hydra" / "hydra.yaml").write_text(
        "hydra:\n  runtime:\n    choices:\n      model: tiny\n      task: stars\n"
    )

    def use() -> None:
        page = answered(lambda: report(ReportOptions(logs)))
        assert page is not None, "a damaged run must not end the report"
        text = (logs / "report.md").read_text()
        assert "| damaged |" in text
        assert "| whole |" in text
        assert not {"\x1b", "\0"} & set(text + (logs / "report.csv").read_text() + page.read_text())
        with quiet():
            assert len(list_runs(logs)) == 2

    try_damages(trials, run / name, use, REPORTS, f"report {name}", "value")


def large_records(logs: Path, size: int) -> dict[str, Callable[[], Any]]:
    """Return functions that make the run `large` with a record of one shape, whose size is given in entries."""
    moment = {"step": 1, "seconds": 1.0, "epoch": 0}
    make = partial(make_run, logs, "large")

    def sparse(name: str) -> None:
        os.truncate(make(texts="a", counts=[[1] * len(CLASSES)] * 3) / name, size * 2**16)

    return {
        "metrics": lambda: make(metrics={"val/accuracy": 0.5} | {f"test/{i}": 0.5 for i in range(size)}),
        "a long metric": lambda: make(metrics={"val/accuracy": 0.5, "val/" + "a" * size: 0.5}),
        "overrides": lambda: make(*[f"model.a{i}='b'" for i in range(size)]),
        "a long override": lambda: make("model.a='" + "b" * size + "'"),
        "a deep override": lambda: make("model.a=" + "[" * size + "]" * size),
        "an override of digits": lambda: make("model.a=" + "1" * size),
        "a deep value": lambda: make(experiment=json.loads("[" * 900 + "]" * 900)),
        "rows": lambda: make(data={"source": "local", "rows": {f"s{i}": i for i in range(size)}}),
        "a reason": lambda: make(status="failed", reason="a" * size),
        "lines": lambda: make(lines=[moment | {"step": i, "val/loss": 0.5} for i in range(size)]),
        "a long line": lambda: make(lines=[moment | {f"val/{i}": 0.5 for i in range(size)}]),
        "lines of other metrics": lambda: make(lines=[moment | {"val/" + letters(i): 0.5} for i in range(size)]),
        "settings": lambda: (make() / "config.yaml").write_text("".join(f"a{i}: {i}\n" for i in range(size))),
        "a long setting": lambda: (make() / "config.yaml").write_text("data: {max_train_rows: " + "a" * size + "}\n"),
        "a sparse record": lambda: sparse("metrics.json"),
        "a sparse history": lambda: sparse("history.jsonl"),
        "a sparse matrix": lambda: sparse("confusion_matrix/validation.csv"),
        "a sparse sample": lambda: sparse("samples/00000010.txt"),
    }


def letters(number: int) -> str:
    return "".join("abcdfghijk"[int(digit)] for digit in str(number))


@pytest.mark.faults("hostile: large records in a report")
@pytest.mark.parametrize("shape", large_records(Path(), 1))
def test_a_large_record_keeps_the_report_busy_for_seconds_only(shape: str, trials: Trials, tmp_path: Path) -> None:
    for size in (30, 990, 45_000, 200_000):
        logs = tmp_path / str(size)
        make_run(logs, "whole", "dropout=0.5")
        make_run(logs, "other", "optimizer.lr=0.5")
        large_records(logs, size + number_of(shape) % 10)[shape]()
        with trials.one(f"{shape} of {size}"):
            page = answered(lambda logs=logs: report(ReportOptions(logs)))
            assert page is not None, "a large record must not end the report"
            rows = list(csv.DictReader((logs / "report.csv").open(newline="")))
            assert [row["status"] for row in rows if row["folder"] != "large"] == ["finished"] * 2
            assert page.stat().st_size < 2**22
        shutil.rmtree(logs)


@pytest.mark.faults("hostile: formulas in report.csv")
def test_no_cell_of_a_report_is_a_formula(trials: Trials, tmp_path: Path) -> None:
    def check(parts: list[str]) -> None:
        text = "".join(parts)
        make_run(tmp_path, "a", f"model.{text}={text}", task=f"{text}.", metrics={text: -0.5, "val/accuracy": -1e-9})
        make_run(tmp_path, "b", status="failed", reason=text)
        try:
            assert answered(lambda: report(ReportOptions(tmp_path))) is not None
            with (tmp_path / "report.csv").open(newline="", encoding="utf-8") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            wrong = [cell for cell in cells if re.search(r"(^|[;\t\r\n])[=+\-@＝＋－＠]", cell) and not is_number(cell)]
            assert not wrong, wrong
        finally:
            for name in ("a", "b"):
                shutil.rmtree(tmp_path / name)

    pieces = st.sampled_from([*"=+-@＝＋－＠;,'\"\t\r\n 1a", "cmd|' /C calc'!A0", "HYPERLINK(A1)"])
    trials.examples(st.lists(pieces, min_size=1, max_size=5), check, FORMULAS, "formulas")


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[-1:].isdigit()


@pytest.mark.faults("damaged bytes: settings of a resumed run")
@pytest.mark.parametrize("task", TASKS)
def test_a_run_with_damaged_settings_is_resumed_or_refused(task, trials, copied, tmp_path) -> None:
    run = copied(task)
    logs = tmp_path / "logs" / task / "runs"
    logs.mkdir(parents=True)
    scripts = Scripts(tmp_path)

    def check(name: str, wish: str, damage: Damage) -> None:
        again = logs / "again"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(run, again)
        (again / name).write_bytes(damage.apply((again / name).read_bytes()))
        before = contents(again)
        words = [f"task={task}", "resume=auto"] if wish == "auto" else [f"resume={again}", "trainer.max_steps=60"]
        is_refused(scripts.run("train", *words, "dry_run=true"))
        assert contents(again) == before, "dry_run=true and errors must not write files"

    for name in READ_BY_A_RESUMED_RUN:
        for wish in ("auto", "folder"):
            check_this: Any = partial(check, name, wish)
            trials.examples(damages("value"), check_this, RESUMES, f"resume={wish} {task} {name}")
