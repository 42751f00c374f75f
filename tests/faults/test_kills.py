"""A training that is killed or interrupted at any moment ends as one that was not, bit for bit."""

import csv
import hashlib
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from faults.conftest import TASKS
from faults.trials import Trials, drawn, number_of
from tests_support import Process, Scripts, wait_until

KILLS = 21  # of each task
SECONDS = 240  # for a trial, of which a quiet machine needs 3 to 8
SECONDS_OF_A_LOCK = 60  # in which the workers of a killed process must have ended
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}
SECONDS_OF_TRAINING = 1.5  # of a quiet machine, from the first record to the end


@dataclass(frozen=True)
class Kill:
    """How a run is ended. moment: any, a save or a validation; after: which save; share: of the training's time."""

    number: signal.Signals
    to_group: bool
    workers: int
    accumulate: int
    resume: str  # auto or folder
    moment: str
    after: int
    share: float


def kills(task: str) -> list[Kill]:
    """Kills that together have every signal, number of workers and moment, the rest at random."""
    chosen = random.Random(number_of(f"kills of {task}"))
    numbers, moments = [*CODES], ["any", "save", "validation"]
    made = []
    for index in range(KILLS):
        made.append(
            Kill(
                number=numbers[index % 3],
                to_group=index % 4 < 2,
                workers=2 * (index % 2),
                accumulate=chosen.choice([1, 1, 3]),
                resume=chosen.choice(["auto", "folder"]),
                moment=moments[(index // 3 + index) % 3],
                after=chosen.randint(1, 9),
                share=chosen.random(),
            )
        )
    return made


@pytest.fixture
def reference(
    made_once: Callable[[str, Callable[[Path], None]], Path], training: Callable[[str], list[str]]
) -> Callable[[str, int], Path]:
    """The folder of a run that nobody interrupted, of a task and a number of accumulated batches."""

    def run_of(task: str, accumulate: int) -> Path:
        def fill(folder: Path) -> None:
            done = Scripts(folder).run("train", *command(training(task), accumulate), f"hydra.run.dir={folder / 'run'}")
            assert done.returncode == 0, done.stdout + done.stderr

        return made_once(f"whole-{task}-{accumulate}", fill) / "run"

    return run_of


def command(training: list[str], accumulate: int) -> list[str]:
    """The overrides of a training that accumulates the gradients of so many batches."""
    return [
        *training,
        f"trainer.accumulate_grad_batches={accumulate}",
        f"trainer.val_check_interval={25 * accumulate}",
    ]


@pytest.mark.faults("kills: weights, history, CSV, exit code")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("part", range(6))
def test_a_run_that_was_killed_ends_as_one_that_was_not(
    part: int,
    task: str,
    trials: Trials,
    tmp_path: Path,
    training: Callable[[str], list[str]],
    reference: Callable[[str, int], Path],
) -> None:
    for index, kill in drawn([*enumerate(kills(task))], f"kills of {task}")[part::6]:
        whole = reference(task, kill.accumulate)
        folder = tmp_path / str(index)
        folder.mkdir()
        with trials.one(f"{task} {index}: {kill}", seconds=SECONDS, memory=None):
            trial = Trial(Scripts(folder), kill, command(training(task), kill.accumulate))
            try:
                trial.interrupt()
                trial.resume()
                assert_same_run(whole, trial.run)
                trial.refuse_leftovers()
            finally:
                trial.end()
        shutil.rmtree(folder, ignore_errors=True)


class Trial:
    """One kill and what follows, in a folder of its own."""

    def __init__(self, scripts: Scripts, kill: Kill, overrides: list[str]) -> None:
        self.scripts, self.kill = scripts, kill
        # What stands in the command of a run that resumes itself is in the first command too, as people repeat it.
        again = ["resume=auto"] if kill.resume == "auto" else []
        self.command = [*overrides, f"data.num_workers={kill.workers}", *again]
        self.temporary = Path(tempfile.mkdtemp(prefix="kill-"))  # short, as workers have sockets in it
        self.started: list[Process] = []

    @property
    def runs(self) -> list[Path]:
        return sorted(self.scripts.folder.glob("logs/*/runs/*"))

    @property
    def run(self) -> Path:
        """The folder of the run. There is one only: a run that goes on does not start anew."""
        found = self.runs
        assert len(found) == 1, f"there are {len(found)} runs: {[path.name for path in found]}"
        return found[0]

    def record(self) -> dict[str, Any]:
        return json.loads((self.run / "metrics.json").read_text())

    def start(self, *overrides: str) -> Process:
        own = {"TMPDIR": str(self.temporary)}
        process = self.scripts.start("train", *overrides, own_group=True, environ=own)
        self.started.append(process)
        return process

    def interrupt(self) -> None:
        """Start the training, end it at its moment, check how it ended."""
        process = self.start(*self.command)
        wait_until(lambda: any((run / "metrics.json").exists() for run in self.runs), process)
        self.wait_for_the_moment(process)
        if process.poll() is None:
            send = os.killpg if self.kill.to_group else os.kill
            send(process.pid, self.kill.number)
        code = process.wait(timeout=120)
        status = self.record()["status"]
        if self.kill.number is signal.SIGKILL:
            expected = code == -signal.SIGKILL and status in ("running", "finished")
        else:
            expected = code == CODES[self.kill.number] and status == "interrupted"
        came_too_late = status == "finished" and code in (0, -self.kill.number)
        assert expected or came_too_late, f"exit code {code}, status {status}: {process.communicate(timeout=60)}"

    def wait_for_the_moment(self, process: Process) -> None:
        """Wait until the signal is to be sent, or until the process has ended."""
        checkpoints = self.run / "checkpoints"
        if self.kill.moment == "any":
            end = time.monotonic() + self.kill.share * SECONDS_OF_TRAINING
            while time.monotonic() < end and process.poll() is None:
                time.sleep(0.001)
        elif self.kill.moment == "validation":  # the checkpoint of step 24 is written, and step 25 is validated
            changes = count_changes(checkpoints / "last.ckpt")
            while next(changes) < 6 and process.poll() is None:
                time.sleep(0.0005)
            time.sleep(0.005 + 0.1 * self.kill.share)
        else:
            self.wait_for_a_save(process, checkpoints)

    def wait_for_a_save(self, process: Process, checkpoints: Path) -> None:
        """Wait until a checkpoint is half written: stop the process, and look again whether it is."""
        seen = set[str]()
        while process.poll() is None:
            names = unfinished(checkpoints)
            seen |= names
            if names and len(seen) >= self.kill.after:
                if self.kill.number is not signal.SIGKILL:
                    return
                os.kill(process.pid, signal.SIGSTOP)
                if unfinished(checkpoints):
                    return
                os.kill(process.pid, signal.SIGCONT)

    def resume(self) -> None:
        """Repeat the command, or resume the folder, until the run has ended; a run that still has a lock is refused."""
        name = self.run.name
        again = self.command if self.kill.resume == "auto" else [f"resume={self.run}"]
        if self.record()["status"] == "finished" and self.kill.resume == "auto":
            return  # the same command would start another run
        end = time.monotonic() + SECONDS_OF_A_LOCK
        while True:
            process = self.start(*again)
            out, err = process.communicate(timeout=180)
            if process.returncode == 0:
                break
            assert process.returncode == 2, f"exit code {process.returncode}: {out}{err}"
            assert "another process" in err, err
            assert time.monotonic() < end, f"the lock is held for more than {SECONDS_OF_A_LOCK} s: {err}"
            time.sleep(0.2)
        assert self.run.name == name
        assert self.record()["status"] == "finished"

    def refuse_leftovers(self) -> None:
        """Fail for a temporary file, or a process of the group that goes on."""
        hidden = [path.name for path in self.run.rglob(".*") if path.name not in (".hydra", ".lock")]
        assert not hidden, f"left in the run: {hidden}"
        cache = [str(path) for path in (self.scripts.folder / "logs").rglob(".writing-*")]
        assert not cache, f"left in the cache: {cache}"
        end = time.monotonic() + SECONDS_OF_A_LOCK
        while left := [process.pid for process in self.started if has_group(process.pid)]:
            assert time.monotonic() < end, f"processes of the groups {left} still run"
            time.sleep(0.05)

    def end(self) -> None:
        """Kill what is left of the trial."""
        for process in self.started:
            if has_group(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(self.temporary, ignore_errors=True)


def has_group(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def unfinished(checkpoints: Path) -> set[str]:
    """The names of the checkpoints that are being written."""
    try:
        return {name for name in os.listdir(checkpoints) if name.startswith(".")}
    except FileNotFoundError:
        return set()


def count_changes(path: Path) -> Iterator[int]:
    """How often a file was seen to be another one, at each call."""
    seen = set[int]()
    for _ in count():
        if path.exists():
            seen.add(path.stat().st_mtime_ns)
        yield len(seen)


def assert_same_run(whole: Path, other: Path) -> None:
    for name in ("last", "best"):
        assert digest(whole, name) == digest(other, name), f"the weights of {name}.ckpt differ"
    assert curve(whole) == curve(other), "the histories differ"
    assert table(whole) == table(other), "the CSV files differ"
    results = [json.loads((run / "metrics.json").read_text())["metrics"] for run in (whole, other)]
    assert results[0] == results[1], "the results differ"


def digest(run: Path, name: str) -> str:
    """The hash of all weights of a checkpoint."""
    weights = torch.load(run / "checkpoints" / f"{name}.ckpt", weights_only=True)["state_dict"]
    found = hashlib.sha256()
    for key, value in sorted(weights.items()):
        found.update(key.encode() + value.contiguous().numpy().tobytes())
    return found.hexdigest()


def curve(run: Path) -> list[dict[str, Any]]:
    """The history without seconds, and without the learning rate, of which Lightning's monitor may skip a line."""
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    kept = [{key: value for key, value in line.items() if is_compared(key)} for line in lines]
    return [line for line in kept if line.keys() > {"step", "epoch"}]


def table(run: Path) -> list[dict[str, str]]:
    """Likewise the rows of csv/metrics.csv, without the cells that are empty."""
    (path,) = (run / "csv").rglob("metrics.csv")
    with path.open(newline="") as file:
        rows = [
            {key: value for key, value in row.items() if value and is_compared(key)} for row in csv.DictReader(file)
        ]
    return [row for row in rows if row.keys() > {"step", "epoch"}]


def is_compared(key: str) -> bool:
    return "second" not in key and not key.startswith("lr-")
