"""Folders that several processes use at a time: readers and starts, removed runs, killed workers, missing locks."""

import errno
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faults.conftest import RunOf
from faults.damage import Damage, answered, damages
from faults.trials import Trials, drawn, number_of, scaled
from firstlight.commands import runs as list_of_runs
from firstlight.commands.report import ReportOptions, report
from firstlight.errors import UserError
from firstlight.files import locks
from firstlight.lab.reports.all_runs import gather
from firstlight.lab.reports.listing import Listed
from firstlight.lab.reports.run_rows import list_runs
from firstlight.runs.folder import LOCK, RunFolder, read_history
from firstlight.runs.named import find_run
from tests_support import ROOT, Scripts, captured, environment, records, wait_until

STARTS, LISTINGS, DAMAGES = 100, 8, 40  # trials
KILLED_SWEEPS = 2
HOLDER = ".lock.owner"


READER = """
import sys
from pathlib import Path
from firstlight.runs.folder import RunFolder

print("it reads", flush=True)
while True:
    RunFolder(Path(sys.argv[1])).is_locked()
"""


@pytest.mark.faults("readers against starts")
@pytest.mark.parametrize("num_readers", [1, 4])
def test_readers_never_make_a_start_fail(num_readers: int, trials: Trials, tmp_path: Path) -> None:
    folder, command = RunFolder(tmp_path), [sys.executable, "-c", READER, str(tmp_path)]
    env = environment() | {"PYTHONPATH": str(ROOT / "src")}
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) for _ in range(num_readers)]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "it reads\n"
        for number in range(scaled(STARTS)):
            with trials.one(f"start {number} against {num_readers} readers"), folder.locked():
                assert RunFolder(tmp_path).is_locked()
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()


@contextmanager
def coming_and_going(run: Path, logs: Path) -> Iterator[None]:
    """Copy a run to some places below a folder and remove it again, as long as the block runs."""
    over = threading.Event()

    def change(name: str) -> None:
        while not over.is_set():
            shutil.copytree(run, logs / "names" / "runs" / name)
            shutil.rmtree(logs / "names" / "runs" / name)

    changes = [threading.Thread(target=change, args=(name,)) for name in ("first", "second")]
    for each in changes:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in changes:
            each.join()


