"""Fixtures for tests of loggers: a sweep over a task of each kind, with all loggers."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests_support import Scripts, sample_rows, some_names, some_text, write_lines
from wandb_files import ALIKE, TASKS, Run, no_key, runs_below

EDITION = """*** START OF THE PROJECT GUTENBERG EBOOK 0 ***

THE LOST LAMP

Dramatis Personæ

MIRO, a lampmaker.

ACT I

SCENE I. A street.

{speeches}

*** END OF THE PROJECT GUTENBERG EBOOK 0 ***
"""
SHORT = [
    *("model=tiny", "context_length=61", "trainer.max_epochs=2", "trainer.limit_train_batches=3"),
    *("trainer.log_every_n_steps=2", "trainer.limit_val_batches=2", "trainer.limit_test_batches=2"),
    "trainer.accelerator=cpu",
]
OWN_LOGGER = '''
"""A user's logger, which writes a line for each call."""

import json
from pathlib import Path

from lightning.pytorch.loggers import Logger


class Lines(Logger):
    def __init__(self, folder):
        super().__init__()
        self.path = Path(folder) / "own.jsonl"

    name, version = "lines", ""

    def log_metrics(self, metrics, step=None):
        self.write({"step": step, **metrics})

    def log_hyperparams(self, params):
        self.write({"told": params})

    def write(self, line):
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\\n")
'''


@pytest.fixture(scope="session")
def data_folder(made_once: Callable[[str, Callable[[Path], None]], Path], reviews_folder: Path) -> Path:
    """Return a folder for $FIRSTLIGHT_DATA with a small part of each data set."""
    return made_once("data", lambda folder: write_data(folder, reviews_folder))


def write_data(folder: Path, reviews: Path) -> None:
    shutil.copytree(reviews, folder / "amazon_reviews")
    for name in ("names", "shakespeare", "multi30k"):
        (folder / name).mkdir()
    (folder / "names" / "names.txt").write_text(some_names(1500), encoding="utf-8")
    edition = EDITION.format(speeches=some_text(30_000))
    (folder / "shakespeare" / "works.txt").write_text(edition, encoding="utf-8")
    for split, count in {"train": 300, "validation": 30, "test": 30}.items():  # beam search is slow
        write_lines(folder / "multi30k" / f"{split}.jsonl", sample_rows("pairs", count, split))


@pytest.fixture(scope="session")
def logged(made_once: Callable[[str, Callable[[Path], None]], Path], data_folder: Path) -> Callable[[str], Run]:
    """Return a function that returns the run of a task. The runs are from a sweep with all loggers and a user's logger.

    The tasks that only slow tests use have a separate sweep.
    """
    runs: dict[str, Run] = {}

    def run_of(task: str) -> Run:
        if task not in runs:
            tasks = ALIKE if task in ALIKE else [other for other in TASKS if other not in ALIKE]
            folder = made_once(f"logged-{'-'.join(tasks)}", lambda folder: log_a_sweep(folder, data_folder, tasks))
            found = {run.folder.name.removeprefix("task-"): run for run in runs_below(folder / "logs" / "sweeps")}
            assert set(found) == set(tasks)
            runs.update(found)
        return runs[task]

    return run_of


@pytest.fixture(scope="session")
def played(
    made_once: Callable[[str, Callable[[Path], None]], Path],
    data_folder: Path,
    logged: Callable[[str], Run],
    trained: Callable[[str], Path],
) -> Callable[[str], Path]:
    """Return a function for the folder of a task's run, which is loaded into a playground."""

    def train_on_plays(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("FIRSTLIGHT_DATA", str(data_folder))
            Scripts(folder).train("task=shakespeare", *SHORT, "test=false")

    def folder_of(task: str) -> Path:
        if task == "sentiment":
            return trained(task)
        if task == "shakespeare":  # the sweep of `logged` would train two more tasks
            return Scripts(made_once("played-shakespeare", train_on_plays)).newest_run()
        return logged(task).folder

    return folder_of


def log_a_sweep(folder: Path, data_folder: Path, tasks: Sequence[str]) -> None:
    (folder / "my_logger.py").write_text(OWN_LOGGER, encoding="utf-8")
    overrides = [
        *(f"task={','.join(tasks)}", *SHORT, "logger=many", "logger.wandb.log_model=true", "test=true"),
        *("+logger.trackio._target_=firstlight.runs.trackio_logger.TrackioLogger", "+logger.trackio.tags=[one]"),
        *("+logger.trackio.folder=${paths.log_dir}/trackio", "tags=[one,two]"),
        *("+logger.own._target_=my_logger.Lines", "+logger.own.folder=${paths.output_dir}"),
    ]
    own = no_key(folder) | {"FIRSTLIGHT_DATA": str(data_folder), "PYTHONPATH": str(folder)}
    done = Scripts(folder).run_alone("train", "-m", *overrides, environ=own)
    assert done.returncode == 0, done.stdout + done.stderr
