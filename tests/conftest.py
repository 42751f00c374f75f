"""What tests share: a small review data set, and the entry scripts run as a user runs them."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from firstlight.data.samples.reviews import generate
from tests_support import NO_NETWORK, Scripts, wait_until

os.environ |= NO_NETWORK  # before the Hub's client reads it
os.environ["OMP_NUM_THREADS"] = "1"  # the tests' networks are too small for more, and busy machines punish it
torch.set_num_threads(1)


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


@pytest.fixture(scope="session")
def reviews_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 600, 100 and 100 generated reviews as JSONL files."""
    folder = tmp_path_factory.mktemp("reviews")
    for seed, (split, count) in enumerate({"train": 600, "validation": 100, "test": 100}.items()):
        lines = (json.dumps(review) for review in generate(count, seed))
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tiny_training(reviews_folder: Path) -> list[str]:
    """Overrides that make a training of seconds: 30 steps, two validations."""
    return [
        f"data.path={reviews_folder}",
        "model=tiny",
        "data.batch_size=40",
        "context_length=23",
        "trainer.max_epochs=2",
        "trainer.log_every_n_steps=5",
        "trainer.accelerator=cpu",
    ]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, tiny_training: list[str]) -> Callable[[str], Path]:
    """The folder of a run of a task, trained once for all tests that only read it."""
    runs: dict[str, Path] = {}

    def run_of(task: str) -> Path:
        if task not in runs:
            runs[task] = Scripts(tmp_path_factory.mktemp(task)).train(f"task={task}", *tiny_training)
        return runs[task]

    return run_of


@pytest.fixture
def interrupt_at(scripts: Scripts) -> Iterator[Callable[..., int]]:
    """Start a training, send a signal once its checkpoint is at a step or beyond, and return the exit code."""
    started: list[subprocess.Popen[str]] = []

    def interrupt(folder: Path, number: signal.Signals, checkpoint_count: int, *arguments: str) -> int:
        process = scripts.start("train", *arguments)
        started.append(process)
        seen: set[int] = set()
        last = folder / "checkpoints" / "last.ckpt"

        def enough() -> bool:
            if last.exists():
                seen.add(last.stat().st_mtime_ns)
            return len(seen) >= checkpoint_count

        wait_until(enough, process)
        process.send_signal(number)
        process.communicate(timeout=120)
        return process.returncode

    yield interrupt
    for process in started:
        process.kill()
