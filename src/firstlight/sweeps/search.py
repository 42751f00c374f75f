"""Trials that Optuna chooses by how the earlier ones went, in a sweep that can be stopped and gone on with."""

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
    """Run trials until there are n_trials, those of earlier calls among them; returns the best value.

    A trial that was interrupted goes on first. One that failed counts, and ends nothing. Raises UserError for what
    cannot be searched, RunError at the end if a trial of this call failed.
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
        with suppress(UserError) if number in study.failed() else nullcontext():  # such as one that cannot be run
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
                except UserError as error:  # values that contradict each other
                    runner.errors[space.folder / folder_of(number)] = str(error)
                    log.error("%s cannot be run: %s", folder_of(number), error)  # noqa: TRY400  (a user's mistake)
            able = [number for number in numbers if number in jobs]
            runner.run([jobs[number] for number in able if jobs[number].status != "finished"], numbers[0])
            for number in numbers:
                study.tell(number, jobs.get(number))
            progress.say()
    study.write_best(jobs)
    progress.show_results(with_best=False)
    runner.complain(n_trials, "what failed is not tried again, and a higher hydra.sweeper.n_trials tries more")
    return study.best_value()


def trials_at_a_time(config: DictConfig) -> int:
    """How many trials are chosen before the first of them has ended: as many as run at once, 1 unless that is typed."""
    launcher = config.hydra.launcher
    if is_one_by_one(config):
        return 1
    if "n_jobs" in launcher:
        return jobs_at_a_time(launcher.n_jobs)
    typed = [each for each in config.hydra.overrides.hydra if each.startswith("hydra.launcher.array_parallelism=")]
    return int(launcher.array_parallelism) if typed else 1


def folder_of(number: int) -> str:
    """The folder of a trial, in that of the search."""
    return f"trial-{number:04d}"


class Space:
    """What is searched, and what every trial has in common."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        searched = [each for each in composer.overrides if each.is_sweep_override()]
        if not searched:
            raise UserError(
                "there is nothing to search; give at least one key an interval or a list, "
                "such as optimizer.lr='tag(log, interval(1e-4, 1e-1))'"
            )
        self.fixed = [choices(each)[0] for each in composer.overrides if not each.is_sweep_override()]
        self.distributions = {each.get_key_element(): distribution(each) for each in searched}
        lowest = (each.choices[0] if hasattr(each, "choices") else each.low for each in self.distributions.values())
        self.lowest = self.job("lowest", dict(zip(self.distributions, lowest, strict=True)))  # which is never run
        self.folder = self.lowest.folder.path.parent
        self.metric = str(self.lowest.config.optimized_metric)

    def trial(self, number: int, values: dict[str, Any]) -> Job:
        """The job of a trial. Raises UserError if it cannot be run."""
        return self.job(folder_of(number), values)

    def job(self, subdir: str, values: dict[str, Any]) -> Job:
        """A job of some values, in a folder of the search. Raises UserError if it cannot be run."""
        given = [f"{key}={value}" for key, value in values.items()]
        shown = [
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in values.items()
        ]
        return self._composer.job([*self.fixed, *given], shown, subdir)

    def description(self) -> dict[str, Any]:
        """What must not change when a search goes on."""
        from optuna.distributions import distribution_to_json

        space = {key: json.loads(distribution_to_json(each)) for key, each in self.distributions.items()}
        return {"metric": self.metric, "space": space}

    def show(self, n_trials: int) -> None:
        """What dry_run=true says of a search."""
        say(f"{n_trials} trials in {self.folder}, for the best {self.metric}; dry_run=true runs none")
        for key, each in self.distributions.items():
            say(f"  {key}: {each}")


