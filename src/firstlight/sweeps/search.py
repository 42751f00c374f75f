"""A search: Optuna chooses each trial by the results of the earlier ones. It can be interrupted and continued."""

import logging
from collections import ChainMap
from contextlib import nullcontext, suppress
from functools import partial
from importlib.util import find_spec

from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.invocation import install_command
from firstlight.runs.trials import OBJECTIVES, STUDY_FILE, made, trial_folder
from firstlight.sweeps.grid import LauncherOf, Runner, checked
from firstlight.sweeps.jobs import Composer, Job, Sources
from firstlight.sweeps.launchers import ONE_BY_ONE, check_launcher, has_launcher, jobs_at_a_time
from firstlight.terminal_text import say

log = logging.getLogger(__name__)


def search(composer: Composer, launcher_of: LauncherOf, n_trials: int) -> None:
    """Run trials until there are n_trials, including those of earlier calls.

    Interrupted trials are resumed first. Failed and pruned trials count and do not end the search. Raises UserError if
    the search cannot run, and RunError at the end if a trial of this call has failed.
    """
    if find_spec("optuna") is None:
        raise UserError(f"hparams_search=optuna needs Optuna: {install_command('optuna')}")
    from firstlight.sweeps.study import Space, Study, TrialState, sampler_of  # imports Optuna

    if n_trials < 1:
        raise UserError(f"hydra.sweeper.n_trials={n_trials} must be at least 1")
    config, sources, space = composer.config, Sources(), Space(composer)
    make_sampler = partial(sampler_of, config.hydra.sweeper.sampler)
    make_sampler(0)  # a mistake is reported now
    pruner = made("pruner", config.hydra.sweeper.pruner)
    if pruner is not None and len(space.goals) > 1:
        problem = f"hydra/sweeper/pruner={type(pruner).__name__}: Optuna prunes searches with one objective"
        raise UserError(f"{problem}, and {OBJECTIVES}=[{','.join(space.goals)}] names several; leave one of them out")
    checked([space.lowest], sources)
    if config.dry_run:
        space.show(n_trials)
        return
    is_new = not (space.folder / STUDY_FILE).exists()
    if is_new:  # before the folder is made
        check_launcher(config)
    runner = Runner(config, space.folder, launcher_of)
    study = Study(space, make_sampler, pruner)
    if (has_left := study.has_left(n_trials)) and not is_new:
        check_launcher(config)

    def jobs_of(number: int) -> list[Job]:
        return checked(space.jobs(number, study.values(number)), sources)

    jobs: dict[int, list[Job]] = {}
    failed = [trial.number for trial in study.trials(TrialState.FAIL)]
    for trial in study.trials():
        with suppress(UserError) if trial.number in failed else nullcontext():  # it may be one that cannot run
            jobs[trial.number] = jobs_of(trial.number)[: 1 if trial.state is TrialState.PRUNED else None]
    paths = [space.folder / name for number in failed for name in space.folders(number)]
    errors = ChainMap(runner.errors, dict.fromkeys(paths, "it failed in an earlier call"))
    num_seeds = len(space.repeats)
    first = 1 if pruner else num_seeds  # so many seeds decide whether the others run
    every = [job for each in jobs.values() for job in each]
    num_jobs = n_trials * num_seeds
    with runner.watched(num_jobs if has_left else 0, every, num_jobs, errors) as progress:
        for numbers in study.batches(n_trials, -(-trials_at_a_time(config) // first)):
            for number in [each for each in numbers if each not in jobs]:
                try:
                    jobs[number] = jobs_of(number)
                except UserError as error:  # the values contradict each other
                    runner.errors |= dict.fromkeys((space.folder / name for name in space.folders(number)), str(error))
                    log.error("%s cannot run: %s", trial_folder(number), error)  # noqa: TRY400  (a user's mistake)
            every[:] = [job for each in jobs.values() for job in each]
            able = [jobs[number] for number in numbers if number in jobs]
            runner.run([job for each in able for job in each[:first] if not job.has_ended], numbers[0])
            for each in able:
                del each[first if each[0].status != "finished" else num_seeds :]
            every[:] = [job for each in jobs.values() for job in each]
            runner.run([job for each in able for job in each[first:] if not job.has_ended], numbers[0])
            for number in numbers:
                if not runner.not_started.intersection(job.folder.path for job in jobs.get(number, [])):
                    study.tell(number, jobs.get(number, []))
            progress.total = len(every) + max(0, n_trials - len(jobs)) * num_seeds
            progress.say()
            if config.sweep.stop_at_first_failure and runner.errors:
                break
    study.write_best(jobs)
    progress.show_results()
    if len(space.goals) > 1 and not config.quiet:
        say(f"The Pareto front of {' and '.join(space.goals)}: {len(study.best())} of {len(study.trials())} trials")
    remedy = "failed trials are not tried again; raise hydra.sweeper.n_trials to try more values"
    runner.complain(progress.total, remedy)


def trials_at_a_time(config: DictConfig) -> int:
    """Return how many trials are chosen together: as many as run at the same time, 1 unless that is typed."""
    launcher = config.hydra.launcher
    if has_launcher(config, ONE_BY_ONE):
        return 1
    if "n_jobs" in launcher:
        return jobs_at_a_time(config)
    typed = [each for each in config.hydra.overrides.hydra if each.startswith("hydra.launcher.array_parallelism=")]
    return int(launcher.array_parallelism) if typed else 1
