"""A full or read-only disk ends a command with a one-line error.

No data is lost, and the command continues with more space.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.conftest import TASKS
from faults.test_kills import assert_same_run
from faults.trials import drawn, number_of
from tests_support import Done, Scripts, contents

TRAININGS = 6  # trainings of each task, each on a disk of a different size
ROOM = "size=256m"


class Disks:
    """Disks in memory, each new and empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mounted: list[Path] = []

    def new(self) -> Path:
        """Replace the last disk by a new one with enough space, and return its folder."""
        self.close()
        where = self.folder / f"disk{len(list(self.folder.iterdir()))}"
        where.mkdir()
        mount("-t", "tmpfs", "-o", ROOM, "tmpfs", str(where))
        self.mounted.append(where)
        return where

    def resize(self, size: int) -> None:
        """Set the size of the disk in bytes, which is rounded to pages of 4096."""
        mount("-o", f"remount,size={max(4, size // 1024)}k", str(self.mounted[-1]))

    def enlarge(self) -> None:
        mount("-o", f"remount,{ROOM}", str(self.mounted[-1]))

    def forbid_writing(self) -> None:
        mount("-o", "remount,ro", str(self.mounted[-1]))

    def close(self) -> None:
        while self.mounted:
            subprocess.run(["umount", "-l", str(self.mounted.pop())], check=True)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Disks]:
    """Return disks in memory. Skip the test if this machine cannot have any."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux can mount a tmpfs")
    folder = tmp_path / "disks"
    folder.mkdir()
    found = Disks(folder)
    try:
        found.new()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"a tmpfs cannot be mounted here: {error.stderr.decode().strip()}")
    try:
        yield found
    finally:
        found.close()


def used(folder: Path) -> int:
    """Return the number of bytes that a folder takes on a disk."""
    pages = (-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())
    return sum(pages)


def error_of(done: Done) -> str:
    """Return the one line with which a command ended. Fail if it ended in another way."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode in (1, 2), f"exit code {done.returncode}: {done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    assert len(lines) == 1, done.stderr
    return lines[0]


def assert_full(done: Done) -> None:
    """Fail unless a command ended with one line that reports a full disk."""
    line = error_of(done)
    assert "disk" in line or "No space left" in line, line


@pytest.mark.faults("full disk: trainings")
@pytest.mark.parametrize("task", TASKS)
def test_a_training_on_a_full_disk_goes_on_once_there_is_room(task, trials, disks, finished, training, tmp_path):
    whole = finished(task)
    size = used(whole.parent)
    chosen = random.Random(number_of(f"full disk {task}"))
    sizes = [int(size * 1.1 * chosen.uniform(index, index + 1) / TRAININGS) for index in range(TRAININGS)]
    for room in drawn(sizes, f"sizes {task}"):
        where = disks.new()
        with trials.one(f"{task} with {room:,} of {size:,} bytes", seconds=240, memory=None):
            disks.resize(room)
            overrides = [*training(task), f"hydra.run.dir={where / 'run'}", f"paths.cache_dir={where / 'cache'}"]
            done = Scripts(tmp_path).run("train", *overrides)
            if done.returncode:
                assert_full(done)
                disks.enlarge()
                record = where / "run" / "metrics.json"
                if record.exists():
                    assert json.loads(record.read_text())["status"] in ("running", "failed")
                Scripts(tmp_path).succeed("train", *overrides, "resume=auto")
            assert_same_run(whole, where / "run")
            hidden = [path.name for path in where.rglob(".*") if path.name not in (".hydra", ".lock")]
            assert not hidden, f"left: {hidden}"


@pytest.mark.faults("full disk: readers of a run")
@pytest.mark.parametrize("task", TASKS)
def test_what_is_written_by_readers_is_written_whole_or_not_at_all(task, trials, disks, finished, tmp_path, small_data):
    scripts = Scripts(tmp_path)
    texts = small_data / "multi30k" / "test.jsonl"
    uses = {"report": ["logs"], "evaluate": ["logs/run"], "explore": ["logs/run", "--figures", "curves"]}
    forms = ["safetensors", "torch-export", "onnx"]
    forms += ["huggingface"] if task == "names" else []  # the others have settings that it does not have
    uses |= {f"export {to}": ["logs/run", "--to", to, "--output", "out"] for to in forms}
    if task != "names":
        uses |= {
            f"predict {ending}": ["logs/run", "--input", str(texts), "--text-column", "en", "--output", f"x.{ending}"]
            for ending in ("csv", "tsv", "jsonl")
        }
    for name, arguments in drawn([*uses.items()], f"readers {task}"):
        for share in (0, 0.3, 0.7):
            where = disks.new()
            shutil.copytree(finished(task), where / "logs" / "run")
            scripts = Scripts(where)
            with trials.one(f"{task}: {name} with {share} of its room", seconds=120, memory=None):
                before = used(where)
                needed = 60_000 if name == "explore" else 24_000
                disks.resize(before + int(share * needed) + 4096)
                done = scripts.run(name.split()[0], *arguments)
                if done.returncode:
                    assert_full(done)
                    assert done.returncode == (2 if name.startswith("export") else 1)
                    left = [
                        str(path)
                        for path in where.rglob("*")
                        if path.name.startswith((".x", ".report", ".metrics", ".out", "out"))
                    ]
                    assert not left, f"left: {left}"
                    disks.enlarge()
                    scripts.succeed(name.split()[0], *arguments)


@pytest.mark.faults("read-only disk")
def test_what_must_write_on_a_read_only_disk_is_refused_in_one_line(trials, disks, finished, training) -> None:
    where = disks.new()
    shutil.copytree(finished("names"), where / "logs" / "names" / "runs" / "run")
    before = contents(where)
    disks.forbid_writing()
    run = "logs/names/runs/run"
    uses = [
        ("train", *training("names")),
        ("train", *training("names"), "-m", "seed=1,2"),
        ("evaluate", run),
        ("explore", run, "--figures", "curves"),
        ("report", "logs"),
        ("baseline", "--task", "names", "--data.source", "sample"),
    ]
    for name, *arguments in drawn(uses, "uses of a read-only disk"):
        with trials.one(" ".join((name, *arguments)), seconds=120, memory=None):
            done = Scripts(where).run(name, *arguments)
            assert "Read-only file system; name another place" in error_of(done)
            assert done.returncode == 2
    with trials.one("resume", seconds=120, memory=None):
        done = Scripts(where).run("train", f"resume={run}", "trainer.max_steps=60")
        assert done.returncode == 2
        assert done.stderr.endswith("the folder cannot be written; copy it to another place, and resume it there\n")
    for name, *arguments in drawn([("runs",), ("generate", run)], "readers of a read-only disk"):
        with trials.one(name, seconds=120, memory=None):
            Scripts(where).succeed(name, *arguments)
    assert contents(where) == before
