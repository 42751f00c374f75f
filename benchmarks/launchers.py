"""Measure what a job of a sweep costs on each launcher: python benchmarks/launchers.py (--help lists all options).

A single process does all trainings one after another, and each launcher does them as one sweep of src/train.py. Slurm
and Ray are those that tests/clusters starts on this machine, with two nodes of one core. All programs run in turns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path

import tyro
from measure import ROOT, by_turns, ratio, show, versions

TRAIN = str(ROOT / "src" / "train.py")
ONE_PROCESS = "one process"
TRAININGS = """
import runpy, sys
script, jobs, folder, *common = sys.argv[1:]
for seed in range(int(jobs)):
    sys.argv = [script, *common, f"seed={seed}", f"hydra.run.dir={folder}/{seed}"]
    runpy.run_path(script, run_name="__main__")
"""
NODES = 2  # of the clusters, each with one core
LAUNCHERS = {  # with their options
    "basic": "",
    "joblib": f"hydra.launcher.n_jobs={NODES}",
    "submitit_local": "",
    "slurm": "hydra.launcher.partition=main",
    "ray": "hydra.launcher.address={address}",
}


@dataclass
class Options:
    """Options of the measurement."""

    jobs: int = 12
    """Number of trainings, which differ in their seed."""
    steps: int = 20
    """Number of steps of each training."""
    repeats: int = 1
    """Number of turns. The results are medians of the turns."""
    launchers: tuple[str, ...] = tuple(LAUNCHERS)
    """The launchers. What they need must be installed."""


def main() -> None:
    """Run the trainings, and print a line for each launcher."""
    options = tyro.cli(Options)
    with ExitStack() as stack:
        logs, number = Path(stack.enter_context(tempfile.TemporaryDirectory())), count()
        common = ["task=names", "data.source=sample", "model=tiny", f"trainer.max_steps={options.steps}"]
        common += [f"paths.log_dir={logs}", "threads=1", "test=false", "quiet=true"]
        python(TRAIN, *common)  # encodes the data
        own = {name: LAUNCHERS[name].format(address=started(name, stack)) for name in options.launchers}
        seeds = "seed=" + ",".join(map(str, range(options.jobs)))

        def sweep(name: str) -> None:
            chosen = [f"hydra/launcher={name}", *filter(None, [own[name]]), f"sweep.name=number{next(number)}"]
            python(TRAIN, "-m", *common, seeds, *chosen)

        def alone() -> None:
            python("-c", TRAININGS, TRAIN, str(options.jobs), str(logs / f"alone{next(number)}"), *common)

        times = by_turns({ONE_PROCESS: alone, **{name: partial(sweep, name) for name in own}}, options.repeats)
    print(f"{versions(1)}, load averages {', '.join(f'{each:.1f}' for each in os.getloadavg())}")
    show(
        f"{options.jobs} trainings of {options.steps} steps, task=names model=tiny",
        ["launcher", "cores", "median seconds", "jobs per minute", "/ one process", "core seconds more for each job"],
        rows(times, options.jobs),
    )


def started(name: str, stack: ExitStack) -> str:
    """Start the cluster of a launcher, and return its address; "" for a launcher without one."""
    if name not in ("slurm", "ray"):
        return ""
    sys.path[:0] = [str(ROOT / "tests" / "clusters"), str(ROOT / "tests")]
    cluster = stack.enter_context(import_module("running_cluster").started(name))
    os.environ |= cluster.environment
    return str(getattr(cluster, "address", ""))


def python(*arguments: str) -> None:
    """Run a Python process, and discard its output."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, env=environment, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr.decode()


def rows(times: Mapping[str, Sequence[float]], jobs: int) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table. times: the seconds of each turn."""
    for name, each in times.items():
        cores = 1 if name in (ONE_PROCESS, "basic") else NODES
        more = [(cores * mine - one) / jobs for mine, one in zip(each, times[ONE_PROCESS], strict=True)]
        middle = statistics.median(each)
        compared = ratio(each, times[ONE_PROCESS])
        yield name, cores, f"{middle:.1f}", f"{60 * jobs / middle:.1f}", compared, f"{statistics.median(more):.1f}"


if __name__ == "__main__":
    main()
