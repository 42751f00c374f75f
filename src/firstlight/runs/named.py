"""The run that a name means, such as `latest` or `best:val/loss`. Imports nothing heavy."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from firstlight.choices import nearest
from firstlight.errors import UserError
from firstlight.runs.folder import EXPORTED_FILES, RunFolder, all_runs, direction, is_finite, is_of_sample

log = logging.getLogger(__name__)

LATEST, OF_SWEEPS, BEST = "latest", "latest-sweep", "best"
TRAINED = "trained run"
NAMES = "`latest`, `latest:<task>`, `latest-sweep`, `best:<metric>` or `best:<metric>:<task>`"

CanUse = Callable[[RunFolder], bool]


def has_checkpoint(run: RunFolder) -> bool:
    """Return whether a run has a checkpoint, complete or damaged."""
    return bool(run.checkpoints())


def is_searched(name: str) -> bool:
    """Return whether a name is looked for below the folder of all runs; any other name is the path of a run."""
    return name in (LATEST, OF_SWEEPS) or name.startswith((f"{LATEST}:", f"{OF_SWEEPS}:", f"{BEST}:"))


def is_checkpoint(name: str | Path) -> bool:
    """Return whether a name is that of a checkpoint. The folder of a run can also end in .ckpt."""
    return Path(name).suffix == ".ckpt" and not os.path.isdir(name)  # noqa: PTH112  (is_dir raises for long names)


def is_export(name: str | Path) -> bool:
    """Return whether a name is that of a folder which `export` or transformers wrote; the folder of a run is not."""
    paths = (os.path.join(name, each) for each in EXPORTED_FILES)  # noqa: PTH118
    return any(map(os.path.isfile, paths))  # is_file raises for long names


def find_run(name: str, log_dir: Path, can_use: CanUse = has_checkpoint, wanted: str = TRAINED) -> RunFolder:
    """Return the run that a name means.

    Args:
        name: `latest`: the run that was written last, without the jobs of sweeps. `latest:<task>`: the same among the
            runs of a task. `latest-sweep`, `latest-sweep:<task>`: the same among the jobs of sweeps.
            `best:<metric>`: the run with the best value of a metric, such as `best:val/loss`, where the runs that have
            the metric belong to one task. `best:<metric>:<task>`: the same among the runs of a task. Anything else: a
            run's folder.
        log_dir: The folder below which `latest` and `best` search.
        can_use: Returns whether the caller can use a run; `latest` and `best` ignore all others.
        wanted: The words for a run that can be used, for messages.

    Raises:
        UserError: If no run has this name, or if `best:<metric>` finds runs of several tasks.
    """
    if "://" in name:
        raise UserError(f"{name} is a URL; download the run folder first, and only from people you trust")
    if is_searched(name):
        find = _latest_run if name.startswith(LATEST) else _best_run
        return find(name, filter(can_use, all_runs(log_dir)), f"{wanted} below {log_dir}")
    folder = Path(name)
    if not folder.exists():
        remedy = f"did you mean {LATEST}?" if nearest(name, [LATEST]) else f"name an existing one, {NAMES}"
        raise UserError(f"{name}: the run folder does not exist; {remedy}")
    if not folder.is_dir():
        raise UserError(f"{name} is a file; name the run's folder, which holds metrics.json and checkpoints/")
    run = RunFolder(folder)
    run.read()
    return run


def find_runs(name: str, log_dir: Path) -> list[RunFolder]:
    """Return the run that a name means, as `find_run` does, or all runs of a sweep if it is the folder of one.

    Raises UserError, also for a sweep whose runs are not all finished.
    """
    folder = Path(name)
    if is_searched(name) or not folder.is_dir() or RunFolder(folder).is_run():
        return [find_run(name, log_dir)]
    runs = sorted(all_runs(folder), key=lambda run: run.path)
    for run in runs:
        if (status := run.status_of(run.read())) != "finished":
            raise UserError(f"{name}: the run {run.path} is {status}, not finished; finish the sweep, or name its runs")
    if not runs:
        raise UserError(f"{name}: the folder is not a run and holds no runs; name a run or the folder of a sweep")
    return runs


def task_of(run: RunFolder) -> str | None:
    """Return the task in a run's record; None where the record has no task. Raises UserError for a broken record."""
    task = run.read().get("task")
    return None if task is None else str(task)


def _record(name: str, run: RunFolder) -> dict[str, Any] | None:
    """Return the record of a run; None for a damaged one, which is reported and does not hide the other runs."""
    try:
        return run.read()
    except UserError as error:
        log.warning("%s ignores %s", name, error)
        return None


def _latest_run(name: str, runs: Iterator[RunFolder], wanted: str) -> RunFolder:
    word, separator, task = name.partition(":")
    others, has_left_out = set[str](), False
    for run in runs:
        if run.is_job() != (word == OF_SWEEPS):
            has_left_out = True
        elif not separator:
            return run
        elif (record := _record(name, run)) is not None:
            if record.get("task") == task:
                return run
            others.add(str(record.get("task")))
    problem = f"no {wanted} has task={task}" if separator else f"no {wanted}"
    if has_left_out and word == LATEST:
        job = f"{OF_SWEEPS}{separator}{task}"
        raise UserError(f"{name}: {problem} outside of sweeps; write {job} for the newest job of a sweep")
    raise UserError(f"{name}: {problem}{' in a sweep' if word == OF_SWEEPS else ''}; {_tasks(others)}")


def _best_run(name: str, runs: Iterator[RunFolder], wanted: str) -> RunFolder:
    metric, separator, task = name.removeprefix(f"{BEST}:").partition(":")
    records = [(run, record) for run in runs if (record := _record(name, run)) is not None]
    tasks = {str(record.get("task")) for _, record in records}
    if separator and task not in tasks:
        raise UserError(f"{name}: no {wanted} has task={task}; {_tasks(tasks)}")
    found: list[tuple[str, bool, float, RunFolder]] = []  # task, whether the data is generated, value, run
    for run, record in records:
        task_of_run, value = str(record.get("task")), (record.get("metrics") or {}).get(metric)
        if task not in ("", task_of_run) or record.get("status") == "pruned":
            continue
        if is_finite(value):
            found.append((task_of_run, is_of_sample(record), value, run))
        elif value is not None:
            log.warning("%s ignores %s: the value %.40r is not a finite number", name, run.path, value)
    real = [each for each in found if not each[1]]
    if real and len(real) < len(found):
        count = len(found) - len(real)
        log.warning("%s ignores %d run%s on generated data", name, count, "" if count == 1 else "s")
    found = real or found
    if not found:
        known = {each for _, record in records for each in record.get("metrics") or {}}
        existing = f"there are {', '.join(sorted(known))}" if known else "train one, or set paths.log_dir"
        raise UserError(f"{name}: no {wanted} has this metric; {existing}")
    of_task, *others = sorted({each[0] for each in found})
    if others:
        choices = " or ".join(f"{name}:{each}" for each in (of_task, *others))
        raise UserError(f"{name}: runs of {1 + len(others)} tasks have this metric; write {choices}")
    same = [record for _, record in records if str(record.get("task")) == of_task]
    optimized = ((str(record.get("optimized_metric")), record.get("optimized_mode")) for record in same)
    choose = min if direction(optimized)(metric) else max
    return choose(found, key=lambda each: each[2])[3]


def _tasks(tasks: set[str]) -> str:
    return f"there are runs of {', '.join(sorted(tasks))}" if tasks else "train one, or set paths.log_dir"
