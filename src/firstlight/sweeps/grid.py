"""A grid of runs, which can be interrupted and continued."""

import logging
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.utils import JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from firstlight.errors import RunError, UserError
from firstlight.runs.folder import SWEEP_FILE, RunFolder, locked, refuse_links
from firstlight.runs.targets import needs_all_metrics
from firstlight.sweeps import launchers
from firstlight.sweeps.jobs import Composer, Job, Sources, refuse_other_sweep, refuse_search_options, with_source
from firstlight.sweeps.progress import Progress, show_plan
from firstlight.sweeps.remote import FAILURE, NOT_STARTED
from firstlight.sweeps.screen import OUTPUT

log = logging.getLogger(__name__)

LauncherOf = Callable[[DictConfig], Launcher]


def sweep(composer: Composer, launcher_of: LauncherOf) -> None:
    """Run every job of the grid that is not finished.

    A job that fails does not end the sweep. Raises UserError before the first job if one of them cannot run, and
    RunError at the end if one has failed.
    """
    config, sources = composer.config, Sources()
    refuse_search_options(config)
    jobs = checked(composer.grid(), sources)
    if config.dry_run:
        show_plan(jobs, launchers.plan_of(config, len(jobs)))
        return
    remaining = [job for job in jobs if not job.has_ended]
    if remaining:
        launchers.check_launcher(config)
    ended = {job.folder.path.name for job in jobs if job.has_ended}
    runner = Runner(config, jobs[0].folder.path.parent, launcher_of, ended)
    is_one_by_one = launchers.has_launcher(config, launchers.ONE_BY_ONE)
    with runner.watched(len(remaining), jobs, len(jobs), runner.errors) as progress:
        for batch in [[job] for job in remaining] if is_one_by_one else [remaining]:
            runner.run(batch, jobs.index(batch[0]) if batch else 0)
            progress.say()
            if config.sweep.stop_at_first_failure and runner.errors:
                break
    progress.show_results()
    runner.complain(len(jobs), "the same command tries them again")


def checked(jobs: Sequence[Job], sources: Sources) -> list[Job]:
    """Return the jobs with the sources of their data as overrides.

    Raises UserError if the folder of a job has a run that does not belong to this sweep.

    sources: the sources that are known already; new ones are added.
    """
    composed = [job for job in jobs if job.like is None]
    if not any(needs_all_metrics(job.config) for job in composed):
        import firstlight.lit.light  # noqa: F401  (before Lightning)
    from firstlight.runs.record import hash_of_code

    for job in composed:
        launchers.check_gpus(job.config)
    settled = {id(job): with_source(job, sources) for job in composed}
    for job, fingerprint in settled.values():
        refuse_other_sweep(job, code=hash_of_code(job.config), fingerprint=fingerprint)
    return [job if job.like else settled[id(job)][0] for job in jobs]


class Runner:
    """Passes jobs to a launcher and collects their errors. errors: one line for each folder of a failed job."""

    def __init__(self, config: DictConfig, folder: Path, launcher_of: LauncherOf, ended: Collection[str] = ()) -> None:
        """Make the folder of the sweep. ended: the names of the folders of jobs that are not run again."""
        folder.mkdir(parents=True, exist_ok=True)
        refuse_links(folder, ended=ended)
        self.launcher = launcher_of(OmegaConf.merge(config, {"hydra": {"sweep": {"dir": str(folder)}}}))  # type: ignore[arg-type]
        self.config, self.folder = config, folder
        self.errors: dict[Path, str] = {}
        self.not_started = set[Path]()  # folders of jobs, by sweep.stop_at_first_failure

    @contextmanager
    def watched(
        self, num_jobs: int, jobs: Collection[Job], total: int, errors: Mapping[Path, str]
    ) -> Iterator[Progress]:
        """Lock the folder of the sweep, for a number of jobs that are run, and show the progress of all jobs.

        jobs, total, errors: as in `Progress`. Raises UserError if another process has locked the folder.
        """
        plan = launchers.plan_of(self.config, num_jobs) if num_jobs else "nothing to do"
        try:
            launchers.fork_workers(self.config, self.folder, num_jobs)  # before the lock, which they would keep
            with locked(self.folder, "runs this sweep"):
                OmegaConf.save(self.config, self.folder / SWEEP_FILE)
                (self.folder / FAILURE).unlink(missing_ok=True)
                with Progress(self.folder, jobs, total, errors, plan, self.config.quiet) as progress:
                    yield progress
        finally:
            launchers.end_workers()

    def run(self, batch: Sequence[Job], first_number: int) -> None:
        """Run jobs to their end, one after another or at the same time, as the launcher does."""
        if not batch:
            return
        try:
            results = self.launcher.launch([job.overrides for job in batch], initial_job_idx=first_number)
        except UserError:  # a mistake in the options of the launcher, before the first job
            raise
        except Exception as error:  # noqa: BLE001  (the launcher lost a job: a worker was killed, or a limit was reached)
            failed: list[tuple[Job, Any]] = [(job, error) for job in batch if not job.has_ended]
        else:  # the property return_value would raise the error
            pairs = zip(batch, results, strict=True)
            failed = [(job, result._return_value) for job, result in pairs if result.status is JobStatus.FAILED]
        for job, why in failed:
            if str(why) == NOT_STARTED:
                self.not_started.add(job.folder.path)
            else:
                self.errors[job.folder.path] = reason = record_failure(job.folder, why)
                log.error("%s failed: %s", job.name, reason)

    def complain(self, num_jobs: int, remedy: str) -> None:
        """Raise RunError if a job failed."""
        if self.errors:
            place, reason = next(iter(self.errors.items()))
            problem = f"{len(self.errors)} of {num_jobs} jobs failed, the first in {place}: {reason}"
            raise RunError(f"{problem}; {remedy}")


def record_failure(folder: RunFolder, error: Any) -> str:
    """Store the reason of a failure in the folder of a job, where the job could not do it itself. Return the reason."""
    is_expected, output = isinstance(error, UserError | RunError), folder.path / OUTPUT
    message = " ".join(str(error).split())
    reason = message if is_expected else f"{type(error).__name__}: {message}"
    record = folder.read() if folder.is_run() else {}
    if record.get("status") == "running" and not folder.is_locked():
        folder.write(record | {"status": "failed", "reason": reason})
    if is_expected:
        return reason
    folder.path.mkdir(parents=True, exist_ok=True)
    with output.open("a", encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    return f"{reason}; the traceback is in {output}"
