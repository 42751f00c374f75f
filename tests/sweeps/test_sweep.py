"""A sweep continues its unfinished jobs, however it was interrupted, and shows its progress."""

import fcntl
import io
import json
import logging
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import pytest
from omegaconf import OmegaConf
from rich.console import Console

from firstlight.data import sources
from firstlight.runs.folder import RunFolder, read_history
from firstlight.sweeps import progress
from firstlight.sweeps.grid import Runner
from firstlight.sweeps.jobs import Job, folder_name
from firstlight.sweeps.progress import Progress, Row, best_of
from run_folders import make_run
from tests_support import ROOT, Done, Scripts, contents, environment, records, screens

JOBS = {f"seed-{seed}_task-{task}": (task, seed) for task in ("sentiment", "stars") for seed in (1, 2)}


@pytest.fixture(scope="module")
def two_tasks(tmp_path_factory: pytest.TempPathFactory, tiny_training: list[str]) -> tuple[Done, Scripts, list[str]]:
    """A finished sweep over two tasks and two seeds: its output, its folder and its command line."""
    scripts = Scripts(tmp_path_factory.mktemp("two_tasks"))
    grid = ["-m", *tiny_training, "task=sentiment,stars", "seed=1,2", "trainer.max_steps=2", "logger=none"]
    grid += ["optimized_metric=val/loss", "optimizer.lr=0.05"]
    return scripts.run("train", *grid), scripts, grid


@pytest.fixture
def finished(
    made_once: Callable[[str, Callable[[Path], None]], Path],
    scripts: Scripts,
    reviews_folder: Path,
    tiny_training: list[str],
) -> list[str]:
    """The command line of a finished sweep of two jobs with its own copy of the data, in the folder of the test."""
    grid = ["-m", *tiny_training[1:], "data.path=reviews", "seed=1,2", "trainer.max_steps=1", "logger=none"]
    grid += ["sweep.name='lr (new)'"]  # any name that a folder may have

    def fill(folder: Path) -> None:
        shutil.copytree(reviews_folder, folder / "reviews")
        Scripts(folder).succeed("train", *grid)

    shutil.copytree(made_once("finished-sweep", fill), scripts.folder, dirs_exist_ok=True)
    return grid


def sweep_folder(scripts: Scripts) -> Path:
    (folder,) = (scripts.folder / "logs" / "sweeps").iterdir()
    return folder


def seen_at_any_time(done: Done, columns: int, rows: int) -> list[list[str]]:
    """Return what a terminal showed during a sweep. Fail if it ever had two tables, or a line of a job."""
    found = list(screens(done.stdout, columns, step=97, rows=rows))
    for lines in found:
        assert sum("│" not in line and "━" in line and "┏" in line for line in lines) <= 1, "\n".join(lines)
        assert not any(word in line for line in lines for word in ("epoch", "parameters", "Launching", "Traceback"))
    return found


