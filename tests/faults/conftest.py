"""Fixtures of the fault tests: counted trials, the table at the end, and small data for every kind of task."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from faults.trials import SEED, SHARE, Trials
from tests_support import Scripts, sample_reviews, sample_rows, some_names, write_lines

PROPERTY = "trials"
ROWS = {"train": 600, "validation": 100, "test": 100}  # number of reviews and of pairs
REAL = os.environ.get("FIRSTLIGHT_DATA")
DATA_OF = {"sentiment": "amazon_reviews", "names": "names/names.txt", "translation": "multi30k"}
TASKS = tuple(DATA_OF)
MadeOnce = Callable[[str, Callable[[Path], object]], Path]
RunOf = Callable[[str], Path]  # from a task to the folder of a run
TrainingOf = Callable[[str], list[str]]  # from a task to the overrides of a training


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Iterator[None]:
    """Report the trials of a test, also to the process that prints the table. Fail if a trial failed."""
    trials = item.funcargs.get("trials")
    try:
        yield
        if trials and trials.failures:
            command = f"FAULTS_SEED={SEED} pytest -m faults '{item.nodeid}'"
            pytest.fail(f"{trials.report()}\n\nTo repeat: {command}", pytrace=False)
        if trials and not trials.tried and SHARE >= 1:
            pytest.fail("nothing was tried", pytrace=False)
    finally:
        if trials:
            item.user_properties.append((PROPERTY, [trials.kind, trials.tried, trials.passed]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print a table of the trials: kind, tried, passed."""
    tried, passed, skipped = Counter[str](), Counter[str](), dict[str, str]()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        for name, value in getattr(report, "user_properties", ()):
            if name == PROPERTY and report.when == "call":
                tried[value[0]] += value[1]
                passed[value[0]] += value[2]
    for report in terminalreporter.stats.get("skipped", ()):
        skipped[report.nodeid] = str(report.longrepr[-1])
    data = f"the first rows of {REAL}" if REAL else "the generated sample"
    width = max(map(len, [*tried, "kind"])) + 2
    terminalreporter.write_sep("=", "faults")
    terminalreporter.write_line(f"FAULTS_SEED={SEED}, data: {data}\n")
    terminalreporter.write_line(f"{'kind':<{width}}{'tried':>8}{'passed':>8}")
    for kind in sorted(tried):
        terminalreporter.write_line(f"{kind:<{width}}{tried[kind]:>8,}{passed[kind]:>8,}")
    terminalreporter.write_line(f"{'all':<{width}}{tried.total():>8,}{passed.total():>8,}")
    for name, reason in skipped.items():
        terminalreporter.write_line(f"not tried: {name}: {reason}")


@pytest.fixture
def trials(request: pytest.FixtureRequest) -> Trials:
    """Return a counter of the test's trials. The argument of the mark `faults` is their kind."""
    mark = request.node.get_closest_marker("faults")
    assert mark is not None, "mark the test with pytest.mark.faults(kind)"
    return Trials(*mark.args)


@pytest.fixture(scope="session")
def small_data(made_once: MadeOnce) -> Path:
    """Return a folder with the first rows of every data set below $FIRSTLIGHT_DATA, or of generated data."""
    return made_once("small-data", write_real_data if REAL else write_generated_data)


def write_real_data(folder: Path) -> None:
    assert REAL
    for name in ("amazon_reviews", "multi30k"):
        (folder / name).mkdir()
        for split, count in ROWS.items():
            first_lines(Path(REAL, name, f"{split}.jsonl"), count, folder / name / f"{split}.jsonl")
    (folder / "names").mkdir()
    first_lines(Path(REAL, "names", "names.txt"), 1000, folder / "names" / "names.txt")
    (folder / "shakespeare").mkdir()
    shutil.copy(Path(REAL, "shakespeare", "pg100.txt"), folder / "shakespeare")


def first_lines(source: Path, count: int, target: Path) -> None:
    with source.open(encoding="utf-8") as file:
        target.write_text("".join(islice(file, count)), encoding="utf-8")


def write_generated_data(folder: Path) -> None:
    for name in ("amazon_reviews", "multi30k", "names"):
        (folder / name).mkdir()
    for split, count in ROWS.items():
        write_lines(folder / "amazon_reviews" / f"{split}.jsonl", sample_reviews(count, split))
        write_lines(folder / "multi30k" / f"{split}.jsonl", sample_rows("pairs", count, split))
    (folder / "names" / "names.txt").write_text(some_names(1000), encoding="utf-8")


@pytest.fixture(scope="session")
def training(small_data: Path) -> TrainingOf:
    """Return a function for the overrides of a small training of a task: 50 steps, dropout, two validations."""
    common = [
        *("model=tiny", "dropout=0.2", "trainer.max_steps=50", "trainer.val_check_interval=25"),
        *("trainer.log_every_n_steps=5", "callbacks.checkpoint.every_n_train_steps=4", "threads=1"),
        *("trainer.max_epochs=-1", "trainer.check_val_every_n_epoch=null", "trainer.accelerator=cpu", "logger=csv"),
    ]
    of_task = {
        "sentiment": "context_length=23 data.batch_size=10 ++callbacks.confusion_matrix=null",
        "names": "data.batch_size=8 model.dim=16 callbacks.text_samples.num_tokens=11 trainer.limit_val_batches=10",
        "translation": "tokenizer=word data.batch_tokens=200 model.dim=32 schedule.warmup_steps=20 context_length=61"
        " trainer.limit_val_batches=3",
    }

    def overrides(task: str) -> list[str]:
        return [f"task={task}", f"data.path={small_data / DATA_OF[task]}", *common, *of_task[task].split()]

    return overrides


@pytest.fixture(scope="session")
def finished(made_once: MadeOnce, training: TrainingOf) -> RunOf:
    """Return a function for the folder of a finished run of a task. Tests only read it. Its cache is ../cache."""

    def run_of(task: str) -> Path:
        def fill(folder: Path) -> None:
            where = [f"hydra.run.dir={folder / 'run'}", f"paths.cache_dir={folder / 'cache'}"]
            Scripts(folder).succeed("train", *training(task), *where)

        return made_once(f"finished-{task}", fill) / "run"

    return run_of


@pytest.fixture
def copied(finished: RunOf, tmp_path: Path) -> RunOf:
    """Return a function that copies the finished run of a task to the test's folder."""

    def copy_of(task: str) -> Path:
        return Path(shutil.copytree(finished(task), tmp_path / f"copy-{task}"))

    return copy_of
