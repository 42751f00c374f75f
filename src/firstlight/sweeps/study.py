"""The study of a search: Optuna's record of all trials and their results, in the folder of the search."""

import json
import logging
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich.table import Table

from firstlight.console import Console
from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.runs.objectives import DIRECTION, KEY, MINIMIZE
from firstlight.runs.study import SECONDS_FOR_OTHERS, STUDY_FILE, STUDY_NAME, made, seed_of, storage_of
from firstlight.sweeps.jobs import Job
from firstlight.sweeps.space import Space

log = logging.getLogger(__name__)

BEST_FILE = "best.json"

SamplerFactory = Callable[[int], Any]


def samplers_and_pruners(sweeper: DictConfig) -> tuple[SamplerFactory, Any]:
    """Return a function that makes a sampler, and the pruner; None in place of what the configuration does not name.

    The function adds its argument to the seed. sweeper: the node `hydra.sweeper`. Raises UserError for a sampler or
    pruner that cannot be made.
    """
    seed = seed_of(sweeper.sampler)

    def make_sampler(added: int) -> Any:
        return made("sampler", sweeper.sampler, **({} if seed is None else {"seed": seed + added}))

    make_sampler(0)
    return make_sampler, made("pruner", sweeper.pruner)


class Study:
    """Optuna's study, a database in the folder of the search. It stores all trials and their results."""

    def __init__(self, space: Space, make_sampler: SamplerFactory, pruner: Any) -> None:
        """Open or create the study. Raises UserError if an existing one is damaged or belongs to another search.

        make_sampler: returns a sampler for a number that is added to its seed; pruner: Optuna's, or None.
        """
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.make_sampler, self.path = space, make_sampler, space.folder / STUDY_FILE
        directions = space.directions()
        with readable(self.path):
            self.study = optuna.create_study(
                storage=storage_of(self.path),
                study_name=STUDY_NAME,
                directions=directions,
                pruner=pruner or optuna.pruners.NopPruner(),
                load_if_exists=True,
            )
            known = self.study.user_attrs.get("search")
            had = [each.name.lower() for each in self.study.directions]
            self.study.get_trials(deepcopy=False)  # reads the trials that have ended, once
        if known is None:
            self.study.set_user_attr("search", space.description())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                self.study.set_metric_names([*space.objectives] or [space.metric])  # for optuna-dashboard
        elif known != space.description():
            first, second = difference(known, space.description())
            raise UserError(
                f"{self.path} is a search with {first}, and this command has {second}; choose another sweep.name"
            )
        for name, then, now in zip(space.objectives or (space.metric,), had, directions, strict=False):
            if then != now:
                remedy = f"{DIRECTION}=[{','.join(had)}]" if space.objectives else f"optimized_mode={then[:3]}"
                raise UserError(
                    f"{self.path} is a search that {then}s {name}, and this command would {now} it; set {remedy}, or "
                    "choose another sweep.name"
                )

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
        sampler = self.make_sampler(len(self.numbers()))
        if sampler is not None:
            self.study.sampler = sampler
        return self.study.ask(self.space.distributions).number

    def tell(self, number: int, job: Job | None) -> None:
        """Store the result of a trial. job: None if it could not run."""
        from optuna.trial import TrialState

        if job and job.status == "pruned":  # its value is that of its last validation, which it has stored itself
            self.study.tell(number, state=TrialState.PRUNED)
            return
        values = self.space.results(job) if job and job.status == "finished" else None
        self.study.tell(number, values, state=TrialState.FAIL if values is None else None)

    def best_value(self) -> float | None:
        """Return the best value of the finished trials; None without one, and for several objectives."""
        from optuna.trial import TrialState

        if self.space.objectives or not self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            return None
        return float(self.study.best_value)

    def write_best(self, jobs: dict[int, Job]) -> None:
        """Write the best trial, or those on the Pareto front of several objectives, as JSON and to the log."""
        if self.space.objectives:
            self._write_front(jobs)
            return
        if self.best_value() is None:
            return
        best = self.study.best_trial
        folder, name = jobs[best.number].folder.path, jobs[best.number].name
        content = {"metric": self.space.metric, "value": best.value, "values": best.params, "run": str(folder)}
        write_atomically(self.space.folder / BEST_FILE, json.dumps(content, indent=2) + "\n")
        log.info("The best trial: %s %.4f with %s", self.space.metric, best.value, name)
        log.info("  in %s", folder)

    def _front(self) -> list[Any]:
        """Return the trials on the Pareto front, those with the best first objective first."""
        is_falling = self.space.directions()[0] == MINIMIZE
        return sorted(self.study.best_trials, key=lambda trial: trial.values[0], reverse=not is_falling)

    def _write_front(self, jobs: dict[int, Job]) -> None:
        trials = [
            {
                "objectives": dict(zip(self.space.objectives, trial.values, strict=True)),
                "values": trial.params,
                "run": str(jobs[trial.number].folder.path),
            }
            for trial in self._front()
        ]
        content = {"objectives": self.space.objectives, "front": trials}
        write_atomically(self.space.folder / BEST_FILE, json.dumps(content, indent=2) + "\n")

    def show_front(self, jobs: dict[int, Job]) -> None:
        """Print the trials on the Pareto front of several objectives."""
        names = [*self.space.objectives]
        if not names:
            return
        front, console = self._front(), Console()
        count = len(self.study.get_trials(deepcopy=False))
        console.print(f"The Pareto front of {' and '.join(names)}: {len(front)} of {count} trials", soft_wrap=True)
        console.print(front_table(names, [(jobs[trial.number].name, trial.values) for trial in front]))