def cells(lines: list[str]) -> dict[str, list[str]]:
    """Return the rows of a table by the name of the job, and the headers by the word job."""
    found = ([cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in lines)
    return {row[0]: row[1:] for row in found if len(row) == 5}


def test_the_same_command_again_runs_nothing_again(two_tasks: tuple[Done, Scripts, list[str]]) -> None:
    done, scripts, grid = two_tasks
    assert done.returncode == 0, done.stderr
    folder = sweep_folder(scripts)
    first = records(folder)
    assert {name: (record["task"], record["seed"]) for name, record in first.items()} == JOBS
    assert {record["status"] for record in first.values()} == {"finished"}
    assert not any(name.startswith("test/") for record in first.values() for name in record["metrics"])
    again = scripts.succeed("train", *reversed(grid[1:]), "-m")
    assert again.stdout.splitlines()[0].endswith(", nothing to do")
    assert records(sweep_folder(scripts)) == first
    assert "4 jobs: 4 finished, 0 failed, 0 to go, best val/loss" in again.stdout + again.stderr


def test_a_finished_sweep_asks_no_cluster(finished, scripts, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")  # without Slurm
    before = contents(sweep_folder(scripts))
    three = [each.replace("seed=1,2", "seed=1,2,3") for each in finished]
    more = scripts.refuse("train", *three, "hydra/launcher=slurm")
    assert more.startswith("error: hydra/launcher=slurm: sinfo is not installed here")
    assert contents(sweep_folder(scripts)) == before
    again = scripts.succeed("train", *finished, "hydra/launcher=slurm")
    assert "2 jobs: 2 finished, 0 failed, 0 to go" in again.stdout + again.stderr


def test_a_job_that_fails_ends_the_sweep_only_if_that_is_chosen(scripts: Scripts, tiny_training: list[str]) -> None:
    grid = ["-m", *tiny_training, "optimizer.lr=1e-2,1e30,1e-3", "trainer.max_steps=9", "logger=none"]
    done = scripts.run("train", *grid, "sweep.stop_at_first_failure=true")
    assert done.returncode == 1
    assert "3 jobs: 1 finished, 1 failed, 1 to go" in done.stdout + done.stderr
    assert "1 of 3 jobs failed, the first in" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr + done.stdout
    finished, failed = records(sweep_folder(scripts)).values()
    assert (finished["status"], failed["status"]) == ("finished", "failed")
    assert "loss" in failed["reason"]
    done = scripts.run("train", *grid)  # the failed job runs and fails again
    assert (done.returncode, "2 finished, 1 failed, 0 to go" in done.stdout) == (1, True)
    assert records(sweep_folder(scripts))["optimizer.lr-0.01"] == finished


def test_a_dry_run_lists_the_jobs_and_runs_none(scripts: Scripts, tiny_training: list[str]) -> None:
    arguments = [*tiny_training[:1], *tiny_training[2:], "model=tiny,small", "dry_run=true"]
    done = scripts.succeed("train", "-m", *arguments)
    rows = [line for line in done.stdout.splitlines() if "model=" in line]
    assert len(rows) == 2
    assert all("planned" in row for row in rows)
    title = r"2 jobs in logs/sweeps/sentiment_model_[0-9a-f]{6}; dry_run=true runs none"
    assert any(re.fullmatch(title, line) for line in done.stdout.splitlines()), "one line, however narrow the table is"
    counts = [int(row.split("│")[2].strip().replace(",", "")) for row in rows]
    assert 0 < counts[0] < counts[1]
    assert not list((scripts.folder / "logs").glob("sweeps/*/*"))
    single = scripts.succeed("train", *tiny_training, "dry_run=true")
    assert f"{counts[0]:,}" in single.stdout
    assert not (scripts.folder / "logs" / "sentiment").exists()


def test_the_warning_about_the_generated_sample_is_printed_once(
    scripts: Scripts, small_sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mirror(dataset_id: str, cache_dir: Path) -> Path:
        raise sources.UnreachableError("no route to host")

    monkeypatch.setattr(sources, "mirror", mirror)
    typed = ["task=sentiment", "data.name=nothing_here", "context_length=8,16", "dry_run=true", small_sample]
    done = scripts.run("train", "-m", *typed)
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("GENERATED SAMPLE instead") == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ([], ""),
        (["trainer.max_steps=2"], "has a run with trainer.max_steps=1, which is 2 now; choose another sweep.name, or"),
        (["test=true"], "has a run with test=False, which is True now; choose another sweep.name, or move"),
    ],
)
def test_a_finished_sweep_is_not_changed_by_the_same_command_or_another_configuration(
    changed: list[str], message: str, scripts: Scripts, finished: list[str]
) -> None:
    job = sweep_folder(scripts) / "seed-2"
    before = contents(job)
    done = scripts.run("train", *finished, *changed)
    assert (done.returncode, message in done.stderr) == (2 if message else 0, True)
    assert contents(job) == before


def test_the_command_that_decides_between_two_settings_keeps_the_finished_jobs(scripts, tiny_training) -> None:
    grid = ["optimizer.lr=1e-2,0.03", "seed=choice(1)", "model.num_layers=choice(1)"]
    scripts.succeed(
        "train", "-m", *tiny_training, *grid, "trainer.max_steps=1", "logger=none", "optimized_metric=val/loss"
    )
    sweep = str(sweep_folder(scripts).relative_to(scripts.folder))
    report = scripts.succeed("report", sweep, "--decide", "lr 0.01", "0.03").stdout
    assert "lr 0.01 against 0.03: undecided (" in report
    command = report.splitlines()[-1].partition(" -m ")[2]
    assert "optimizer.lr=0.01,0.03 seed=1,2,3" in command
    planned = scripts.succeed("train", "-m", *shlex.split(command), "dry_run=true").stdout
    assert (planned.count("finished"), planned.count("planned")) == (2, 4)
    unknown = scripts.refuse("report", sweep, "--decide", "lr 0.01", "lr 0.04")
    assert unknown.startswith("error: --decide lr 0.04: no finished run has these values; the nearest are lr 0.0")


def test_a_folder_is_named_by_what_varies_without_special_characters() -> None:
    assert folder_name(["model=tiny", "dropout=0.1", "+a.b=c,d"]) == "a.b-c-d_dropout-0.1_model-tiny"
    assert folder_name([]) == "job"
    long, other = (folder_name([f"key={'x' * 200}{end}"]) for end in "ab")
    assert long != other
    assert len(long) < 140


WAITS = """
import time
from pathlib import Path

from lightning.pytorch import Callback

from firstlight.callbacks import StopAtStepEnd


class Wait(Callback):
    # The first job waits before its 5th step for Ctrl-C or for the file `seen`: it could end in milliseconds.
    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == 4 and not Path("waiting").exists():
            Path("waiting").touch()
            (stop,) = [callback for callback in trainer.callbacks if isinstance(callback, StopAtStepEnd)]
            end = time.monotonic() + 60
            while stop.received is None and not Path("seen").exists() and time.monotonic() < end:
                time.sleep(0.01)
"""


def waiting(scripts: Scripts) -> str:
    """Return the override of a callback that lets the first job wait."""
    (scripts.folder / "waits.py").write_text(WAITS)
    return "+callbacks.wait._target_=waits.Wait"


def test_ctrl_c_leaves_the_table_and_the_same_command_continues(scripts: Scripts, tiny_training: list[str]) -> None:
    grid = ["-m", *tiny_training, "seed=1,2", "logger=none", waiting(scripts)]
    often = "callbacks.checkpoint.every_n_train_steps=2"
    folders = scripts.folder / "logs" / "sweeps"
    is_waiting = (scripts.folder / "waiting").exists
    done = scripts.run_in_terminal("train", *grid, often, columns=120, interrupt=lambda _: is_waiting())
    assert done.returncode == 130
    lines = seen_at_any_time(done, columns=120, rows=24)[-1]
    statuses = {name: row[0] for name, row in cells(lines).items()}
    assert statuses == {"job": "status", "seed=1": "interrupted", "seed=2": "waiting"}
    assert lines[-1] == "Interrupted: 0 of 2 jobs are finished. The same command continues the sweep."
    folder = sweep_folder(scripts)
    assert scripts.run("train", *grid, often, "quiet=true").stdout == ""
    assert {record["status"] for record in records(folder).values()} == {"finished"}
    assert "Resumed at step" in (folder / "seed-1" / "train.log").read_text()
    assert [path.name for path in folders.iterdir()] == [folder.name]


def test_a_second_command_for_a_sweep_that_runs_is_refused(scripts: Scripts, tiny_training: list[str]) -> None:
    folder = scripts.folder / "logs" / "sweeps" / "mine"
    folder.mkdir(parents=True)
    (folder / "multirun.yaml").write_text("that of the other command")
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = scripts.run("train", "-m", *tiny_training, "seed=1,2", "sweep.name=mine")
    assert done.returncode == 2
    assert "another process runs this sweep; wait for it, or stop it" in done.stderr
    assert not list(folder.glob("*/metrics.json"))
    assert (folder / "multirun.yaml").read_text() == "that of the other command"


class LosesItsWorkers:
    """A launcher whose workers are killed after the first job."""

    def __init__(self, first: Job, second: Job) -> None:
        self.first, self.second = first, second

    def launch(self, job_overrides: list[list[str]], initial_job_idx: int) -> Any:
        make_run(self.first.folder.path, "")
        make_run(self.second.folder.path, "", status="running", parameters=7)
        raise RuntimeError("a worker was killed")


def test_lost_jobs_have_failed_and_finished_jobs_stay(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path, "seed-1", "seed-2", "seed-3")
    runner = Runner(OmegaConf.create(), tmp_path, lambda _: LosesItsWorkers(*jobs[:2]))  # type: ignore[arg-type, return-value]
    runner.run(jobs, 0)
    assert list(runner.errors) == [tmp_path / "seed-2", tmp_path / "seed-3"]
    assert [job.status for job in jobs] == ["finished", "failed", "waiting"]
    begun = jobs[1].record()
    assert (begun["reason"], begun["parameters"]) == ("RuntimeError: a worker was killed", 7)
    assert Progress(tmp_path, jobs, 3, runner.errors).counts([])["failed"] == 2


def test_jobs_of_other_code_are_refused_unless_any_code_is_set(scripts: Scripts, finished: list[str]) -> None:
    file = sweep_folder(scripts) / "seed-1" / "metrics.json"
    record = json.loads(file.read_text())
    now = record["code"]
    file.write_text(json.dumps(record | {"code": "c0"}))
    before = contents(sweep_folder(scripts))
    error = scripts.refuse("train", *finished)
    assert re.fullmatch(
        rf"error: .+/seed-1 has a run with other code \(c0, now {now}\); choose another sweep.name, "
        rf"or set sweep.any_code=true if the change does not affect finished jobs\n",
        error,
    )
    assert contents(sweep_folder(scripts)) == before
    shutil.rmtree(sweep_folder(scripts) / "seed-2")
    assert scripts.run("train", *finished, "sweep.any_code=true").returncode == 0
    found = records(sweep_folder(scripts))
    assert found["seed-1"] == record | {"code": "c0"}
    assert (found["seed-2"]["status"], found["seed-2"]["code"]) == ("finished", now)


def test_jobs_of_other_data_under_the_same_name_are_refused(scripts: Scripts, finished: list[str]) -> None:
    folder, trained_on = sweep_folder(scripts), records(sweep_folder(scripts))["seed-2"]["data"]["fingerprint"]
    shutil.rmtree(folder / "seed-1")  # the sweep is refused although a job remains to be run
    before = contents(folder)
    with (scripts.folder / "reviews" / "train.jsonl").open("a") as file:
        file.write(json.dumps({"text": "it broke on the third day", "label": 0}) + "\n")
    error = scripts.refuse("train", *finished)
    assert re.fullmatch(
        rf"error: .+/seed-2 has a run with other data \(fingerprint {trained_on}, now \S+\); "
        rf"choose another sweep.name, or restore the data\n",
        error,
    )
    assert contents(folder) == before


def test_the_lines_of_a_sweep_name_the_best_job_of_each_task(two_tasks: tuple[Done, Scripts, list[str]]) -> None:
    done, scripts, _ = two_tasks
    assert done.returncode == 0, done.stderr
    losses = {name: record["metrics"]["val/loss"] for name, record in records(sweep_folder(scripts)).items()}
    assert len(set(losses.values())) == len(losses) == 4
    best = []
    for task in ("sentiment", "stars"):
        loss, name = min((loss, name) for name, loss in losses.items() if f"task-{task}" in name)
        best.append(f"best val/loss {loss:.4f} (task={task} seed={name[5]})")
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("4 jobs: ")]
    (table,) = (number for number, line in enumerate(done.stdout.splitlines()) if line.startswith("┏"))
    assert len(done.stdout.splitlines()[:table] + done.stderr.splitlines()) == 1 + len(lines), "no line of a launcher"
    counts = [f"4 jobs: {count} finished, 0 failed, {4 - count} to go" for count in range(5)]
    assert [line.partition(", best")[0].partition(", about")[0] for line in lines] == counts
    assert lines[-1] == ", ".join([counts[-1], *best])
    assert [" left, best" in line for line in lines] == [False, True, True, True, False]
    assert "\x1b" not in done.stdout + done.stderr


