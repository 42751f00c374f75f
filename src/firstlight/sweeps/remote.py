"""What a sweep and the processes of its jobs on other machines say to each other: the jobs in JSON, errors in lines.

It is JSON, because a pickle would run code when it is read.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

from firstlight.errors import RunError
from firstlight.runs.folder import ENDED, RunFolder
from firstlight.runs.overrides import value_of

MODULE = "firstlight.commands.job"  # `python -m MODULE FILE TASK` runs the jobs of a task


def description(config: DictConfig, jobs: Sequence[Sequence[str]], tasks: Sequence[Sequence[int]]) -> str:
    """Return JSON from which other processes run jobs.

    config: of the sweep; jobs: the overrides of each job; tasks: the numbers of the jobs of each process.
    """
    shared = {"arguments": sys.argv[1:], "hydra": list(config.hydra.overrides.hydra)}
    return json.dumps({**shared, "jobs": list(map(list, jobs)), "tasks": tasks}, indent=1)


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
