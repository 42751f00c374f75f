"""Measure the overhead of a sweep: python benchmarks/sweep.py (--help lists all options).

One command runs a grid of small jobs on encoded data. Its wall time is compared with the sum of the jobs' fit seconds,
including validations, plus one start-up, which is measured with a single job.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tyro
from measure import ROOT, show, versions


@dataclass
class Options:
    """Options of the measurement."""

    jobs: int = 12
    """Number of jobs of the sweep, which differ in their seed."""
    steps: int = 300
    """Number of steps of each job."""
    repeats: int = 1
    """Number of sweeps, which run one after another."""
    task: str = "sentiment"
    """The task of the jobs."""
    model: str = "tiny"
    """The size of the model."""


def main() -> None:
    """Run the sweeps, and print a line for each."""
    options = tyro.cli(Options)
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        common = [f"task={options.task}", f"model={options.model}", f"trainer.max_steps={options.steps}"]
        common += [f"paths.log_dir={logs}", "threads=1", "test=false"]
        train([*common, "trainer.max_steps=1"])  # encodes the data
        train([*common, "hydra.run.dir=" + str(logs / "alone")])
        alone = json.loads((logs / "alone" / "metrics.json").read_text(encoding="utf-8"))
        start_up = alone["seconds"]["start_up"]
        seeds = ",".join(map(str, range(1, options.jobs + 1)))
        rows = []
        for number in range(1, options.repeats + 1):
            wall = train(["-m", *common, f"seed={seeds}", f"sweep.name=number{number}"])
            files = (logs / "sweeps" / f"number{number}").glob("*/metrics.json")
            fits = [json.loads(file.read_text(encoding="utf-8"))["seconds"]["fit"] for file in files]
            assert len(fits) == options.jobs
            rest = (wall - sum(fits) - start_up) / options.jobs
            ratio = wall / (sum(fits) + start_up)
            rows.append((number, f"{wall:.1f}", f"{sum(fits):.1f}", f"{start_up:.1f}", f"{ratio:.3f}", f"{rest:.2f}"))
    print(versions(1))
    show(
        f"{options.jobs} jobs of {options.steps} steps, task={options.task} model={options.model}",
        ["sweep", "wall seconds", "sum of fits", "one start-up", "ratio", "seconds of a job outside its fit"],
        rows,
    )


def train(arguments: list[str]) -> float:
    """Run the training script, and return its wall seconds."""
    started_at = time.perf_counter()
    command = [sys.executable, str(ROOT / "src" / "train.py"), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)  # noqa: S603
    return time.perf_counter() - started_at


if __name__ == "__main__":
    main()
