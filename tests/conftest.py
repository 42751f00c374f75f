"""Fixtures that all tests share: a small review data set, and the entry scripts, run as a user runs them.

This module imports neither torch nor Hydra, because the controller process of pytest-xdist needs neither.
"""

import contextlib
import functools
import gc
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

import pytest
from filelock import FileLock

from processes import CAN_FORK, NO_NETWORK, end_server, start_server
from tests_support import TRUE_PROCESSES, Process, Scripts, children_of, sample_reviews, wait_until, write_short_samples

FIXTURES = ("callback_fixtures", "logged_runs", "split_folders")  # further modules of fixtures
pytest.register_assert_rewrite(*FIXTURES)
SHARED: dict[Path, int] = {}  # the files of the runs of `trained`, and their modification times

os.environ |= NO_NETWORK  # before the Hub's client reads it
os.environ["WANDB_ERROR_REPORTING"] = "false"  # as well, by W&B
os.environ["OMP_NUM_THREADS"] = "1"  # more threads slow down networks as small as those of the tests
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts a command in the background so
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the processes that tests interrupt inherit it
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # `nohup` starts a command so
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


gc.disable()  # until the tests are collected: imports make objects that stay


def pytest_configure(config: pytest.Config) -> None:
    """Import the libraries, start the fork server, and add the fixtures of other modules, where tests are run."""
    if config.getoption("dist", "no") != "no" and "PYTEST_XDIST_WORKER" not in os.environ:
        return
    import firstlight.lit.light  # noqa: F401  (before Lightning, as in a command)
    import preloaded

    if CAN_FORK:
        start_server(preloaded.prepare)
    for name in FIXTURES:
        config.pluginmanager.import_plugin(name)


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collections and make these rare, which saves a tenth of the time."""
    import torch

    torch.set_num_threads(1)
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tests, which all workers of pytest-xdist share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    """End the fork server with the tests."""
    yield
    end_server()


@pytest.fixture(scope="session", autouse=True)
def files_are_merged_once(root: Path) -> Iterator[None]:
    """Let Hydra read and merge the same files once. The tests of the commands then take a third of the time."""
    import composed_once  # imports Hydra

    composed_once.FOLDER = root / "composed"
    composed_once.FOLDER.mkdir(exist_ok=True)
    with contextlib.nullcontext() if TRUE_PROCESSES else composed_once.composed_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def packages_are_searched_once() -> Iterator[None]:
    """Let Lightning search the installed packages for callbacks only once, and not for each Trainer."""
    registry = sys.modules.get("lightning.fabric.utilities.registry")
    if registry is None or TRUE_PROCESSES:
        yield
        return
    with patch.object(registry, "entry_points", functools.cache(registry.entry_points)):
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """Let os.fsync do nothing: the files of tests need not survive a power cut. It takes milliseconds for each file."""
    with contextlib.nullcontext() if TRUE_PROCESSES else patch.object(os, "fsync", lambda _: None):
        yield


@pytest.fixture(scope="module", autouse=True)
def figures_are_sketched(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Draw figures small and without a layout, which takes half of the time. Yields how to draw them in full.

    tests/figures draws each of them as a user sees it.
    """
    style, engines = (sys.modules.get(name) for name in ("firstlight.figures.style", "matplotlib.layout_engine"))
    if style is None or engines is None or TRUE_PROCESSES or request.path.parent.name == "figures":
        yield contextlib.nullcontext
        return
    engine = engines.ConstrainedLayoutEngine
    in_full = style.PIXELS_WIDE, engine.execute

    @contextlib.contextmanager
    def drawn(pixels_wide: int, lay_out: Callable[..., None]) -> Iterator[None]:
        with patch.object(style, "PIXELS_WIDE", pixels_wide), patch.object(engine, "execute", lay_out):
            yield

    with drawn(640, lambda *_: None):
        yield functools.partial(drawn, *in_full)


@pytest.fixture
def drawn_in_full(figures_are_sketched: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Draw the figures of this test as a user sees them."""
    with figures_are_sketched():
        yield


@pytest.fixture
def compiled_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let torch.compile generate no code, for which it needs a C++ compiler and 12 s. `make test-all` does without."""
    import torch

    if not TRUE_PROCESSES:
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))


@pytest.fixture(scope="session")
def made_once(root: Path) -> Callable[[str, Callable[[Path], object]], Path]:
    """Return a function for the folder of a name. The first worker fills it, and all workers only read it."""

    def folder_of(name: str, fill: Callable[[Path], object]) -> Path:
        folder, is_filled = root / f"once-{name}", root / f"once-{name}.filled"
        with FileLock(root / f"once-{name}.lock"):
            if not is_filled.exists():
                shutil.rmtree(folder, ignore_errors=True)  # the folder of a failed worker
                folder.mkdir()
                fill(folder)
                is_filled.touch()
        return folder

    return folder_of