class Study:
    """Optuna's study in the folder of the search: what was tried and how it went, whatever happens to the process."""

    def __init__(self, space: Space, sampler: DictConfig) -> None:
        """Raises UserError if the study that lies there is damaged or of something else."""
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
            self.study.get_trials(deepcopy=False)  # those that have ended are read once, here
        if known is None:
            self.study.set_user_attr("search", space.description())
        elif known != space.description():
            raise UserError(f"{self.path} is a search of {json.dumps(known)}; give this one another sweep.name")

    def numbers(self) -> list[int]:
        """The numbers of all trials so far."""
        return [trial.number for trial in self.study.get_trials(deepcopy=False)]

    def trials(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The number and the values of every trial so far."""
        return ((number, self.values(number)) for number in self.numbers())

    def failed(self) -> list[int]:
        """The numbers of the trials that failed."""
        from optuna.trial import TrialState

        return [trial.number for trial in self.study.get_trials(deepcopy=False, states=(TrialState.FAIL,))]

    def values(self, number: int) -> dict[str, Any]:
        """What a trial tries. Raises UserError for what is not in the space of this command line.

        The values become overrides, and the file may be a stranger's.
        """
        values = dict(self.study.get_trials(deepcopy=False)[number].params)
        space = self.space.distributions
        for key, value in values.items():
            if not (key in space and is_in(space[key], value)):
                raise UserError(f"{self.path}: trial {number} has {key}={value}, not a value of this search; move it")
        return values

    def batches(self, n_trials: int, at_a_time: int) -> Iterator[list[int]]:
        """The numbers of the trials to run next: those that were interrupted, then new ones until there are enough."""
        from optuna.trial import TrialState

        interrupted = [trial.number for trial in self.study.get_trials(states=(TrialState.RUNNING,))]
        while interrupted:
            yield interrupted[:at_a_time]
            interrupted = interrupted[at_a_time:]
        while (left := n_trials - len(self.study.get_trials(deepcopy=False))) > 0:
            yield [self.ask() for _ in range(min(left, at_a_time))]

    def ask(self) -> int:
        """Let the sampler choose a trial. Its seed goes with the trial, so that a search that goes on goes on alike."""
        if self.sampler:
            seed = {} if self.sampler.get("seed") is None else {"seed": self.sampler.seed + len(self.numbers())}
            self.study.sampler = instantiate(self.sampler, **seed)
        return self.study.ask(self.space.distributions).number

    def tell(self, number: int, job: Job | None) -> None:
        """How a trial went; None: it could not be run."""
        from optuna.trial import TrialState

        value = metric_of(job, job.record()) if job and job.status == "finished" else None
        self.study.tell(number, value, state=TrialState.FAIL if value is None else None)

    def best_value(self) -> float | None:
        """The best value of the trials that went well."""
        from optuna.trial import TrialState

        if not self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            return None
        return float(self.study.best_value)

    def write_best(self, jobs: dict[int, Job]) -> None:
        """The best trial as JSON, and in the log."""
        if self.best_value() is None:
            return
        best = self.study.best_trial
        folder, name = jobs[best.number].folder.path, jobs[best.number].name
        content = {"metric": self.space.metric, "value": best.value, "values": best.params, "run": str(folder)}
        write_atomically(self.space.folder / BEST_FILE, json.dumps(content, indent=2) + "\n")
        log.info("The best trial: %s %.4f with %s", self.space.metric, best.value, name)
        log.info("  in %s", folder)


def is_in(space: Any, value: Any) -> bool:
    """Whether a distribution of Optuna's has a value."""
    try:
        return bool(space._contains(space.to_internal_repr(value)))
    except ValueError:
        return False


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise UserError for what SQLite and Optuna complain about in the file of a study."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        if path.exists():
            check_database(path)
        yield
    except (SQLAlchemyError, sqlite3.Error, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = getattr(error, "orig", None) or error
        raise UserError(
            f"{path} cannot be read ({type(reason).__name__}: {reason}); "
            f"move it away with the trials beside it, or give this search another sweep.name"
        ) from error


def check_database(path: Path) -> None:
    """Raise sqlite3.DatabaseError if a file is no whole database. Waits for a process that writes to it."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        found = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise sqlite3.DatabaseError(" ".join(str(found[0]).split()))


def distribution(override: Override) -> Any:
    """What Optuna draws from for `key=interval(0,1)`, `tag(log,interval(1e-4,1))`, `range(1,9)` or `a,b`.

    Raises UserError for an interval that cannot be drawn from.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    value: Any = override.value()
    if isinstance(value, RangeSweep) and not [*value.range()]:
        raise UserError(f"{override.input_line}: there is nothing in this range")
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
