"""`runs --watch`: runs while they train, on a terminal and in a pipe."""

import json
import signal
from pathlib import Path

import pytest

from firstlight.lab.reports import watching
from firstlight.lab.reports.listing import conditions
from firstlight.lab.reports.watching import Watch
from firstlight.runs.folder import RunFolder
from firstlight.runs.gather import read_run
from run_folders import make_run
from tests_support import Scripts, rendered


def log(run: Path, step: int, seconds: float, **metrics: float) -> None:
    with (run / "history.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "seconds": seconds, "epoch": 0, **metrics}) + "\n")


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A run that has trained 100 of its 400 steps, 20 in a second lately."""
    changes = {"status": "running", "steps": None, "metrics": {}}
    run = make_run(tmp_path / "logs", "training", lines=[], total_steps=400, **changes)
    for number in range(5):
        log(run, 20 * number + 19, 100 + number, **({"val/accuracy": 0.25} if number == 2 else {"train/loss": 1}))
    return run


def test_a_run_that_trains_is_shown_with_its_step_speed_and_time_to_go(training: Path) -> None:
    watched = Watch(training.parent, conditions("--where", ["task=stars"]))
    with RunFolder(training).locked():
        (row,) = watched.rows()
        assert row[:5] == ("running", "100 of 400", "val/accuracy 0.2500", "20 steps/s", "15.0 s")
        log(training, 379, 109, **{"val/accuracy": 0.75})
        assert watched.rows()[0][1:3] == ("380 of 400", "val/accuracy 0.7500")
    assert watched.rows()[0][0] == "interrupted"  # no process trains it any more
    assert not Watch(training.parent, conditions("--where", ["task=names"])).rows()


def test_only_files_that_have_changed_are_read_again(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(watching, "read_run", lambda *run, **most: (read.append(run[1]), read_run(*run, **most))[1])
    ended = [make_run(training.parent, f"ended-{number}") for number in range(3)]
    watched = Watch(training.parent, [])
    with RunFolder(training).locked():
        assert len(watched.rows()) == 4
        read.clear()
        log(ended[1], 40, 8.0)
        watched.rows()
        assert sorted(read) == [str(ended[1]), str(training)]
        make_run(training.parent, "new")
        for _ in range(watching.LOOKS_BETWEEN_SEARCHES):
            rows = watched.rows()
        assert (len(rows), rows[0][-1]) == (5, str(training))


def test_a_terminal_has_a_table_until_ctrl_c(training: Path, tmp_path: Path) -> None:
    for number in range(30):
        make_run(tmp_path / "logs", f"ended-{number}")
    with RunFolder(training).locked():
        done = Scripts(tmp_path).run_in_terminal("runs", "--watch", interrupt=lambda shown: b"not shown" in shown)
    assert done.returncode == 130
    lines = rendered(done.stdout, 110)
    assert [line.split()[0] for line in lines[:3]] == ["status", "running", "finished"]
    assert "1 running, 30 finished, 10 of them not shown" in lines[22], "the table is higher than the terminal"
    assert "error: interrupted" in done.stdout


def test_a_pipe_has_a_line_for_each_change(training: Path, tmp_path: Path) -> None:
    with RunFolder(training).locked():
        process = Scripts(tmp_path).start("runs", "--watch")
        assert process.stdout is not None
        assert process.stdout.readline().startswith(
            "running  100 of 400  val/accuracy 0.2500  20 steps/s  15.0 s  logs/"
        )
        log(training, 120, 106, **{"val/accuracy": 0.5})
        assert process.stdout.readline().startswith("running  121 of 400  val/accuracy 0.5000")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")
