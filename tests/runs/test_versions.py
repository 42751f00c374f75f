"""A run, a checkpoint or a record of a version before 0.3 is refused in one line."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from firstlight.errors import UserError
from firstlight.lit.checkpoint import METADATA, read_checkpoint
from firstlight.runs.folder import RunFolder
from firstlight.runs.named import find_run
from run_folders import make_run
from tests_support import Scripts

REFUSED = (
    "was written by firstlight 0.2, and this version reads runs of 0.3.0 and later; use version 0.2.0 to read it "
    "(git worktree add ../firstlight-0.2 c205100), or train again"
)
USES = {  # of the run `old`
    "predict": ["predict", "old", "--text", "a"],
    "evaluate": ["evaluate", "old"],
    "explore": ["explore", "old"],
    "resume": ["train", "resume=old", "trainer.max_steps=50"],
    "init_from": ["train", "task=stars", "init_from=old"],
}
USES_OF_RECORDS = USES | {
    "latest": ["evaluate", "latest", "--log-dir", "."],
    "teacher": ["train", "task=stars", "teacher=old"],
    "sweep": ["train", "-m", "task=stars", "data.source=sample", "sweep.name=begun", "seed=1,2"],
}


def make_old(folder: Path, name: str) -> Path:
    """Make a run of version 0.2.0, which did not record its own version, with an empty checkpoint."""
    run = make_run(folder, name, versions={"torch": "2.0"})
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "best.ckpt").touch()
    return run


@pytest.mark.parametrize("use", USES_OF_RECORDS)
def test_a_record_of_an_earlier_version_is_refused(use: str, scripts: Scripts) -> None:
    make_old(scripts.folder, "logs/sweeps/begun/seed-1" if use == "sweep" else "old")
    assert f"metrics.json {REFUSED}" in scripts.refuse(*USES_OF_RECORDS[use])


def test_a_search_for_a_run_ignores_an_earlier_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = make_old(tmp_path, "old")
    with pytest.raises(UserError, match="latest:stars: no trained run"):
        find_run("latest:stars", tmp_path)
    assert f"latest:stars ignores {old}/metrics.json {REFUSED}" in caplog.messages


@pytest.mark.parametrize("use", ["predict", "resume"])  # init_from reads as predict
def test_a_checkpoint_of_an_earlier_version_is_refused(use, scripts, trained) -> None:
    run = scripts.folder / "old"
    shutil.copytree(trained("stars"), run)
    for path in (run / "checkpoints").glob("*.ckpt"):
        content = read_checkpoint(path)
        del content[METADATA]["version"]  # version 0.2.0 wrote none
        torch.save(content, path)
    assert f".ckpt {REFUSED}" in scripts.refuse(*USES[use])


def test_a_report_and_the_list_of_runs_name_an_earlier_run_and_go_on(scripts: Scripts) -> None:
    others: dict[str, Any] = {"new": {"firstlight": "0.3.0"}, "later": {"firstlight": "9.9"}}
    for name, versions in others.items():
        make_run(scripts.folder / "logs", name, versions=versions)
    make_run(scripts.folder / "logs", "old", versions={"python": "3.11.7"})
    done = scripts.succeed("report", "logs")
    assert f"not counted: logs/old (unreadable): metrics.json {REFUSED}" in done.stdout + done.stderr
    table = (scripts.folder / "logs" / "report.csv").read_text()
    assert all(name in table for name in others)
    listed = scripts.succeed("runs", "logs")
    status = {line.split()[-1]: re.split(r"  +", line)[-3] for line in listed.stdout.splitlines()[1:]}
    assert status == {"logs/old": "unreadable", "logs/new": "finished", "logs/later": "finished"}


def test_the_record_of_a_job_that_never_began_names_no_versions_and_is_read(tmp_path: Path) -> None:
    run = RunFolder(make_run(tmp_path, "failed", status="failed"))
    assert "versions" not in run.read()
