"""Measure the commands on a sweep of 10,000 finished jobs: python benchmarks/many_jobs.py (--help lists all options).

One job is trained. The others are copies of its folder with other seeds, learning rates and results. The same command
of the sweep, the list of runs and the report are then complete processes, and a browser opens the page.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
import yaml
from measure import ROOT, show, versions
from omegaconf import OmegaConf

from firstlight.files.plain_yaml import read_config
from firstlight.runs.folder import RunFolder
from firstlight.runs.identity import run_key
from firstlight.sweeps.jobs import folder_name

SEEDS = 100  # of each learning rate
CHANGED = ("metrics.json", "config.yaml", "overrides.yaml", "history.jsonl", ".lock")
LEFT_OUT = "checkpoints"  # no command that is measured reads them


@dataclass
class Options:
    """Options of the measurement."""

    jobs: int = 10_000
    """Number of jobs, in hundreds."""
    task: str = "sentiment"
    """The task of the jobs."""
    folder: Path | None = None
    """Folder in which the sweep is made, or in which an earlier call has made it. Default: one that is deleted."""


def main() -> None:
    """Make the sweep, run the commands, and print a line for each."""
    options = tyro.cli(Options)
    with tempfile.TemporaryDirectory() as temporary:
        logs = (options.folder or Path(temporary)).absolute()
        rates = [round(1e-4 * 1.05**number, 8) for number in range(options.jobs // SEEDS)]
        common = [f"task={options.task}", "model=tiny", "data.source=sample", f"paths.log_dir={logs}", "logger=none"]
        common += ["trainer.max_steps=4", "trainer.val_check_interval=2", "sweep.name=many", "-m"]
        sweep = logs / "sweeps" / "many"
        if not sweep.is_dir():
            run("train", *common, "seed=range(1,2)", f"optimizer.lr=choice({rates[0]})")
            (first,) = (file.parent for file in sweep.glob("*/metrics.json"))
            config = read_config(RunFolder(first).config_file)
            for rate in rates:
                for seed in range(1, SEEDS + 1):
                    copy(RunFolder(first), config, seed, rate)
        again = [*common, f"seed=range(1,{SEEDS + 1})", f"optimizer.lr={','.join(map(str, rates))}"]
        lines = [
            run("train", *again),
            run("runs", str(logs)),
            run("report", str(sweep)),
            opened(sweep / "report.html"),
        ]
    print(versions(1))
    title = f"{options.jobs:,} finished jobs of task={options.task} model=tiny"
    show(title, ["command", "wall seconds", "processor seconds", "largest memory (MiB)"], lines)


def copy(first: RunFolder, config: dict[str, Any], seed: int, rate: float) -> None:
    """Make the folder of a job from that of the first one. Files that do not differ are links to the same file.

    config: of the first job, in which the values of the new one are set.
    """
    varied = f"seed={seed}", f"optimizer.lr={rate}"
    folder = RunFolder(first.path.with_name(folder_name(varied)))
    if folder.path == first.path:
        return
    for where, names, files in os.walk(first.path):
        names[:] = [name for name in names if name != LEFT_OUT]
        there = folder.path / Path(where).relative_to(first.path)
        there.mkdir(parents=True)
        for name in set(files) - set(CHANGED):
            (there / name).hardlink_to(Path(where, name))
    config["seed"] = config["data"]["seed"] = seed
    config["optimizer"]["lr"] = rate
    record, own = first.read(), random.Random(f"{seed} {rate}")  # noqa: S311  (made-up results)
    value = round(0.5 + own.random() / 10, 4)
    record |= {"seed": seed, "run_key": run_key(OmegaConf.create(config))}
    record["overrides"] = [_changed(each, varied) for each in record["overrides"]]
    record["metrics"] = dict.fromkeys(record["metrics"], value)
    folder.write(record)
    dump(folder.config_file, config)
    dump(folder.overrides_file, record["overrides"])
    history = [json.loads(line) for line in first.history_file.read_text(encoding="utf-8").splitlines()]
    lines = [{key: value if key.startswith("val/") else each for key, each in line.items()} for line in history]
    folder.history_file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _changed(override: str, varied: tuple[str, ...]) -> str:
    return next((each for each in varied if each.partition("=")[0] == override.partition("=")[0]), override)


def dump(path: Path, content: Any) -> None:
    """Write a YAML file as OmegaConf does."""
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    path.write_text(yaml.dump(content, Dumper=dumper, sort_keys=False), encoding="utf-8")


def run(name: str, *arguments: str) -> tuple[str, str, str, str]:
    """Run a script of src/, and return its line of the table."""
    started_at = time.perf_counter()
    process = subprocess.Popen([sys.executable, ROOT / "src" / f"{name}.py", *arguments], stdout=subprocess.DEVNULL)  # noqa: S603
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{name}.py failed")
    return line(f"python src/{name}.py", started_at, used)


def line(name: str, started_at: float, used: resource.struct_rusage) -> tuple[str, str, str, str]:
    """Return a line of the table."""
    wall = time.perf_counter() - started_at
    return name, f"{wall:.1f}", f"{used.ru_utime + used.ru_stime:.1f}", f"{used.ru_maxrss / 1024:.0f}"


def opened(page: Path) -> tuple[str, str, str, str]:
    """Open a page in a browser until its plots are drawn, and return its line of the table."""
    sys.path.append(str(ROOT / "tests"))
    from browser import a_browser, open_file  # type: ignore[import-not-found]

    with a_browser() as browser:
        started_at = time.perf_counter()
        shown = open_file(browser, page)
        shown.page.wait_for_function("document.body.dataset.drawn", timeout=600_000)
        wall = time.perf_counter() - started_at
        assert not shown.errors, shown.errors
    return f"the page ({page.stat().st_size / 2**20:.1f} MiB) in a browser", f"{wall:.1f}", "", ""


if __name__ == "__main__":
    main()