def front_table(objectives: Sequence[str], trials: Sequence[tuple[str, Sequence[float]]]) -> Table:
    """Return a table with a row for each trial: its name and its values of the objectives."""
    table = Table()
    table.add_column("job", overflow="fold")
    for name in objectives:
        table.add_column(name, justify="right", no_wrap=True)
    for job, values in trials:
        table.add_row(job, *(f"{value:,.0f}" if float(value).is_integer() else f"{value:.4f}" for value in values))
    return table


def difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str]:
    """Return the first difference of the descriptions of two searches, as it is typed, for each of them."""
    for key, name in (("metric", "optimized_metric"), ("objectives", KEY)):
        if then.get(key) != now.get(key):
            values = (each.get(key) for each in (then, now))
            texts = (f"[{','.join(value)}]" if isinstance(value, list) else value for value in values)
            first, second = (f"no {name}" if text is None else f"{name}={text}" for text in texts)
            return first, second
    spaces = (then.get("space") or {}, now.get("space") or {})
    keys = dict.fromkeys([*spaces[0], *spaces[1]])
    key = next(key for key in keys if spaces[0].get(key) != spaces[1].get(key))
    first, second = (f"{key}={typed_range(space[key])}" if key in space else f"no range of {key}" for space in spaces)
    return first, second


def typed_range(distribution: Mapping[str, Any]) -> str:
    """Return the JSON of one of Optuna's distributions as it is typed, such as `tag(log, interval(0.0001, 0.1))`."""
    options = distribution.get("attributes") or {}
    if "choices" in options:
        return ",".join(map(str, options["choices"]))
    step = options.get("step")
    is_range = step is not None and not (distribution.get("name") == "IntDistribution" and step == 1)
    ends = f"{options.get('low')}, {options.get('high')}"
    text = f"range({ends}, step={step})" if is_range else f"interval({ends})"
    return f"tag(log, {text})" if options.get("log") else text


def is_in(space: Any, value: Any) -> bool:
    """Return whether a distribution of Optuna contains a value."""
    try:
        return bool(space._contains(space.to_internal_repr(value)))
    except ValueError:
        return False


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise UserError where SQLite or Optuna cannot read the file of a study."""
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        if path.exists():
            check_database(path)
        yield
    except (OptunaError, SQLAlchemyError, sqlite3.Error, ValueError, LookupError, TypeError, AttributeError) as error:
        cause = error.__cause__ or error
        reason = getattr(cause, "orig", None) or cause
        if "database is locked" in str(reason):
            raise UserError(f"{path}: another process uses the search; wait for it, or stop it") from error
        raise UserError(
            f"{path} cannot be read ({type(reason).__name__}: {reason}); "
            f"move the folder of the search, or choose another sweep.name"
        ) from error


def check_database(path: Path) -> None:
    """Raise sqlite3.DatabaseError if a file is not a complete database. Wait for a process that writes to it."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", SECONDS_FOR_OTHERS, uri=True)) as database:
        found = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise sqlite3.DatabaseError(" ".join(str(found[0]).split()))
