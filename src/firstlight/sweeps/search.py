"""A search: Optuna chooses each trial by the results of the earlier ones. It can be interrupted and continued."""

import json
import logging
import sqlite3
from collections import ChainMap
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from hydra.utils import instantiate
from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.invocation import install_command
from firstlight.runs.folder import write_atomically
from firstlight.sweeps.grid import LauncherOf, Runner, checked
from firstlight.sweeps.jobs import Composer, Job, Sources, choices
from firstlight.sweeps.launchers import is_one_by_one, jobs_at_a_time
from firstlight.sweeps.progress import Progress, is_minimized, metric_of
from firstlight.terminal_text import say

log = logging.getLogger(__name__)

STUDY_FILE = "study.db"
BEST_FILE = "best.json"


def search(composer: Composer, launcher_of: LauncherOf, n_trials: int, sampler: DictConfig) -> float | None:
    """Run trials until there are n_trials, including those of earlier calls. Return the best value.

    Interrupted trials are resumed first. A failed trial counts and does not end the search. Raises UserError if the
    search cannot run, and RunError at the end if a trial of this call has failed.
    """
    if find_spec("optuna") is None:
        raise UserError(f"hparams_search=optuna needs Optuna: {install_command('optuna')}")
    if n_trials < 1:
        raise UserError(f"hydra.sweeper.n_trials={n_trials} must be at least 1")
    config, space = composer.config, Space(composer)
    sources = Sources()
    checked([space.lowest], sources)
    if config.dry_run:
        space.show(n_trials)
        return None
    while not composer.claim(space.folder):
        space = Space(composer)
    runner = Runner(config, space.folder, launcher_of)
    study = Study(space, sampler)
    jobs: dict[int, Job] = {}
    for number, values in study.trials():
        with suppress(UserError) if number in study.failed() else nullcontext():  # it may be one that cannot run
            (jobs[number],) = checked([space.trial(number, values)], sources)
    at_a_time = trials_at_a_time(config)
    watched = list(jobs.values())
    failed = [jobs[number] for number in study.failed() if number in jobs]
    earlier = {job.folder.path: job.record().get("reason") or "failed" for job in failed}
    errors = ChainMap(runner.errors, earlier)
    with runner.alone(), Progress(runner.folder, watched, n_trials, errors, quiet=config.quiet) as progress:
        for numbers in study.batches(n_trials, at_a_time):
            for number in set(numbers) - jobs.keys():
                try:
                    (jobs[number],) = checked([space.trial(number, study.values(number))], sources)
                    watched.append(jobs[number])
                except UserError as error:  # the values contradict each other
                    runner.errors[space.folder / folder_of(number)] = str(error)
                    log.error("%s cannot run: %s", folder_of(number), error)  # noqa: TRY400  (a user's mistake)
            able = [number for number in numbers if number in jobs]
            runner.run([jobs[number] for number in able if jobs[number].status != "finished"], numbers[0])
            for number in numbers:
                study.tell(number, jobs.get(number))
            progress.say()
    study.write_best(jobs)
    progress.show_results(with_best=False)
    runner.complain(n_trials, "failed trials are not tried again; raise hydra.sweeper.n_trials to try more values")
    return study.best_value()


def trials_at_a_time(config: DictConfig) -> int:
    """Return how many trials are chosen together: as many as run at the same time, 1 unless that is typed."""
    launcher = config.hydra.launcher
    if is_one_by_one(config):
        return 1
    if "n_jobs" in launcher:
        return jobs_at_a_time(launcher.n_jobs)
    typed = [each for each in config.hydra.overrides.hydra if each.startswith("hydra.launcher.array_parallelism=")]
    return int(launcher.array_parallelism) if typed else 1


def folder_of(number: int) -> str:
    """Return the name of a trial's folder."""
    return f"trial-{number:04d}"