@pytest.fixture(scope="session")
def sample_cache(made_once: Callable[[str, Callable[[Path], object]], Path]) -> str:
    """Return an override with which all runs on the generated sample share one cache."""
    return f"paths.cache_dir={made_once('sample', lambda folder: None)}"


@pytest.fixture
def small_sample(made_once: Callable[[str, Callable[[Path], object]], Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """Shorten the samples to 1,000, 100 and 100 rows in this process. Return an override for their own cache."""
    from firstlight.data import sources

    monkeypatch.setattr(sources, "SAMPLES", made_once("short-samples", write_short_samples))
    return f"paths.cache_dir={made_once('small-sample', lambda folder: None)}"


@pytest.fixture(autouse=True)
def shared_runs_stay_as_they_are(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that changes a file of a run of `trained`, so that later tests do not fail instead."""
    yield
    if "trained" not in request.fixturenames:  # such a test finds no run of it
        return
    changed = [file for file, time in SHARED.items() if not file.exists() or file.stat().st_mtime_ns != time]
    for file in changed:  # report each change once
        del SHARED[file]
    assert not changed, f"the test has changed a run that others read: {', '.join(map(str, changed))}"


@pytest.fixture(autouse=True)
def options_are_spelled_as_in_the_code() -> Iterator[None]:
    """Spell options as in the code, such as `data.path`. test_spelling.py tests the spelling for users."""
    from firstlight import spelling  # not before the fork server

    spelling.use(spelling.as_override)
    yield
    spelling.use(spelling.as_keyword)


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working folder, without FIRSTLIGHT_DATA and a proxy."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for variable in ("FIRSTLIGHT_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    return folder


@pytest.fixture(scope="session")
def reviews_folder(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """Return a folder with 600, 100 and 100 generated reviews as JSONL files."""
    return made_once("reviews", write_reviews)


def write_reviews(folder: Path) -> None:
    for split, count in {"train": 600, "validation": 100, "test": 100}.items():
        lines = (json.dumps(review) for review in sample_reviews(count, split))
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def drawn_training(reviews_folder: Path) -> list[str]:
    """Return overrides for a training of a few seconds: 30 steps, two validations, and the default figures."""
    return short_training(reviews_folder, 40)


@pytest.fixture(scope="session")
def tiny_training(reviews_folder: Path) -> list[str]:
    """Return overrides for 20 steps without the confusion matrix, which takes half of the time of a short training."""
    return short_training(reviews_folder, 60, "++callbacks.confusion_matrix=null")


def short_training(reviews: Path, batch_size: int, *overrides: str) -> list[str]:
    return [
        f"data.path={reviews}",
        "model=tiny",
        f"data.batch_size={batch_size}",
        "context_length=23",
        "trainer.max_epochs=2",
        "trainer.log_every_n_steps=5",
        *overrides,
        "trainer.accelerator=cpu",
    ]


@pytest.fixture(scope="session")
def trained(
    made_once: Callable[[str, Callable[[Path], object]], Path], drawn_training: list[str]
) -> Callable[[str], Path]:
    """Return a function for the folder of a run of a task, which is trained once. Tests only read it."""
    runs: dict[str, Path] = {}

    def run_of(task: str) -> Path:
        if task not in runs:
            folder = made_once(f"trained-{task}", lambda folder: Scripts(folder).train(f"task={task}", *drawn_training))
            run = Scripts(folder).newest_run()
            assert '"val/' in (run / "history.jsonl").read_text(), f"the run of {task} has logged no validation"
            files = (
                file for file in run.rglob("*") if file.is_file() and file.suffix != ".log"
            )  # logged to until the end
            SHARED.update({file: file.stat().st_mtime_ns for file in files})
            runs[task] = run
        return runs[task]

    return run_of


@pytest.fixture
def interrupt_at(scripts: Scripts) -> Iterator[Callable[..., int]]:
    """Return a function that interrupts a training after some checkpoints, and returns its exit code.

    to_all: send the signal also to the processes that load batches, as a terminal, systemd and Slurm do.
    """
    started: list[Process] = []

    def interrupt(
        folder: Path,
        number: signal.Signals,
        checkpoint_count: int,
        *arguments: str,
        fresh: bool = False,
        to_all: bool = False,
    ) -> int:
        process = scripts.start("train", *arguments, fresh=fresh)
        started.append(process)
        seen: set[int] = set()
        last = folder / "checkpoints" / "last.ckpt"

        def enough() -> bool:
            if last.exists():
                seen.add(last.stat().st_mtime_ns)
            return len(seen) >= checkpoint_count

        wait_until(enough, process)
        for child in children_of(process.pid) if to_all else ():
            os.kill(child, number)
        process.send_signal(number)
        process.communicate(timeout=120)
        return process.returncode

    yield interrupt
    for process in started:
        process.kill()