def test_a_terminal_shows_one_table_with_what_runs_and_what_failed(scripts: Scripts, tiny_training: list[str]) -> None:
    grid = ["-m", *tiny_training, "optimizer.lr=1e-3,1e30", "trainer.max_epochs=11", "logger=none", waiting(scripts)]

    def see(shown: bytes) -> bool:
        if b"running" in shown:
            (scripts.folder / "seen").touch()
        return False

    done = scripts.run_in_terminal("train", *grid, columns=80, interrupt=see)
    assert done.returncode == 1
    seen = seen_at_any_time(done, columns=80, rows=24)
    folder = sweep_folder(scripts).relative_to(scripts.folder)
    assert all(lines[0] == f"2 jobs in {folder}" for lines in seen if lines)
    rows = {(name, row[0]) for lines in seen for name, row in cells(lines).items()}
    first, second = "optimizer.lr=0.001", "optimizer.lr=1e+30"
    assert rows >= {(first, "running"), (second, "waiting"), (first, "finished"), (second, "failed")}
    reason = records(sweep_folder(scripts))["optimizer.lr-1e+30"]["reason"]
    value = records(sweep_folder(scripts))["optimizer.lr-0.001"]["metrics"]["val/accuracy"]
    text = "\n".join(seen[-1])
    assert f"{second} failed: {reason.removeprefix('RunError: ')}" in text.replace("\n", "")
    end = ["2 jobs: 1 finished, 1 failed, 0 to go", f"best val/accuracy {value:.4f} ({first})", "To compare the jobs:"]
    assert "\n".join([*end, f"  python src/report.py {folder}", "error: 1 of 2 jobs failed, the first in "]) in text
    assert (sweep_folder(scripts) / "optimizer.lr-0.001" / "output.txt").read_text().count("epoch 11") == 1


