"""Measure the overhead of a sweep: python benchmarks/sweep.py (--help lists all options).

One command runs a grid of small jobs on encoded data. Its processor time is compared with that of the jobs' fits,
including validations, plus one start-up, which is measured with a single job.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tyro
from launchers import LAUNCHERS
from measure import ROOT, show, versions


@dataclass
class Options:
    """Options of the measurement."""

    jobs: int = 12
    """Number of jobs of the sweep, which differ in their seed."""
    steps: int = 300
    """Number of steps of each job."""
    repeats: int = 1
    """Number of turns. The results are medians of the turns."""
    launchers: tuple[str, ...] = ("basic", "joblib")
    """The launchers, whose jobs run on this machine."""
    task: str = "sentiment"
    """The task of the jobs."""
    model: str = "tiny"
    """The size of the model."""
    source: str = "auto"
    """The value of data.source."""


def main() -> None:
    """Run the sweeps in turns, and print a line for each launcher."""
    options = tyro.cli(Options)
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        common = [f"task={options.task}", f"model={options.model}", f"data.source={options.source}"]
        common += [
            f"paths.log_dir={logs}",
            "threads=1",
            "test=false",
            "quiet=true",
            f"trainer.max_steps={options.steps}",
        ]
        train([*common, "trainer.max_steps=1"])  # encodes the data
        seeds = "seed=" + ",".join(map(str, range(1, options.jobs + 1)))
        starts, found = [], dict[str, list[tuple[float, float, float]]]()
        for number in range(options.repeats):
            alone = logs / f"alone{number}"
            starts.append(train([*common, f"hydra.run.dir={alone}"]) - fit(alone))
            for name in options.launchers:
                chosen = [f"hydra/launcher={name}", *filter(None, [LAUNCHERS[name]]), f"sweep.name={name}{number}"]
                used = train(["-m", *common, seeds, *chosen])
                fits = [fit(file.parent) for file in (logs / "sweeps" / f"{name}{number}").glob("*/metrics.json")]
                assert len(fits) == options.jobs
                needed = sum(fits) + starts[-1]
                found.setdefault(name, []).append((used, used / needed, (used - needed) / options.jobs))
    print(f"{versions(1)}, load averages {', '.join(f'{each:.1f}' for each in os.getloadavg())}")
    show(
        f"{options.jobs} jobs of {options.steps} steps, task={options.task} model={options.model}; processor seconds",
        ["launcher", "the command", "/ fits and one start-up", "of a job outside its fit", "one start-up"],
        [(name, *map(spread, zip(*rows, strict=True)), spread(starts)) for name, rows in found.items()],
    )


def train(arguments: list[str]) -> float:
    """Run the training script, and return the processor seconds of its processes."""
    before = os.times()
    command = [sys.executable, str(ROOT / "src" / "train.py"), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)  # noqa: S603
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def fit(run: Path) -> float:
    """Return the processor seconds of the fit of a run."""
    return float(json.loads((run / "metrics.json").read_text(encoding="utf-8"))["seconds"]["fit_processor"])


def spread(values: tuple[float, ...] | list[float]) -> str:
    """Return the median, and the lowest and highest of several values."""
    middle = f"{statistics.median(values):.3g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.3g} to {max(values):.3g})"


if __name__ == "__main__":
    main()
