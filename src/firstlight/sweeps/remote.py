"""What a sweep and the processes of its jobs on other machines say to each other: the jobs in JSON, errors in lines.

It is JSON, because a pickle would run code when it is read.
"""

import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

from firstlight.errors import RunError
from firstlight.runs.folder import ENDED, SWEEP_FILE, RunFolder
from firstlight.runs.overrides import value_of
from firstlight.version import __version__

MODULE = "firstlight.commands.job"  # `python -m MODULE FILE TASK` runs the jobs of a task
NOT_STARTED = "it was not started, because another job has failed"  # by sweep.stop_at_first_failure
FAILURE = ".failure"  # empty, in the folder of a sweep: a job has failed since the command was last started


def description(
    config: DictConfig, jobs: Sequence[Sequence[str]], tasks: Sequence[Sequence[int]], at_a_time: int = 1
) -> dict[str, Any]:
    """Return values of JSON from which other processes run jobs.

    config: of the sweep; jobs: the overrides of each job; tasks: the numbers of the jobs of each task; at_a_time: the
    number of processes that share the jobs of a task.
    """
    return {
        "environment": environment(),
        "arguments": sys.argv[1:],
        "folder": str(Path.cwd()),
        "hydra": list(config.hydra.overrides.hydra),
        "sweep": str(Path(config.hydra.sweep.dir).absolute()),
        "stop_at_first_failure": config.sweep.stop_at_first_failure,
        "at_a_time": at_a_time,
        "jobs": list(map(list, jobs)),
        "tasks": tasks,
    }


def environment() -> str:
    """Return the versions that must be the same on all machines."""
    return f"firstlight {__version__} on Python {'.'.join(platform.python_version_tuple()[:2])}"


def refusal(described: dict[str, Any]) -> str | None:
    """Return why no job of a description may start here now, or None if it may.

    sweep_file: of the description, if it came without a shared disk: the content of the sweep's SWEEP_FILE.
    """
    here = platform.node()
    if described["environment"] != environment():
        problem = f"{described['environment']} started the sweep, and {here} has {environment()}"
        return f"{problem}; install the same versions on all machines"
    if not Path(described["folder"]).is_dir():
        return f"{here} does not see {described['folder']}; start the sweep in a folder that all machines share"
    sweep, file = Path(described["sweep"]), Path(described["sweep"], SWEEP_FILE)
    seen = file.read_text(encoding="utf-8") if file.is_file() else None
    if seen != described.get("sweep_file", seen):
        return f"{here} does not see {sweep}; set paths.log_dir to a folder that all machines share"
    return NOT_STARTED if described["stop_at_first_failure"] and (sweep / FAILURE).exists() else None


def error_line(name: str, reason: str) -> str:
    """Return the line in the output of a task on a job that has failed. name: of the folder of the job."""
    return f"error: {name}: {reason}"


def folder_of(sweep: Path, overrides: Sequence[str]) -> RunFolder:
    """Return the folder of a job."""
    return RunFolder(sweep / str(value_of("hydra.sweep.subdir", list(overrides))))


def result(sweep: Path, overrides: Sequence[str], error: str | None) -> JobReturn:
    """Return the result of a job that runs no longer, from the record in its folder, or else with an error."""
    folder = folder_of(sweep, overrides)
    record = folder.read() if folder.is_run() else {}
    if record.get("status") in ENDED:
        return JobReturn(status=JobStatus.COMPLETED, _return_value=record["metrics"].get(record["optimized_metric"]))
    reason = record.get("reason") if record.get("status") == "failed" else None
    return JobReturn(status=JobStatus.FAILED, _return_value=RunError(reason or error or "it ended without a result"))
