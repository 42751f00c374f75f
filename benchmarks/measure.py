"""Functions that the benchmarks share: runs of src/train.py, timing in turns, and tables of results."""

import errno
import json
import logging
import os
import platform
import runpy
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

NOTHING_EVALUATED = ["trainer.max_epochs=100000", "trainer.limit_val_batches=0", "test=false"]

RECORD = "BENCHMARK_RECORD"  # the variable that names a file to which each table is appended, a line of JSON each

_objects: dict[str, Any] = {}  # the objects of the current run by their configuration key


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that a function takes."""
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at


def by_turns(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each function. All run once per turn, so that a slow machine affects all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(seconds(work))
    return times


def ratio(times: Sequence[float], others: Sequence[float]) -> str:
    """Return the median of the ratios of all turns, and the lowest and highest ratio, as a text."""
    ratios = [one / other for one, other in zip(times, others, strict=True)]
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    return f"{middle:.3g}" if len(ratios) == 1 else f"{middle:.3g} ({low:.3g} to {high:.3g})"


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. The first column has names, and the others have numbers. `aims.py` reads it from a file."""
    texts = [list(map(str, row)) for row in rows]
    if RECORD in os.environ:
        with Path(os.environ[RECORD]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(texts) + "\n")
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in texts:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def train(overrides: Sequence[str], folder: Path, objects: Mapping[str, Any]) -> dict[str, Any]:
    """Run `python src/train.py` in this process, without validation and test, and return its metrics.json.

    overrides: as for src/train.py; folder: the run folder; objects: parts of the run that the benchmark provides, by
    their configuration key, such as {"callbacks.stopwatch": Stopwatch()}. In all other respects the run equals a user's
    run on a terminal. Exits with code 2 for a mistake in the overrides, as src/train.py does.
    """
    own = [f"++{key}={{_target_:measure.object_of,key:{key}}}" for key in objects]
    script = str(ROOT / "src" / "train.py")
    command = [script, *NOTHING_EVALUATED, *overrides, *own, f"hydra.run.dir={folder}"]
    with (
        patch.dict(_objects, objects),
        patch.object(sys, "argv", command),
        terminal() as file,
        redirect_stdout(file),
    ):
        runpy.run_path(script, run_name="__main__")
    record: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return record


def object_of(key: str) -> Any:
    """Return an object of the current run, for `_target_: measure.object_of` in its configuration."""
    return _objects[key]


@contextmanager
def terminal() -> Iterator[TextIO]:
    """Open a pseudo-terminal, so that the progress bar is drawn. The output is discarded."""
    master, slave = os.openpty()
    reader = threading.Thread(target=_drain, args=(master,), daemon=True)
    reader.start()
    with os.fdopen(slave, "w", encoding="utf-8") as file:
        try:
            yield file
        finally:
            root = logging.getLogger()
            for handler in [each for each in root.handlers if getattr(each, "stream", None) is file]:
                root.removeHandler(handler)  # a handler of the run, which would write to a closed terminal
    reader.join()


def _drain(master: int) -> None:
    try:
        while os.read(master, 65536):
            pass
    except OSError as error:  # Linux raises an error if all ends of a terminal are closed
        assert error.errno == errno.EIO
    os.close(master)


def versions(threads: int | None = None) -> str:
    """Return the versions and the number of threads of a measurement, in one line."""
    from importlib.metadata import version

    libraries: Any = ", ".join(f"{name} {version(name)}" for name in ("torch", "lightning"))
    told = "" if threads is None else f", {threads} CPU thread{'s' * (threads != 1)}"
    return f"Python {platform.python_version()}, {libraries}{told}"
