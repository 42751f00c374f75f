"""A search: Optuna chooses each trial by the results of the earlier ones. It can be interrupted and continued."""

import logging
from collections import ChainMap
from contextlib import nullcontext, suppress
from importlib.util import find_spec

from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.invocation import install_command
from firstlight.runs.objectives import KEY as OBJECTIVES
from firstlight.runs.study import trial_folder
from firstlight.sweeps.grid import LauncherOf, Runner, checked
from firstlight.sweeps.jobs import Composer, Job, Sources
from firstlight.sweeps.launchers import is_one_by_one, jobs_at_a_time, plan_of
from firstlight.sweeps.progress import Progress
from firstlight.sweeps.space import Space
from firstlight.sweeps.study import Study, samplers_and_pruners

log = logging.getLogger(__name__)


def search(composer: Composer, launcher_of: LauncherOf, n_trials: int) -> float | None:
    """Run trials until there are n_trials, including those of earlier calls. Return the best value.

    Interrupted trials are resumed first. Failed and pruned trials count and do not end the search. Raises UserError if
    the search cannot run, and RunError at the end if a trial of this call has failed.
    """
    if find_spec("optuna") is None:
        raise UserError(f"hparams_search=optuna needs Optuna: {install_command('optuna')}")
    if n_trials < 1:
        raise UserError(f"hydra.sweeper.n_trials={n_trials} must be at least 1")
    config, space = composer.config, Space(composer)
    make_sampler, pruner = samplers_and_pruners(config.hydra.sweeper)
    if pruner is not None and space.objectives:
        raise UserError(
            f"hydra/sweeper/pruner={type(pruner).__name__}: Optuna prunes searches with one objective, and "
            f"{OBJECTIVES}=[{','.join(space.objectives)}] names several; leave one of them out"
        )
    sources = Sources()
    checked([space.lowest], sources)
    if config.dry_run:
        space.show(n_trials)
        return None
    while not composer.claim(space.folder):
        space = Space(composer)
    runner = Runner(config, space.folder, launcher_of)
    study = Study(space, make_sampler, pruner)
    jobs: dict[int, Job] = {}
    for number, values in study.trials():
        with suppress(UserError) if number in study.failed() else nullcontext():  # it may be one that cannot run
            (jobs[number],) = checked([space.trial(number, values)], sources)
    at_a_time = trials_at_a_time(config)
    watched = list(jobs.values())
    failed = [jobs[number] for number in study.failed() if number in jobs]
    earlier = {job.folder.path: job.record().get("reason") or "failed" for job in failed}
    errors = ChainMap(runner.errors, earlier)
    plan = plan_of(config, n_trials)
    with (
        runner.alone(),
        Progress(runner.folder, watched, n_trials, errors, plan=plan, quiet=config.quiet) as progress,
    ):
        for numbers in study.batches(n_trials, at_a_time):
            for number in set(numbers) - jobs.keys():
                try:
                    (jobs[number],) = checked([space.trial(number, study.values(number))], sources)
                    watched.append(jobs[number])
                except UserError as error:  # the values contradict each other
                    runner.errors[space.folder / trial_folder(number)] = str(error)
                    log.error("%s cannot run: %s", trial_folder(number), error)  # noqa: TRY400  (a user's mistake)
            able = [number for number in numbers if number in jobs]
            runner.run([jobs[number] for number in able if not jobs[number].has_ended], numbers[0])
            for number in numbers:
                study.tell(number, jobs.get(number))
            progress.say()
    study.write_best(jobs)
    if not config.quiet:
        study.show_front(jobs)
    progress.show_results(with_best=False)
    runner.complain(n_trials, "failed trials are not tried again; raise hydra.sweeper.n_trials to try more values")
    return study.best_value()


def trials_at_a_time(config: DictConfig) -> int:
    """Return how many trials are chosen together: as many as run at the same time, 1 unless that is typed."""
    launcher = config.hydra.launcher
    if is_one_by_one(config):
        return 1
    if "n_jobs" in launcher:
        return jobs_at_a_time(config)
    typed = [each for each in config.hydra.overrides.hydra if each.startswith("hydra.launcher.array_parallelism=")]
    return int(launcher.array_parallelism) if typed else 1
