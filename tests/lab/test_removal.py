"""`runs --prune` and `--prune-checkpoints`: what is removed, and what is kept."""

import io
from pathlib import Path

import pytest

from firstlight.runs.folder import RunFolder
from run_folders import make_run
from tests_support import Scripts

STATUSES = ("finished", "failed", "interrupted", "pruned")


@pytest.fixture
def home(tmp_path: Path) -> Scripts:
    """A run of each status with checkpoints; failed runs that a student and a tuned run need, and one that trains."""
    logs = tmp_path / "logs"
    for name in (*STATUSES, "teacher", "source", "last-source"):
        status = name if name in STATUSES else "failed"
        run = make_run(logs, f"stars/runs/{name}", status=status, reason="it failed")
        (run / "checkpoints").mkdir()
        for checkpoint in ("best", "last", "previous", "step_000000", "step_000100"):
            (run / "checkpoints" / f"{checkpoint}.ckpt").write_bytes(b"0" * 1000)
    make_run(logs, "stars/runs/student", teacher={"names": ["latest"], "runs": ["/elsewhere/stars/runs/teacher"]})
    make_run(logs, "names/runs/tuned", "init_from=logs/stars/runs/source", task="names")
    make_run(logs, "names/runs/again", "init_from=latest:stars", task="names", init_from="logs/stars/runs/last-source")
    make_run(logs, "stars/runs/trains", status="running")
    return Scripts(tmp_path)


def left(home: Scripts) -> set[str]:
    return {path.name for path in (home.folder / "logs").glob("*/runs/*")}


def test_runs_that_fulfill_the_conditions_go_unless_others_need_them(home: Scripts) -> None:
    before = left(home)
    with RunFolder(home.folder / "logs/stars/runs/trains").locked():
        done = home.succeed("runs", "logs/stars", "--prune", "seed=1", "--yes")
        assert before - left(home) == {"failed", "pruned"}
        assert "kept: logs/stars/runs/trains: a process trains it" in done.stdout
        assert "kept: logs/stars/runs/teacher: logs/stars/runs/student was trained from its weights" in done.stdout
        assert "kept: logs/stars/runs/source: logs/names/runs/tuned was trained from its weights" in done.stdout
        assert "kept: logs/stars/runs/last-source: logs/names/runs/again was" in done.stdout
        assert "kept: logs/stars/runs/interrupted: it can be resumed; add status=interrupted" in done.stdout
        assert done.stdout.splitlines()[-1].startswith("freed ")
        home.succeed("runs", "--prune", "status=interrupted", "--yes")
        home.succeed("runs", "--prune", "status=finished", "--where", "task=names", "--yes")
    assert before - left(home) == {"failed", "pruned", "interrupted", "tuned", "again"}
    assert home.succeed("runs", "--prune", "status=pruned", "--yes").stdout == "nothing is removed\n"


class Terminal(io.StringIO):
    """Standard input with an answer, as of a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_goes_without_an_answer(home: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    before, command = left(home), ("runs", "--prune", "status=failed")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert "add --yes" in home.refuse(*command)
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert "Remove this, and free" in home.succeed(*command).stdout
    assert "requires conditions" in home.refuse("runs", "--prune", "")
    assert left(home) == before
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    home.succeed(*command)
    assert before - left(home) == {"failed"}


def test_spare_checkpoints_of_finished_runs_go(home: Scripts) -> None:
    make_run(home.folder / "logs", "stars/runs/unvalidated")
    only = home.folder / "logs/stars/runs/unvalidated/checkpoints"
    only.mkdir()
    (only / "last.ckpt").touch()
    done = home.succeed("runs", "--prune-checkpoints", "task=stars", "--yes")
    assert done.stdout.splitlines() == ["spare checkpoints  4.0 kB  logs/stars/runs/finished", "freed 4.0 kB"]
    kept = {name: len(list((home.folder / f"logs/stars/runs/{name}/checkpoints").iterdir())) for name in STATUSES}
    assert kept == {"finished": 1, "failed": 5, "interrupted": 5, "pruned": 5}
    assert (home.folder / "logs/stars/runs/finished/checkpoints/best.ckpt").is_file()
    assert (only / "last.ckpt").is_file()
