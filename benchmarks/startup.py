"""Measure the time until a command answers: python benchmarks/startup.py (--help lists all options).

The commands are a mistake, --help, the first training step of task=sentiment model=tiny with an empty and with a
filled cache, and the commands that read a run of one step. Complete processes run in turns, and their processor time
counts. They are compared with the import of torch, and of torch and Lightning.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import tyro
from measure import ROOT, ratio, show, versions


@dataclass
class Options:
    """Options of the measurement."""

    repeats: int = 5
    """Number of turns. The results are medians of the turns."""
    task: str = "sentiment"
    """The task whose first step is measured."""
    model: str = "tiny"
    """The size of its model."""
    source: str = "auto"
    """The value of data.source."""


def main() -> None:
    """Measure, and print the results."""
    options = tyro.cli(Options)
    with tempfile.TemporaryDirectory() as folder:
        logs, number = Path(folder), count()
        step = [
            f"task={options.task}",
            f"model={options.model}",
            f"data.source={options.source}",
            "trainer.max_steps=1",
        ]
        step += ["trainer.limit_val_batches=0", "test=false", "threads=1"]
        works = {
            "python -c pass": lambda: python("-c", "pass"),
            "import torch": lambda: python("-c", "import torch"),
            "import torch, lightning": lambda: python("-c", "import torch, lightning"),
            "a mistake: dropuot=1": lambda: python("src/train.py", "dropuot=1", expected=2),
            "train.py --help": lambda: python("src/train.py", "--help"),
            "predict.py --help": lambda: python("src/predict.py", "--help"),
            "first step, cold": lambda: python("src/train.py", *step, f"paths.log_dir={logs / str(next(number))}"),
            "first step, cached": lambda: python("src/train.py", *step, f"paths.log_dir={logs / 'cached'}"),
        }
        works["first step, cached"]()
        run, names = str(logs / "run"), str(logs / "names")
        python("src/train.py", *step, f"paths.log_dir={logs / 'cached'}", f"hydra.run.dir={run}")
        python("src/train.py", "task=names", "data.source=sample", *step[1:2], *step[3:], f"hydra.run.dir={names}")
        works |= {
            "predict": lambda: python("src/predict.py", run, "--text", "It works."),
            "generate": lambda: python("src/generate.py", names, "--tokens", "1", "--num-samples", "1"),
            "evaluate": lambda: python("src/evaluate.py", run, "--split", "validation"),
            "explore": lambda: python("src/explore.py", run),
        }
        times: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(options.repeats):
            for name, work in works.items():
                before = os.times()
                work()
                after = os.times()
                used = after.children_user + after.children_system - before.children_user - before.children_system
                times[name].append(used)
    print(versions(1))
    show(
        f"processes; the first step is that of task={options.task} model={options.model}, with its checkpoint",
        ["command", "median processor seconds", "/ import torch", "/ import torch, lightning"],
        [
            (
                name,
                f"{statistics.median(each):.2f}",
                ratio(each, times["import torch"]),
                ratio(each, times["import torch, lightning"]),
            )
            for name, each in times.items()
        ],
    )


def python(*arguments: str, expected: int = 0) -> None:
    """Run a Python process, and discard its output."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, env=environment, check=False)  # noqa: S603
    assert done.returncode == expected, done.stderr.decode()


if __name__ == "__main__":
    main()