# A new process imports all libraries, which takes longer than most sweeps. test_search.py tests in a search that a
# launcher runs jobs at the same time, each with its own folder.
@pytest.mark.slow
def test_jobs_that_run_at_the_same_time_give_what_they_give_one_by_one(scripts, tmp_path_factory, drawn_training):
    grid = ["-m", *drawn_training, "optimizer.lr=1e-3,1e-2,1e30", "trainer.max_epochs=1"]
    workers = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "logger=trackio"]
    done = subprocess.run(
        [sys.executable, ROOT / "src" / "train.py", *grid, *workers],
        capture_output=True,
        text=True,
        cwd=scripts.folder,
        env={name: value for name, value in environment().items() if name != "OMP_NUM_THREADS"},
    )
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "3 jobs: 2 finished, 1 failed, 0 to go" in said
    assert "1 of 3 jobs failed, the first in" in done.stderr.splitlines()[-1]
    assert "Traceback" not in said
    folder = sweep_folder(scripts)
    both = records(folder)
    good, bad = both["optimizer.lr-0.001"], both["optimizer.lr-1e+30"]
    assert bad["reason"].removeprefix("RunError: ") in done.stderr
    assert good["threads"] == bad["threads"] == max(1, joblib.cpu_count() // 2)
    written = (folder / "optimizer.lr-0.001" / "output.txt").read_text()
    for line in ("Confusion matrix, validation:", "epoch 1  step 12"):
        assert line in written
        assert line not in said
    with sqlite3.connect(scripts.folder / "logs" / "trackio" / "firstlight.db") as database:
        found = [json.loads(config)["status"] for (config,) in database.execute("SELECT config FROM configs")]
        rows = database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY id").fetchall()
    losses = [(run, step) for run, step, row in rows if "train/loss" in json.loads(row)]
    steps = {name: [step for run, step in losses if run.endswith(f"-{name}")] for name in both}
    assert sorted(found) == ["failed", "finished", "finished"]
    histories = {name: read_history(folder / name / "history.jsonl") for name in both}
    assert steps == {name: [line["step"] for line in histories[name] if "train/loss" in line] for name in both}

    alone = Scripts(tmp_path_factory.mktemp("one_by_one"))
    alone.run("train", *grid, "logger=none", f"threads={good['threads']}")
    each = records(sweep_folder(alone))
    assert [record["status"] for record in both.values()] == ["finished", "finished", "failed"]
    assert [record["metrics"] for record in both.values()] == [record["metrics"] for record in each.values()]


def jobs_in(folder: Path, *names: str) -> list[Job]:
    config = OmegaConf.create({"optimized_metric": "val/accuracy", "optimized_mode": "auto"})
    return [Job((), (name,), RunFolder(folder / name), lambda: config) for name in names]


def lines_of(watch: Progress, width: int = 150, height: int = 24) -> list[str]:
    """Return the table and the lines below it, as on a terminal of this size."""
    console = Console(width=width, height=height, file=io.StringIO())
    with console.capture() as shown:
        console.print(watch)
    return shown.get().splitlines()


def rows_of(watch: Progress) -> list[list[str]]:
    """Return the cells of the table, row by row."""
    lines = (line for line in lines_of(watch) if "│" in line)
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_what_a_killed_sweep_left_running_is_interrupted_until_it_runs_again(tmp_path: Path) -> None:
    make_run(tmp_path, "done")
    make_run(tmp_path, "killed", status="running")
    make_run(tmp_path, "wrong")
    jobs = jobs_in(tmp_path, "later", "done", "wrong", "killed")
    watch = Progress(tmp_path, jobs, 4, {jobs[2].folder.path: "it went wrong"})
    assert rows_of(watch) == [
        ["later", "waiting", "", "", ""],
        ["done", "finished", "31", "0.5000", "7 s"],
        ["wrong", "failed", "31", "0.5000", "7 s"],
        ["killed", "interrupted", "34", "0.9286", "3 s"],  # from its history
    ]
    with jobs[3].folder.locked():
        assert rows_of(watch)[3] == ["killed", "running", "34", "0.9286", "3 s"]
    assert rows_of(watch)[3] == ["killed", "interrupted", "34", "0.9286", "3 s"], "killed again, in this sweep"


def test_the_table_shows_which_task_of_slurm_has_a_job(tmp_path: Path) -> None:
    make_run(tmp_path, "stopped", status="interrupted")
    (tmp_path / ".slurm").mkdir()
    states = {"later": ["7_0", "PENDING", ""], "stopped": ["7_1", "PENDING", ""], "lost": ["7_2", "RUNNING", "node2"]}
    (tmp_path / ".slurm" / "states.json").write_text(json.dumps(states))
    watch = Progress(tmp_path, jobs_in(tmp_path, "later", "stopped", "lost"), 3, {})
    shown = [row[1] for row in rows_of(watch)]
    assert shown == ["pending  (Slurm 7_0)", "requeued  (Slurm 7_1)", "waiting  node2 (Slurm 7_2)"]


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_with_more_jobs_than_lines_shows_what_runs_what_failed_and_what_finished_last(width, tmp_path) -> None:
    names = (f"optimizer.weight_decay=0.{number} model={'x' * 50} seed={number}" for number in range(40))
    jobs = jobs_in(tmp_path, *names)
    make_run(jobs[7].folder.path, "", status="running")  # left by a sweep that was killed
    watch = Progress(tmp_path, jobs, 40, {jobs[31].folder.path: "it went wrong"})
    for number in (5, 3, 4, 2, 1):
        make_run(jobs[number].folder.path, "")
        watch.rows()  # reads the folders
    make_run(jobs[9].folder.path, "", status="running")
    with jobs[9].folder.locked():
        lines = lines_of(watch, width, height=16)
    assert len(lines) == 15  # and the line that says where the sweep is
    assert max(map(len, lines)) <= width
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]
    shown = [(row[0].partition("seed=")[2], row[1]) for row in rows]
    assert shown == [
        *(("9", "running"), ("31", "failed"), ("7", "interrupted"), ("1", "finished"), ("2", "finished")),
        *(("4", "finished"), ("3", "finished"), ("5", "finished")),
    ]
    assert lines[-3] == "and 32 more"
    assert lines[-2].startswith("40 jobs: 5 finished, 1 failed, 34 to go, about ")
    assert lines[-1].startswith("best val/accuracy 0.5000 (optimizer.weight_decay=0.1 model=xxx")


