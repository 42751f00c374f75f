"""The folder of a run: its record, its history, and what a killed process leaves."""

import os
from pathlib import Path

import pytest

from firstlight.errors import UserError
from firstlight.files.atomic import replacing
from firstlight.runs.folder import RunFolder
from firstlight.runs.history import HistoryLogger, read_history


def test_a_record_of_a_later_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"versions": {"firstlight": "0.9.1"}}')
    with pytest.raises(UserError, match=r"metrics\.json was written by firstlight 0\.9, .*; install firstlight 0\.9"):
        RunFolder(tmp_path).read()


def test_a_resumed_history_removes_the_lines_that_are_written_again(tmp_path: Path) -> None:
    logger = HistoryLogger(tmp_path / "history.jsonl")
    logger.start(0)
    for step in (9, 19, 29):
        logger.log_metrics({"train/loss": 1.0 / step, "epoch": 0}, step)
    resumed = HistoryLogger(tmp_path / "history.jsonl")
    resumed.start(20)
    resumed.log_metrics({"train/loss": 0.5, "epoch": 1}, 29)
    lines = read_history(tmp_path / "history.jsonl")
    assert [line["step"] for line in lines] == [9, 19, 29]
    assert lines[-1]["train/loss"] == 0.5
    assert lines[-1]["seconds"] >= lines[1]["seconds"]


def test_an_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('{"step": 1, "seconds": 2}\n{"step": 2, "sec')
    assert read_history(path) == [{"step": 1, "seconds": 2}]


def test_the_unfinished_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    with replacing(tmp_path / "confusion.csv") as unfinished:
        pass
    unfinished.touch()  # as a process that is killed leaves it
    (tmp_path / ".notes").touch()
    RunFolder(tmp_path).remove_leftovers()
    assert sorted(os.listdir(tmp_path)) == [".notes", "confusion.csv"]
