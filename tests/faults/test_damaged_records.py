"""Readers of damaged records of a run either answer or give a one-line error."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faults.conftest import TASKS
from faults.damage import Damage, answered, assert_refused, damaged, damages, quiet
from faults.trials import Trials
from firstlight.commands.report import ReportOptions, report
from firstlight.comparison.outcomes import Outcomes
from firstlight.files.plain_yaml import read_config
from firstlight.kinds.load import load
from firstlight.runs.history import HistoryLogger
from firstlight.runs.list_runs import list_runs
from firstlight.runs.named import find_run
from firstlight.runs.outcomes import write_outcomes
from run_folders import CLASSES, make_run, write_confusion
from tests_support import Scripts, contents

RECORDS = 120  # trials for each reader
REPORTS = 60  # trials of reports, each of which takes 0.1 s
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
def test_a_loaded_run_answers_for_a_damaged_record(trials: Trials, copied: Callable[[str], Path]) -> None:
    run = copied("names")

    def check(damage: Damage) -> None:
        with damaged(run / "metrics.json", damage):
            loaded = answered(lambda: load(run / "checkpoints" / "best.ckpt"))
            for name in ("record", "metrics"):
                answered(partial(getattr, loaded, name))
            answered(lambda: repr(loaded))
            answered(lambda: load(run))
            answered(lambda: find_run("latest", run.parent))
            answered(lambda: find_run("best:val/loss", run.parent))

    trials.examples(damages("value"), check, RECORDS, "metrics.json")


@pytest.mark.faults("damaged bytes: history.jsonl")
def test_a_damaged_history_is_read_or_refused(trials: Trials, copied: Callable[[str], Path]) -> None:
    run = copied("names")
    loaded = load(run)

    def check(damage: Damage) -> None:
        with damaged(run / "history.jsonl", damage):
            loaded.__dict__.pop("history", None)
            answered(lambda: loaded.history)
            before = (run / "history.jsonl").read_bytes()
            seconds = answered(lambda: HistoryLogger(run / "history.jsonl").start(10))
            if seconds is None:
                assert (run / "history.jsonl").read_bytes() == before, "a history with an error must not be changed"

    trials.examples(damages("value"), check, RECORDS, "history.jsonl")


@pytest.mark.faults("damaged bytes: config.yaml")
def test_a_damaged_configuration_is_read_or_refused(trials: Trials, copied: Callable[[str], Path]) -> None:
    run = copied("names")

    def check(damage: Damage) -> None:
        with damaged(run / "config.yaml", damage):
            answered(lambda: read_config(run / "config.yaml"))

    trials.examples(damages("value"), check, RECORDS, "config.yaml")


@pytest.mark.faults("damaged bytes: a report of runs")
@pytest.mark.parametrize("name", READ_BY_A_REPORT)
def test_a_report_names_what_is_damaged_and_shows_the_rest(name: str, trials: Trials, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    make_run(logs, "whole", "dropout=0.5")
    run = make_run(logs, "damaged", "optimizer.lr=0.5", texts="What it wrote.\n", counts=[[1] * len(CLASSES)] * 3)
    write_confusion(run, [[5, 1, 0], [0, 7, 2], [1, 1, 3]])
    hits, losses = np.arange(19) % 2, np.linspace(0.1, 2, 19, dtype=np.float32)
    write_outcomes(run / "predictions" / "validation.npz", Outcomes(np.arange(19), losses, hits + 1, hits, "k"))
    (run / "config.yaml").write_text("dropout: 0.1\noptimizer:\n  lr: 0.5\nmodel:\n  dim: 32\n")
    (run / ".hydra" / "hydra.yaml").write_text(
        "hydra:\n  runtime:\n    choices:\n      model: tiny\n      task: stars\n"
    )

    def check(damage: Damage) -> None:
        with damaged(run / name, damage):
            page = answered(lambda: report(ReportOptions(logs)))
            assert page is not None, "a damaged run must not end the report"
            text = (logs / "report.md").read_text()
            assert "| damaged |" in text
            assert "| whole |" in text
            assert not {"\x1b", "\0"} & set(text + (logs / "report.csv").read_text() + page.read_text())
            with quiet():
                assert len(list_runs(logs)) == 2

    trials.examples(damages("value"), check, REPORTS, f"report {name}")


@pytest.mark.faults("damaged bytes: settings of a resumed run")
@pytest.mark.parametrize("task", TASKS)
def test_a_run_with_damaged_settings_is_resumed_or_refused(
    task: str, trials: Trials, copied: Callable[[str], Path], tmp_path: Path
) -> None:
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
        done = scripts.run("train", *words, "dry_run=true")
        if done.returncode:
            assert_refused(done.returncode, done.stderr)
        assert contents(again) == before, "dry_run=true and errors must not write files"

    for name in READ_BY_A_RESUMED_RUN:
        for wish in ("auto", "folder"):
            check_this: Any = partial(check, name, wish)
            trials.examples(damages("value"), check_this, RESUMES, f"resume={wish} {task} {name}")
