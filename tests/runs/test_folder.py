"""The folder of a run, and files that are written completely or not at all."""

import os
from pathlib import Path

import pytest

from firstlight.errors import UserError
from firstlight.files.atomic import replacing, write_atomically
from firstlight.runs.folder import RunFolder
from firstlight.runs.history import HistoryLogger, read_history


def test_a_record_of_a_later_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"versions": {"firstlight": "0.9.1"}}')
    with pytest.raises(UserError, match=r"metrics\.json was written by firstlight 0\.9, .*; install firstlight 0\.9"):
        RunFolder(tmp_path).read()


def test_only_one_process_holds_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.is_locked()
    with folder.locked():
        assert folder.is_locked()
        with pytest.raises(UserError, match="another process is training this run"), RunFolder(tmp_path).locked():
            pass
    assert not folder.is_locked()


def test_a_failing_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "metrics.json"
    write_atomically(target, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


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