@pytest.mark.faults("runs that vanish while they are listed")
def test_a_run_that_vanishes_hides_no_other(trials: Trials, finished: RunOf, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    stays = logs / "names" / "runs" / "stays"
    shutil.copytree(finished("names"), stays)

    def listed() -> list[Listed]:
        return list(list_of_runs.all_listed(list_of_runs.newest_first(logs)))

    readers: dict[str, Callable[[], Any]] = {
        "gather": lambda: [run.folder for run in gather(logs)],
        "list_runs": lambda: [str(Path(each).relative_to(logs)) for each in list_runs(logs).folder],
        "latest": lambda: find_run("latest", logs) and ["names/runs/stays"],
        "best": lambda: find_run("best:val/loss", logs) and ["names/runs/stays"],
        "runs": lambda: [[each.cell(name) for name in list_of_runs.COLUMNS][-1] for each in listed()],
        "runs --json": lambda: [list_of_runs.plain(each, [])["folder"] for each in listed()],
        "report": lambda: report(ReportOptions(logs)) and ["names/runs/stays"],
    }
    with coming_and_going(stays, logs):
        for name, read in readers.items():
            for number in range(scaled(LISTINGS)):
                with trials.one(f"{name} {number}", seconds=60), captured():
                    assert any(each.endswith("names/runs/stays") for each in read())


@pytest.mark.faults("killed workers of sweeps")
def test_a_killed_worker_of_a_sweep_is_named_and_the_others_finish(trials, training, tmp_path) -> None:
    chosen = random.Random(number_of("killed workers"))
    for number in range(scaled(KILLED_SWEEPS)):
        scripts, killed, moment = Scripts(tmp_path), chosen.choice(("seed-1", "seed-2")), chosen.random()
        folder = tmp_path / "logs" / "sweeps" / f"s{number}"
        sweep = ["-m", *training("names"), "seed=1,2,3", f"sweep.name=s{number}"]
        sweep += ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
        with trials.one(f"{killed} is killed {moment:.2f} s after its start", seconds=400, memory=None):
            process = scripts.start("train", *sweep)
            wait_until((folder / killed / "metrics.json").is_file, process)
            time.sleep(moment)
            begun = json.loads((folder / killed / "metrics.json").read_text())
            os.kill(begun["process_id"], signal.SIGKILL)
            _, errors = process.communicate(timeout=300)
            found = records(folder)
            if begun["status"] == "running" and found[killed]["status"] == "failed":  # else it was about to end
                assert process.returncode == 1
                assert f"the first in logs/sweeps/s{number}/{killed}: its process was killed (SIGKILL(-9))" in errors
                assert "its process was killed" in found[killed]["reason"]
            assert [found[name]["status"] for name in found if name != killed] == ["finished"] * 2
            done = scripts.run_alone("train", *sweep)
            assert done.returncode == 0, done.stderr
            assert [record["status"] for record in records(folder).values()] == ["finished"] * 3


@pytest.mark.faults("killed workers of sweeps")
def test_the_jobs_of_a_killed_sweep_end_with_it_and_can_be_resumed(trials, training, tmp_path) -> None:
    scripts, sweep = Scripts(tmp_path), ["-m", *training("names"), "trainer.max_steps=100000", "seed=1,2,3"]
    sweep += ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        folder = tmp_path / "logs" / "sweeps" / number.name
        jobs = [RunFolder(folder / name) for name in ("seed-1", "seed-2")]
        with trials.one(f"{number.name} ends the sweep", seconds=400, memory=None):
            process = scripts.start("train", *sweep, f"sweep.name={number.name}", fresh=True)
            for job in jobs:
                wait_until(lambda job=job: job.is_locked() and read_history(job.history_file), process)
            ids = [process.pid, *(job.read()["process_id"] for job in jobs)]
            if sys.platform == "linux":
                assert len({Path(f"/proc/{each}/cmdline").read_bytes() for each in ids}) == 1, "the workers are forks"
            process.send_signal(number)
            process.communicate(timeout=60)  # at the end of the last process that can write
            assert [record["status"] for record in records(folder).values()] == ["interrupted"] * 2
            assert all(job.last_checkpoint.is_file() for job in jobs)


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the file system have no locks, for the process of the tests."""

    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(locks, "SECONDS_TO_SETTLE", 0.01)


@pytest.mark.faults("file systems without locks")
def test_without_locks_trainings_and_sweeps_run_and_exclude_one_another(no_locks, trials, training, tmp_path) -> None:
    scripts, run = Scripts(tmp_path), tmp_path / "run"
    command = [*training("names"), f"hydra.run.dir={run}", "trainer.max_steps=2"]
    with trials.one("a training", seconds=120, memory=None):
        done = scripts.succeed("train", *command)
        assert "the file system has no locks" in done.stdout + done.stderr
    with trials.one("a second process", seconds=120, memory=None), RunFolder(run).locked():
        done = scripts.run("train", f"resume={run}", "trainer.max_steps=4")
        assert done.returncode == 2
        assert "another process is training this run; wait for it, or stop it" in done.stderr
    with trials.one("the run is resumed", seconds=120, memory=None):
        scripts.succeed("train", f"resume={run}", "trainer.max_steps=4")
    with trials.one("a sweep", seconds=240, memory=None):
        scripts.succeed("train", "-m", *training("names"), "trainer.max_steps=2", "seed=1,2", "sweep.name=s")
    left = list(tmp_path.rglob(f"*{HOLDER}"))
    assert not left


@pytest.mark.faults("file systems without locks")
def test_without_locks_any_file_of_an_owner_is_read(no_locks: None, trials: Trials, tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    owner = tmp_path / HOLDER

    def check(damage: Damage) -> None:
        owner.write_bytes(damage.apply(b"node7 4711"))
        assert answered(RunFolder(tmp_path).is_locked) in (True, False)
        os.utime(owner, (0, 0))
        with RunFolder(tmp_path).locked():
            pass

    trials.examples(damages("value"), partial(check), DAMAGES, "owner")
    for moment in drawn([0.0, 30.0, 45.0], "moments of a beat"):
        with trials.one(f"an owner on another host {moment:g} s ago"):
            owner.write_text("elsewhere 1")
            os.utime(owner, (time.time() - moment,) * 2)
            with pytest.raises(UserError, match="another process"), RunFolder(tmp_path).locked():
                pass