class Space:
    """The values that are searched, and those that all trials share."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        searched = [each for each in composer.overrides if each.is_sweep_override()]
        if not searched:
            raise UserError(
                "the search has no key to vary; give at least one key an interval or a list, "
                "such as optimizer.lr='tag(log, interval(1e-4, 1e-1))'"
            )
        self.fixed = [choices(each)[0] for each in composer.overrides if not each.is_sweep_override()]
        self.distributions = {each.get_key_element(): distribution(each) for each in searched}
        lowest = (each.choices[0] if hasattr(each, "choices") else each.low for each in self.distributions.values())
        self.lowest = self.job("lowest", dict(zip(self.distributions, lowest, strict=True)))  # it never runs
        self.folder = self.lowest.folder.path.parent
        self.metric = str(self.lowest.config.optimized_metric)

    def trial(self, number: int, values: dict[str, Any]) -> Job:
        """Return the job of a trial. Raises UserError if it cannot run."""
        return self.job(folder_of(number), values)

    def job(self, subdir: str, values: dict[str, Any]) -> Job:
        """Return a job of some values, in a folder of the search. Raises UserError if it cannot run."""
        given = [f"{key}={value}" for key, value in values.items()]
        shown = [
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in values.items()
        ]
        return self._composer.job([*self.fixed, *given], shown, subdir)

    def description(self) -> dict[str, Any]:
        """Return the settings that must stay the same when a search is continued."""
        from optuna.distributions import distribution_to_json

        space = {key: json.loads(distribution_to_json(each)) for key, each in self.distributions.items()}
        return {"metric": self.metric, "space": space}

    def show(self, n_trials: int) -> None:
        """Print what dry_run=true shows of a search."""
        say(f"{n_trials} trials in {self.folder}, for the best {self.metric}; dry_run=true runs none")
        for key, each in self.distributions.items():
            say(f"  {key}: {each}")


class Study:
    """Optuna's study, a database in the folder of the search. It stores all trials and their results."""

    def __init__(self, space: Space, sampler: DictConfig) -> None:
        """Open or create the study. Raises UserError if an existing one is damaged or belongs to another search."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.sampler, self.path = space, sampler, space.folder / STUDY_FILE
        with readable(self.path):
            self.study = optuna.create_study(
                storage=f"sqlite:///{self.path.absolute()}",
                study_name="search",
                direction="minimize" if is_minimized(space.lowest.config) else "maximize",
                load_if_exists=True,
            )
            known = self.study.user_attrs.get("search")
            self.study.get_trials(deepcopy=False)  # reads the trials that have ended, once
        if known is None:
            self.study.set_user_attr("search", space.description())
        elif known != space.description():
            raise UserError(f"{self.path} is a search of {json.dumps(known)}; choose another sweep.name")

    def numbers(self) -> list[int]:
        """Return the numbers of all trials so far."""
        return [trial.number for trial in self.study.get_trials(deepcopy=False)]

    def trials(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Return the number and the values of every trial so far."""
        return ((number, self.values(number)) for number in self.numbers())

    def failed(self) -> list[int]:
        """Return the numbers of the failed trials."""
        from optuna.trial import TrialState

        return [trial.number for trial in self.study.get_trials(deepcopy=False, states=(TrialState.FAIL,))]

    def values(self, number: int) -> dict[str, Any]:
        """Return the values of a trial. Raises UserError for a value outside the space of this command line.

        The values become overrides, and another person may have written the file.
        """
        values = dict(self.study.get_trials(deepcopy=False)[number].params)
        space = self.space.distributions
        for key, value in values.items():
            if not (key in space and is_in(space[key], value)):
                raise UserError(f"{self.path}: trial {number} has {key}={value}, not a value of this search; move it")
        return values

    def batches(self, n_trials: int, at_a_time: int) -> Iterator[list[int]]:
        """Yield the numbers of the trials to run next: interrupted ones, then new ones until there are n_trials."""
        from optuna.trial import TrialState

        interrupted = [trial.number for trial in self.study.get_trials(states=(TrialState.RUNNING,))]
        while interrupted:
            yield interrupted[:at_a_time]
            interrupted = interrupted[at_a_time:]
        while (left := n_trials - len(self.study.get_trials(deepcopy=False))) > 0:
            yield [self.ask() for _ in range(min(left, at_a_time))]

    def ask(self) -> int:
        """Let the sampler choose a trial. Return its number.

        The seed depends on the number of the trial, so a continued search chooses what an uninterrupted one chooses.
        """
        if self.sampler:
            seed = {} if self.sampler.get("seed") is None else {"seed": self.sampler.seed + len(self.numbers())}
            self.study.sampler = instantiate(self.sampler, **seed)
        return self.study.ask(self.space.distributions).number

    def tell(self, number: int, job: Job | None) -> None:
        """Store the result of a trial. job: None if it could not run."""
        from optuna.trial import TrialState

        value = metric_of(job, job.record()) if job and job.status == "finished" else None
        self.study.tell(number, value, state=TrialState.FAIL if value is None else None)

    def best_value(self) -> float | None:
        """Return the best value of the finished trials; None if none has finished."""
        from optuna.trial import TrialState

        if not self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            return None
        return float(self.study.best_value)

    def write_best(self, jobs: dict[int, Job]) -> None:
        """Write the best trial as JSON, and to the log."""
        if self.best_value() is None:
            return
        best = self.study.best_trial
        folder, name = jobs[best.number].folder.path, jobs[best.number].name
        content = {"metric": self.space.metric, "value": best.value, "values": best.params, "run": str(folder)}
        write_atomically(self.space.folder / BEST_FILE, json.dumps(content, indent=2) + "\n")
        log.info("The best trial: %s %.4f with %s", self.space.metric, best.value, name)
        log.info("  in %s", folder)


def is_in(space: Any, value: Any) -> bool:
    """Return whether a distribution of Optuna contains a value."""
    try:
        return bool(space._contains(space.to_internal_repr(value)))
    except ValueError:
        return False


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise UserError where SQLite or Optuna cannot read the file of a study."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        if path.exists():
            check_database(path)
        yield
    except (SQLAlchemyError, sqlite3.Error, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = getattr(error, "orig", None) or error
        raise UserError(
            f"{path} cannot be read ({type(reason).__name__}: {reason}); "
            f"move the folder of the search, or choose another sweep.name"
        ) from error


def check_database(path: Path) -> None:
    """Raise sqlite3.DatabaseError if a file is not a complete database. Wait for a process that writes to it."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        found = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise sqlite3.DatabaseError(" ".join(str(found[0]).split()))


def distribution(override: Override) -> Any:
    """Return Optuna's distribution for `key=interval(0,1)`, `tag(log,interval(1e-4,1))`, `range(1,9)` or `a,b`.

    Raises UserError for an interval that cannot be drawn from.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    value: Any = override.value()
    if isinstance(value, RangeSweep) and not [*value.range()]:
        raise UserError(f"{override.input_line}: this range is empty")
    is_log = "log" in getattr(value, "tags", ())
    try:
        if isinstance(value, IntervalSweep):
            kind = IntDistribution if {type(value.start), type(value.end)} == {int} else FloatDistribution
            return kind(value.start, value.end, log=is_log)
        if isinstance(value, RangeSweep):
            values = list(value.range())
            kind = IntDistribution if isinstance(values[0], int) else FloatDistribution
            return kind(values[0], values[-1], step=value.step, log=is_log)
        return CategoricalDistribution([text.partition("=")[2] for text in choices(override)])
    except ValueError as error:
        raise UserError(f"{override.input_line}: {error}") from error
