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
    assert header.split() == ["when", "task", "model", "score", "status", "size", "folder"]
    cells = ["stars", "tfidf", "val/accuracy", "0.5000", "finished", "logs/stars/baseline/then"]
    assert [cell for place, cell in enumerate(rows[0].split()[2:]) if place not in (5, 6)] == cells
    assert [row.split()[-1] for row in rows[1:]] == [f"logs/runs/run-{number:02d}" for number in range(19)]
    assert re.match(r"2001-09-\d\d \d\d:\d\d  ", rows[0])
    assert done.stderr == "note: these are the newest 20 runs; --all lists all\n"
    done = listed(home, "logs", "--all")
    assert (len(done.stdout.splitlines()), done.stderr) == (26, "")
    assert [re.split("  +", row)[1:5] + row.split()[-1:] for row in done.stdout.splitlines()[-2:]] == [
        ["stars", "tiny", "–", "failed", "logs/runs/run-22"],
        ["–", "–", "–", "unreadable", "logs/stars/runs/broken"],
    ]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--task", "names"), [f"run-{number:02d}" for number in range(4)]),
        (("--status", "failed"), ["run-22"]),
        (("logs/stars", "--status", "finished"), ["then"]),
        (("--log-dir", "logs/stars", "--status", "finished"), ["then"]),
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
    make_run(sweep, "elsewhere", host="another")
    for folder in ("logs", "logs/sweeps", "logs/sweeps/many"):
        header, *rows = listed(tmp_path, folder).stdout.splitlines()
        assert "where" in header.split()
        assert {row.split("/")[-1]: re.split("  +", row)[-4:-2] for row in rows} == {
            "done": ["finished", "node1 (Slurm 7_0)"],
            "stopped": ["requeued", "(Slurm 7_1)"],
            "later": ["pending", "(Slurm 7_2)"],
            "elsewhere": ["finished", "another"],
        }
    (row,) = listed(tmp_path, "--status", "pending").stdout.splitlines()[1:]
    assert row.endswith("many/later")
    (sweep / ".slurm" / "states.json").write_text("{")
    broken = listed(tmp_path)
    assert (broken.returncode, broken.stderr.count("\n")) == (2, 1)


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """Four runs that differ in dropout, loss, data, and an option that only one of them has typed."""
    scripts = Scripts(tmp_path_factory.mktemp("differing"))
    for number, loss in enumerate((1.5, 1.25, float("nan"), 1.75)):
        typed = ("optimizer.lr=0.01",) if number == 3 else ()
        run = make_run(
            scripts.folder / "logs",
            f"run-{number}",
            *typed,
            dropout=number / 10,
            tags=["old"] if number else [],
            metrics={"val/loss": loss, "val/accuracy": loss / 2},
            **({"status": "failed"} if number == 2 else {}),
        )
        (run / "config.yaml").write_text(f"optimizer:\n  lr: {0.01 if typed else 0.001}\n")
    return scripts


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--where", "dropout>0.05 dropout<=0.2"), "12"),
        (("--where", "dropout!=0.1", "status=finished"), "03"),
        (("--where", "val/loss<1.6"), "01"),
        (("--where", "lr=0.001"), "012"),
        (("--where", "optimizer.lr>1e-3"), "3"),
        (("--where", "tags=old folder~run-1"), "1"),
        (("--sort", "val/loss"), "1032"),
        (("--sort", "val/accuracy"), "3012"),
        (("--sort", "dropout", "--where", "dropout>0"), "123"),
    ],
)
def test_runs_are_filtered_and_sorted(arguments: tuple[str, ...], names: str, differing: Scripts) -> None:
    rows = differing.succeed("runs", *arguments, "--columns", "folder").stdout.splitlines()[1:]
    found = [row.rpartition("-")[2] for row in rows]
    assert (found if "--sort" in arguments else sorted(found)) == list(names)


def test_columns_are_those_that_are_named(differing: Scripts) -> None:
    done = differing.succeed("runs", "--where", "dropout=0.3", "--columns", "val/loss", "lr", "folder", "tags")
    header, row = (line.split() for line in done.stdout.splitlines())
    assert dict(zip(header, row, strict=True)) == {
        "val/loss": "1.7500",
        "lr": "0.01",
        "folder": "logs/run-3",
        "tags": "old",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--where", "dropuot>0"), "--where dropuot: no run has this key; did you mean dropout?"),
        (("--sort", "val/los"), "--sort val/los: no run has this key; did you mean val/loss?"),
        (("--columns", "sizes"), "--columns sizes: no run has this key"),
        (("--where", "dropout 0"), "--where dropout: must be a key, one of = != < <= > >= ~ and a value"),
        (("--where", "task='a"), "--where task='a: No closing quotation"),
        (("logs/run-0", "--tag", "a b"), "--tag 'a b': must have 1 to 64 characters and no space"),
        (("logs/run-1", "--untag", "new"), "--untag new: the run has the tags old"),
    ],
)
def test_a_wrong_choice_is_one_line(arguments: tuple[str, ...], message: str, differing: Scripts) -> None:
    assert message in differing.refuse("runs", *arguments)


def test_notes_and_tags_are_kept_and_shown(tmp_path: Path) -> None:
    run, scripts = make_run(tmp_path / "logs", "one", tags=["old"]), Scripts(tmp_path)
    before = (run / "metrics.json").read_bytes()
    scripts.succeed("runs", "logs/one", "--note", "odd: <b>loss</b> rises", "--tag", "good", "new")
    (row,) = scripts.succeed("runs", "latest", "--untag", "new").stdout.splitlines()[1:]
    assert re.split("  +", row)[-3:] == ["old good", "odd: <b>loss</b> rises", "logs/one"]
    assert (run / "metrics.json").read_bytes() == before
    scripts.succeed("report", "logs")
    assert "old good,odd: <b>loss</b> rises" in (tmp_path / "logs" / "report.csv").read_text()
    (run / "notes.json").write_text('{"note": 7}')
    assert "finished" in scripts.succeed("runs").stdout, "a damaged note has hidden the run"
