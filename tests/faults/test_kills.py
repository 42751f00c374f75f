"""A training that is killed or interrupted at any moment, and resumed, ends bit for bit like an uninterrupted one."""

import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from faults.conftest import TASKS, MadeOnce, TrainingOf
from faults.trials import Trials, drawn, number_of
from firstlight.data.cache import provide
from same_runs import assert_same_run
from tests_support import Process, Scripts, children_of, wait_until

KILLS = 21  # trials for each task
REPEATED = 4  # trainings that get a signal several times
SECONDS = 240  # the limit for a trial, which takes 3 to 8 s on an idle machine
SECONDS_OF_A_LOCK = 60  # the limit for a killed process to end
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}
SECONDS_OF_TRAINING = 1.5  # on an idle machine, from the first record to the end


@dataclass(frozen=True)
class Kill:
    """A way to end a run. moment: any, a save or a validation; after: number of the save; share: of the time."""

    number: signal.Signals
    to_group: bool
    accumulate: int
    resume: str  # auto or folder
    moment: str
    after: int
    share: float


def kills(task: str) -> list[Kill]:
    """Return kills that together cover every signal and moment. The rest is random."""
    chosen = random.Random(number_of(f"kills of {task}"))
    numbers, moments = [*CODES], ["any", "save", "validation"]
    return [
        Kill(
            number=numbers[index % 3],
            to_group=index % 4 < 2,
            accumulate=chosen.choice([1, 1, 3]),
            resume=chosen.choice(["auto", "folder"]),
            moment=moments[(index // 3 + index) % 3],
            after=chosen.randint(1, 9),
            share=chosen.random(),
        )
        for index in range(KILLS)
    ]


@pytest.fixture
def reference(made_once: MadeOnce, training: TrainingOf) -> Callable[[str, int], Path]:
    """Return a function for the folder of an uninterrupted run, by task and number of accumulated batches."""

    def run_of(task: str, accumulate: int) -> Path:
        def fill(folder: Path) -> None:
            Scripts(folder).succeed("train", *command(training(task), accumulate), f"hydra.run.dir={folder / 'run'}")

        return made_once(f"whole-{task}-{accumulate}", fill) / "run"

    return run_of


def command(training: list[str], accumulate: int) -> list[str]:
    """Return the overrides of a training that accumulates the gradients of `accumulate` batches."""
    return [*training, f"trainer.accumulate_grad_batches={accumulate}", f"trainer.val_check_interval={25 * accumulate}"]


@pytest.mark.faults("kills: weights, history, CSV, exit code")
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("part", range(6))
def test_a_run_that_was_killed_ends_as_one_that_was_not(part, task, trials, tmp_path, training, reference) -> None:
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


@contextmanager
def started(folder: Path, run: Path, *overrides: str) -> Iterator[Process]:
    """Start a long training in a run's folder, which is killed after the block."""
    words = (*overrides, "trainer.max_steps=5000", f"hydra.run.dir={run}")
    process = Scripts(folder).start("train", *words)
    try:
        yield process
    finally:
        process.kill()


@pytest.mark.faults("signals: repeated within 30 ms")
def test_a_repeated_signal_saves_the_step_that_is_named(trials: Trials, tmp_path: Path, training: TrainingOf) -> None:
    chosen = random.Random(number_of("repeated signals"))
    for index in range(REPEATED):
        number, at = (
            chosen.choice([signal.SIGTERM, signal.SIGHUP]),
            chosen.choice(["metrics.json", "history.jsonl", "save"]),
        )
        pauses = [chosen.uniform(0, 0.015) for _ in range(2)]
        with trials.one(f"{index}: {number.name} after {at}, pauses {pauses}", seconds=SECONDS, memory=None):
            run = tmp_path / str(index)
            with started(tmp_path, run, *training("names")) as process:
                if at == "save":
                    wait_until(lambda run=run: bool(unfinished(run / "checkpoints")), process)
                else:
                    wait_until((run / at).exists, process)
                for pause in (*pauses, 0):
                    os.kill(process.pid, number)
                    time.sleep(pause)
                out, err = process.communicate(timeout=120)
            assert process.returncode in (128 + number, -number), f"exit code {process.returncode}: {out}{err}"
            assert json.loads((run / "metrics.json").read_text())["status"] == "interrupted"
            last = run / "checkpoints" / "last.ckpt"
            step = torch.load(last, weights_only=True)["global_step"] if last.exists() else None
            named = "before the first checkpoint" if step is None else f"at step {step}."
            assert f"Interrupted {named}" in out, out


@pytest.mark.faults("processes of a training: signals and deaths")
@pytest.mark.parametrize("trainer", ["ddp_sim", "ddp"])
def test_the_processes_of_a_training_end_together(trainer, trials, tmp_path, training) -> None:
    chosen = random.Random(number_of(f"ranks of {trainer}"))
    strategy = {"ddp_sim": ["trainer=ddp_sim"], "ddp": ["trainer=ddp", "trainer.devices=2"]}[trainer]
    for index, number in enumerate((signal.SIGTERM, signal.SIGKILL)):
        with trials.one(f"{trainer}: {number.name}", seconds=SECONDS, memory=None):
            run = tmp_path / str(index)
            command = [*training("names"), *strategy, "trainer.max_steps=5000", f"hydra.run.dir={run}"]
            process = Scripts(tmp_path).start("train", *command, fresh=True, own_group=True)
            try:
                wait_until((run / "checkpoints" / "last.ckpt").exists, process)
                is_killed = number is signal.SIGKILL
                os.kill(chosen.choice(children_of(process.pid)) if is_killed else process.pid, number)
                out, err = process.communicate(timeout=30)  # waits for all that have the pipes open
                assert process.returncode == (1 if is_killed else 143), f"exit code {process.returncode}: {out}{err}"
                status = json.loads((run / "metrics.json").read_text())["status"]
                assert status == ("failed" if is_killed else "interrupted")
                if is_killed:
                    assert len([line for line in err.splitlines() if "was ended by SIGKILL" in line]) == 1, err
                    assert "Traceback" not in err, err
                wait_for_the_end_of_the_group(process.pid)
            finally:
                if has_group(process.pid):
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.faults("run folders that are removed or moved")
@pytest.mark.parametrize("how", ["removed", "moved"])
def test_a_run_whose_folder_vanishes_ends_with_one_line(how, trials, tmp_path, training) -> None:
    with trials.one(how, seconds=SECONDS, memory=None):
        run = tmp_path / "run"
        with started(tmp_path, run, *training("names")) as process:
            wait_until((run / "checkpoints" / "last.ckpt").exists, process)
            run.rename(tmp_path / "other")
            if how == "removed":
                shutil.rmtree(tmp_path / "other")
            _, err = process.communicate(timeout=120)
        assert process.returncode == 1
        assert [line for line in err.splitlines() if "was removed or moved" in line], err
        assert "Traceback" not in err, err
        assert not run.exists()
        assert how == "removed" or (tmp_path / "other" / "checkpoints" / "last.ckpt").exists()


class Trial:
    """A kill and the following commands, in a separate folder."""

    def __init__(self, scripts: Scripts, kill: Kill, overrides: list[str]) -> None:
        self.scripts, self.kill = scripts, kill
        # A run with resume=auto has this override in its first command too, because users repeat the command.
        again = ["resume=auto"] if kill.resume == "auto" else []
        self.command = [*overrides, *again]
        self.temporary = Path(tempfile.mkdtemp(prefix="kill-"))
        self.started: list[Process] = []

    @property
    def runs(self) -> list[Path]:
        return sorted(self.scripts.folder.glob("logs/*/runs/*"))

    @property
    def run(self) -> Path:
        """Return the folder of the run. A resumed run must not start a second one."""
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
        """Start the training, end it at the moment of the kill, and check its exit code."""
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
        """Wait until the moment of the signal, or until the process has ended."""
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
        """Wait until a checkpoint is partly written. The process is stopped to check this."""
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
        """Repeat the command, or resume the folder, until the run has ended. A locked run gives an error."""
        name = self.run.name
        again = self.command if self.kill.resume == "auto" else [f"resume={self.run}"]
        if self.record()["status"] == "finished" and self.kill.resume == "auto":
            return  # the same command would start a new run
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
        """Fail for a temporary file, or for a process of the group that still runs.

        What a kill left in the cache is removed by the next process that writes there, if it is a minute old.
        """
        hidden = [path.name for path in self.run.rglob(".*") if path.name not in (".hydra", ".lock")]
        assert not hidden, f"left in the run: {hidden}"
        left = list((self.scripts.folder / "logs").rglob(".writing-*"))
        for path in left:
            os.utime(path, (1, 1))
            provide(path.parent / "next", lambda folder: None, "Writing another folder")
        assert not any(map(Path.exists, left)), f"left in the cache: {left}"
        for process in self.started:
            wait_for_the_end_of_the_group(process.pid, SECONDS_OF_A_LOCK)

    def end(self) -> None:
        """Kill the remaining processes of the trial."""
        for process in self.started:
            if has_group(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(self.temporary, ignore_errors=True)


def wait_for_the_end_of_the_group(number: int, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while has_group(number):
        assert time.monotonic() < end, f"processes of the group {number} still run"
        time.sleep(0.05)


def has_group(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def unfinished(checkpoints: Path) -> set[str]:
    """Return the names of the checkpoints that are being written."""
    try:
        return {name for name in os.listdir(checkpoints) if name.startswith(".")}
    except FileNotFoundError:
        return set()


def count_changes(path: Path) -> Iterator[int]:
    """Yield, at each call, the number of times that a file was replaced so far."""
    seen = set[int]()
    for _ in count():
        if path.exists():
            seen.add(path.stat().st_mtime_ns)
        yield len(seen)