def test_the_best_setting_is_that_of_the_best_mean_over_seeds(tmp_path: Path) -> None:
    config = OmegaConf.create({"optimized_metric": "val/loss", "optimized_mode": "auto"})
    values = {"a": (2.0, 2.4), "b": (1.0, 3.6), "c": (0.5,)}  # the best job, and one seed, are no mean
    done = [
        Row(
            "finished",
            Job((), (setting, f"seed={seed}"), RunFolder(tmp_path), lambda: config),
            {"task": "t", "metrics": {"val/loss": value}},
        )
        for setting, each in values.items()
        for seed, value in enumerate(each)
    ]
    lines = best_of(done, with_means=True)
    assert lines[1] == "best mean val/loss 2.2000 ± 2.5 over 2 seeds (a)"
    assert len(best_of(done[:2], with_means=True)) == 1, "there is nothing to choose from"
    assert best_of([], with_means=True) == []


class Clock:
    now = 100.0

    def perf_counter(self) -> float:
        return self.now


def test_the_rest_is_estimated_by_what_has_ended_since_the_sweep_began(tmp_path, monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    for name in ("a", "b", "c"):
        make_run(tmp_path, name)
    jobs = jobs_in(tmp_path, *"abcdefg")
    watch = Progress(tmp_path, jobs, 7, {})
    clock.now += 60
    best = "best val/accuracy 0.5000 (a)"
    assert watch.lines(watch.rows()) == ["7 jobs: 3 finished, 0 failed, 4 to go", best]
    make_run(tmp_path, "d")
    assert watch.lines(watch.rows()) == ["7 jobs: 4 finished, 0 failed, 3 to go, about 3 min left", best]
    clock.now += 60
    make_run(tmp_path, "e")
    assert watch.lines(watch.rows())[0].endswith(", about 2 min left")


def test_a_line_is_written_when_one_of_several_jobs_ends(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 0.01)
    jobs = jobs_in(tmp_path, "a", "b")
    with caplog.at_level(logging.INFO, progress.__name__), Progress(tmp_path, jobs, 2, {}):
        for count, name in enumerate("ab", start=1):
            make_run(tmp_path / "made", name).rename(tmp_path / name)  # in one step, as a run writes its record
            end = time.monotonic() + 60
            while not any(f"2 jobs: {count} finished" in line for line in caplog.messages):
                assert time.monotonic() < end, caplog.messages
                time.sleep(0.01)
    assert [line.partition(",")[0] for line in caplog.messages] == [f"2 jobs: {count} finished" for count in range(3)]
