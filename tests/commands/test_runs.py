"""`firstlight runs`: the list of runs on a terminal and in a pipe."""

import json
import os
import re
import webbrowser
from pathlib import Path

import pytest

from run_folders import make_baseline, make_run
from tests_support import Done, Scripts


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """25 runs, each a minute older than the one before: of names, the others of stars, one failed, a baseline."""
    home = tmp_path_factory.mktemp("home")
    for number in range(23):
        changes = {"status": "failed", "reason": "RunError: the loss is nan", "metrics": {}} if number == 22 else {}
        task = {"task": "names"} if number < 4 else {}
        run = make_run(home / "logs", f"runs/run-{number:02d}", lines=[], steps=None, **task, **changes)
        os.utime(run / "metrics.json", (1e9 - 60 * number, 1e9 - 60 * number))
    baseline = make_baseline(home / "logs", "stars/baseline/then")
    os.utime(baseline / "metrics.json", (1e9 + 60, 1e9 + 60))
    unreadable = make_run(home / "logs", "stars/runs/broken")
    (unreadable / "metrics.json").write_text("{")
    os.utime(unreadable / "metrics.json", (1e9 - 7000, 1e9 - 7000))
    return home


def listed(home: Path, *arguments: str) -> Done:
    return Scripts(home).run("runs", *arguments)


def test_the_newest_twenty_come_first_and_a_note_says_how_to_see_the_rest(home: Path) -> None:
    done = listed(home)
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["when", "task", "model", "score", "status", "folder"]
    assert rows[0].split()[2:] == ["stars", "tfidf", "val/accuracy", "0.5000", "finished", "logs/stars/baseline/then"]
    assert [row.split()[-1] for row in rows[1:]] == [f"logs/runs/run-{number:02d}" for number in range(19)]
    assert re.match(r"2001-09-\d\d \d\d:\d\d  ", rows[0])
    assert done.stderr == "note: these are the newest 20 runs; --all lists all\n"
    done = listed(home, "logs", "--all")
    assert (len(done.stdout.splitlines()), done.stderr) == (26, "")
    assert [row.split()[2:] for row in done.stdout.splitlines()[-2:]] == [
        ["stars", "tiny", "–", "failed", "logs/runs/run-22"],
        ["–", "–", "–", "unreadable", "logs/stars/runs/broken"],
    ]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--task", "names"), [f"run-{number:02d}" for number in range(4)]),
        (("--status", "failed"), ["run-22"]),
        (("logs/stars", "--status", "finished"), ["then"]),
    ],
)
def test_runs_are_chosen_by_task_and_status(arguments: tuple[str, ...], names: list[str], home: Path) -> None:
    done = listed(home, *arguments)
    assert [Path(row.split()[-1]).name for row in done.stdout.splitlines()[1:]] == names
    assert done.stderr == ""


@pytest.mark.parametrize(("source", "mark"), [("sample", " (sample)"), ("local", "")])
def test_the_score_of_a_run_on_generated_data_is_marked(tmp_path: Path, source: str, mark: str) -> None:
    make_run(tmp_path / "logs", "run", task="names", data={"source": source}, metrics={"val/accuracy": 0.5})
    (row,) = listed(tmp_path).stdout.splitlines()[1:]
    assert f"val/accuracy 0.5000{mark}  finished" in row


def test_a_list_without_a_run_is_one_line(home: Path) -> None:
    done = listed(home, "--task", "nams")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --task nams: no run below logs has this task; there are runs of names, stars\n"
    done = listed(home, "--status", "interrupted")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no run below logs has status=interrupted\n", "")
    done = listed(home, "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: nowhere: the folder does not exist; train a run first")


@pytest.mark.parametrize("has_browser", [True, False])
def test_open_shows_the_report_or_says_that_no_browser_was_found(has_browser, home, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: (opened.append(address), has_browser)[1])
    done = Scripts(home).succeed("report", "--open")
    assert opened == [(home / "logs" / "report.html").as_uri()]
    note = "note: --open: no browser found; open logs/report.html yourself"
    assert (note in done.stderr.splitlines()) is not has_browser


def test_jobs_on_slurm_are_shown_with_their_task_and_where_they_run(tmp_path: Path) -> None:
    sweep = tmp_path / "logs" / "sweeps" / "many"
    for name, status in (("done", "finished"), ("stopped", "interrupted")):
        make_run(sweep, name, status=status, host="node1")
    (sweep / ".slurm").mkdir()
    states = {
        "done": ["7_0", "COMPLETED", "node1"],
        "stopped": ["7_1", "PENDING", ""],
        "later": ["7_2", "PENDING", ""],
        "canceled": ["7_3", "CANCELLED", ""],
    }
    (sweep / ".slurm" / "states.json").write_text(json.dumps(states))
    for folder in ("logs", "logs/sweeps", "logs/sweeps/many"):
        header, *rows = listed(tmp_path, folder).stdout.splitlines()
        assert "where" in header.split()
        assert {row.split("/")[-1]: re.split("  +", row)[-3:-1] for row in rows} == {
            "done": ["finished", "node1 (Slurm 7_0)"],
            "stopped": ["requeued", "(Slurm 7_1)"],
            "later": ["pending", "(Slurm 7_2)"],
        }
    (row,) = listed(tmp_path, "--status", "pending").stdout.splitlines()[1:]
    assert row.endswith("many/later")
    (sweep / ".slurm" / "states.json").write_text("{")
    broken = listed(tmp_path)
    assert (broken.returncode, broken.stderr.count("\n")) == (2, 1)


def test_a_run_on_another_computer_is_shown_with_its_name(tmp_path: Path) -> None:
    make_run(tmp_path / "logs", "run", host="elsewhere")
    (row,) = listed(tmp_path).stdout.splitlines()[1:]
    assert re.split("  +", row)[-2] == "elsewhere"
