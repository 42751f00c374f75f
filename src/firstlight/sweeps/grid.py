"""A grid of runs that can be stopped, repeated and asked what it would do."""

import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.utils import JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from firstlight.errors import RunError, UserError
from firstlight.runs.folder import locked, refuse_links
from firstlight.spelling import quoted
from firstlight.sweeps.jobs import Composer, Job, Sources, refuse_other_sweep
from firstlight.sweeps.launchers import OUTPUT, check_gpus, is_one_by_one
from firstlight.sweeps.progress import Progress, metric_of, show_plan

log = logging.getLogger(__name__)

LauncherOf = Callable[[DictConfig], Launcher]


def sweep(composer: Composer, launcher_of: LauncherOf) -> list[float | None]:
    """Run every job of the grid that is not finished; returns their metrics, of those too that were finished before.

    A job that fails does not end the sweep. Raises RunError at the end if one did, UserError before the first if one
    cannot be run.
    """
    config, sources = composer.config, Sources()
    jobs = checked(composer.grid(), sources)
    if config.dry_run:
        show_plan(jobs)
        return []
    while not composer.claim(jobs[0].folder.path.parent):
        jobs = checked(composer.grid(), sources)
    remaining = [job for job in jobs if job.status != "finished"]
    runner = Runner(config, jobs[0].folder.path.parent, launcher_of)
    with runner.alone(), Progress(runner.folder, jobs, len(jobs), runner.errors, quiet=config.quiet) as progress:
        for batch in [[job] for job in remaining] if is_one_by_one(config) else [remaining]:
            runner.run(batch, jobs.index(batch[0]) if batch else 0)
            progress.say()
    progress.show_results()
    runner.complain(len(jobs), "the same command tries them again")
    return [metric_of(job, job.record()) for job in jobs]


def checked(jobs: Sequence[Job], sources: Sources) -> list[Job]:
    """The jobs, told where their data is. Raises UserError if a folder holds what is no part of this sweep.

    sources: what is known of that already; it learns more.
    """
    from firstlight.runs.record import hash_of_code

    for job in jobs:
        check_gpus(job.config)
    settled = [sources.settle(job) for job in jobs]
    for job, fingerprint in settled:
        refuse_other_sweep(job, code=hash_of_code(job.config), fingerprint=fingerprint)
    return [job for job, _ in settled]


class Runner:
    """Hands jobs to a launcher and keeps what went wrong. errors: by the job's folder, in one line."""

    def __init__(self, config: DictConfig, folder: Path, launcher_of: LauncherOf) -> None:
        """folder: of the sweep; it is made."""
        folder.mkdir(parents=True, exist_ok=True)
        refuse_links(folder)
        self.launcher = launcher_of(OmegaConf.merge(config, {"hydra": {"sweep": {"dir": str(folder)}}}))  # type: ignore[arg-type]
        self.config, self.folder = config, folder
        self.errors: dict[Path, str] = {}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the sweep's folder for one process at a time. Raises UserError where another has it."""
        with locked(self.folder, "runs this sweep"):
            OmegaConf.save(self.config, self.folder / "multirun.yaml")
            yield

    def run(self, batch: Sequence[Job], first_number: int) -> None:
        """Run some jobs to their end, one after another or at the same time, as the launcher does."""
        if not batch:
            return
        try:
            results = self.launcher.launch([resumed(job) for job in batch], initial_job_idx=first_number)
        except Exception as error:  # noqa: BLE001  (of a launcher that lost a job: a worker was killed, a limit reached)
            for job in batch:
                if job.status != "finished":
                    self.note_failure(job, error)
            return
        for job, result in zip(batch, results, strict=True):
            if result.status is JobStatus.FAILED:
                self.note_failure(job, result._return_value)  # the public one would raise it

    def note_failure(self, job: Job, error: Any) -> None:
        """Keep why a job failed, in its folder too where it did not come so far as to say so itself."""
        self.errors[job.folder.path] = reason = explained(error)
        output = job.folder.path / OUTPUT
        job.folder.path.mkdir(parents=True, exist_ok=True)
        if not isinstance(error, UserError | RunError):
            with output.open("a", encoding="utf-8") as file:
                traceback.print_exception(error, file=file)
            reason = f"{reason}; the traceback is in {output}"
        log.error("%s failed: %s", job.name, reason)
        if not job.folder.is_run():
            job.folder.write(job.description() | {"status": "failed", "reason": explained(error), "metrics": {}})

    def complain(self, num_jobs: int, remedy: str) -> None:
        """Raise RunError if a job failed."""
        if self.errors:
            raise RunError(
                f"{len(self.errors)} of {num_jobs} jobs failed, the first in {next(iter(self.errors))}: "
                f"{next(iter(self.errors.values()))}; {remedy}"
            )


def resumed(job: Job) -> list[str]:
    """The overrides of a job, which goes on where it was interrupted; one that has no checkpoint begins again."""
    if not job.record():
        return list(job.overrides)
    return [*job.overrides, f"resume={quoted(str(job.folder.path.absolute()))}"]


def explained(error: Exception) -> str:
    """An error in one line."""
    message = " ".join(str(error).split())
    return message if isinstance(error, UserError | RunError) else f"{type(error).__name__}: {message}"
