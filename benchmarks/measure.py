"""What the scripts of this folder share: a run that is composed and built, work timed by turns, a table of it."""

import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from firstlight.runs.build import Parts


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at


def by_turns(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """The seconds of each piece of work: all of them once, then all again, so that a slow machine slows them alike."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(seconds(work))
    return times


def ratio(times: Sequence[float], others: Sequence[float]) -> str:
    """The median of the ratios turn by turn, and the lowest and highest of them."""
    ratios = [one / other for one, other in zip(times, others, strict=True)]
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    return f"{middle:.3g}" if len(ratios) == 1 else f"{middle:.3g} ({low:.3g} to {high:.3g})"


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; the first column is of names, the others are of numbers."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(str, row))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def composed(overrides: Sequence[str], folder: Path) -> "DictConfig":
    """The configuration of a run that writes to a folder and neither validates nor tests."""
    import hydra
    from omegaconf import OmegaConf

    from firstlight.config import register_schemas
    from firstlight.runs.launch import CONFIG_DIR, CONFIG_NAME

    register_schemas()
    own = ["trainer.max_epochs=100000", "trainer.limit_val_batches=0", "test=false"]
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=[*own, *overrides])
    OmegaConf.update(config, "paths.output_dir", str(folder))
    config.optimized_mode = "max"
    return config


def built(config: "DictConfig", folder: Path) -> "Parts":
    """The parts of that run."""
    from firstlight.runs.build import build
    from firstlight.runs.folder import RunFolder

    return build(config, RunFolder(folder), "benchmark")


def versions(threads: int | None = None) -> str:
    """What was measured with, in a line."""
    from importlib.metadata import version

    libraries: Any = ", ".join(f"{name} {version(name)}" for name in ("torch", "lightning"))
    told = "" if threads is None else f", {threads} CPU thread{'s' * (threads != 1)}"
    return f"Python {platform.python_version()}, {libraries}{told}"
