"""The study of a search: the values that it chooses from, and Optuna's record of all trials and their results.

Imports Optuna, which is an extra.
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any

import optuna
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from omegaconf import DictConfig
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from firstlight.config.checks import check_objectives
from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.runs import trials
from firstlight.runs.summary import SEED
from firstlight.sweeps.jobs import Composer, Job, choices
from firstlight.terminal_text import say

BEST_FILE = "best.json"
EXAMPLE = "optimizer.lr='tag(log, interval(1e-4, 1e-1))'"
FOLD = "data.fold"  # of several, a trial has the mean


class Space:
    """The values that are searched, and those that all trials share.

    distributions: Optuna's, by the key; goals: `minimize` or `maximize` by the name of the objective, one or several;
    repeats: the overrides of each job of a trial, whose result is their mean: of its folds and of its seeds.
    """

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        swept = [each for each in composer.overrides if each.is_sweep_override()]
        searched = [each for each in swept if each.get_key_element() != FOLD]
        self.folds = [choice for each in swept if each not in searched for choice in choices(each)]
        if not searched:
            remedy = "give at least one key an interval or a list"
            raise UserError(f"the search has no key to vary; {remedy}, such as {EXAMPLE}")
        self.fixed = [choices(each)[0] for each in composer.overrides if not each.is_sweep_override()]
        self.distributions = {each.get_key_element(): distribution(each) for each in searched}
        lowest = (each.choices[0] if hasattr(each, "choices") else each.low for each in self.distributions.values())
        values = dict(zip(self.distributions, lowest, strict=True))
        self.lowest = self.job("lowest", values, *self.folds[:1])  # it never runs
        self.folder = self.lowest.folder.path.parent
        number, first = composer.config.hydra.sweeper.get("seeds", 1), self.lowest.config.seed
        if number < 1 or (number > 1 and SEED in self.distributions):
            raise UserError(f"hydra.sweeper.seeds={number} must be 1 or more, and requires a single seed=; change one")
        self.seeds = range(first, first + number)
        objectives = trials.objectives_of(composer.config.hydra.sweeper)
        check_objectives(self.lowest.config, objectives)
        metric = str(self.lowest.config.optimized_metric)
        of_seeds = [f"{SEED}={each}" for each in self.seeds] if number > 1 else []
        self.repeats = [*product(*filter(None, (self.folds, of_seeds)))]
        if objectives and len(self.repeats) > 1:
            which = FOLD if self.folds else f"hydra.sweeper.seeds={number}"
            raise UserError(f"{which} requires a single objective; remove {trials.OBJECTIVES}")
        self.goals = objectives or {metric: trials.MINIMIZE if self.lowest.is_minimized else trials.MAXIMIZE}

    def folders(self, number: int) -> list[str]:
        """Return the names of the folders of a trial, one for each fold and seed."""
        return ["_".join((trials.trial_folder(number), *repeat)).replace("=", "-") for repeat in self.repeats]

    def jobs(self, number: int, values: Mapping[str, Any]) -> list[Job]:
        """Return the jobs of a trial, for each fold and seed. The pruner sees the first one, which decides for all."""
        own = [{**values, **dict(each.split("=") for each in repeat)} for repeat in self.repeats]
        first, *others = zip(self.folders(number), own, strict=True)
        return [self.job(*first), *(self.job(*other, f"{trials.PRUNER}=null") for other in others)]

    def job(self, subdir: str, values: Mapping[str, Any], *more: str) -> Job:
        """Return a job of some values, in a folder of the search. Raises UserError if it cannot run."""
        given = [f"{key}={value}" for key, value in values.items()]
        rounded = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in values.items()}
        shown = [f"{key}={value}" for key, value in rounded.items()]
        return self._composer.job([*self.fixed, *given, *more], shown, subdir)

    def show(self, n_trials: int) -> None:
        """Print what dry_run=true shows of a search."""
        say(f"{n_trials} trials in {self.folder}, for the best {' and '.join(self.goals)}; dry_run=true runs none")
        for key, each in self.distributions.items():
            say(f"  {key}: {each}")


def distribution(override: Override) -> Any:
    """Return Optuna's distribution for `key=interval(0,1)`, `tag(log,interval(1e-4,1))`, `range(1,9)` or `a,b`.

    Raises UserError for an interval that cannot be drawn from.
    """
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


def sampler_of(node: Any, number: int) -> Any:
    """Return the sampler that a node of the configuration names; None if it names none.

    number: of the next trial, which is added to the seed, so that a continued search chooses what an uninterrupted one
    chooses.
    """
    seed = node.get("seed") if isinstance(node, DictConfig) else None
    if not isinstance(seed, int | None):
        raise UserError(f"hydra.sweeper.sampler.seed={seed} must be an integer, such as 1")
    return trials.made("sampler", node, **({} if seed is None else {"seed": seed + number}))


class Study:
    """Optuna's study, a file in the folder of the search. It stores all trials and their results."""

    def __init__(self, space: Space, make_sampler: Callable[[int], Any], pruner: Any) -> None:
        """Open or create the study. Raises UserError if an existing one is damaged or belongs to another search.

        make_sampler: returns the sampler for the number of a trial; pruner: Optuna's, or None.
        """
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.make_sampler, self.path = space, make_sampler, space.folder / trials.STUDY_FILE
        now = settings(space)
        with trials.readable(self.path):
            self.study = optuna.create_study(
                storage=trials.storage_of(self.path),
                study_name=trials.STUDY_NAME,
                directions=[*space.goals.values()],
                pruner=pruner or optuna.pruners.NopPruner(),
                load_if_exists=True,
            )
            known = self.study.user_attrs.get("search")
            then = now if known is None else {str(key): str(value) for key, value in known.items()}
            for trial in self.trials():
                trial._validate()
            starts = [trial.datetime_start for trial in self.trials() if trial.datetime_start]
            if len({*starts}) < len(starts):  # each begins at another microsecond
                raise ValueError("lines are repeated: two of its trials are the same")
        if known is None:
            self.study.set_user_attr("search", now)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                self.study.set_metric_names([*space.goals])  # for optuna-dashboard
        for key in (*then, *now):
            if then.get(key) != now.get(key):
                first, second = (f"{key}={each[key]}" if key in each else f"no {key}" for each in (then, now))
                problem = f"{self.path} is a search with {first}, and this command has {second}"
                raise UserError(f"{problem}; choose another sweep.name")

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """Return all trials so far, or those with one of some states."""
        return self.study.get_trials(deepcopy=False, states=states or None)

    def values(self, number: int) -> dict[str, Any]:
        """Return the values of a trial. Raises UserError for a value outside the space of this command line.

        The values become overrides, and another person may have written the file.
        """
        values = dict(self.trials()[number].params)
        space = {key: each for key, each in self.space.distributions.items() if key in values}
        try:
            optuna.create_trial(params=values, distributions=space, state=TrialState.RUNNING)
        except ValueError as error:
            raise UserError(f"{self.path}: trial {number} is not of this search ({error}); move the file") from error
        return values

    def has_left(self, n_trials: int) -> bool:
        """Return whether trials remain until there are n_trials that have ended."""
        return bool(self.trials(TrialState.RUNNING)) or len(self.trials()) < n_trials

    def batches(self, n_trials: int, at_a_time: int) -> Iterator[list[int]]:
        """Yield the numbers of the trials to run next: interrupted ones, then new ones until there are n_trials."""
        interrupted = [trial.number for trial in self.trials(TrialState.RUNNING)]
        for first in range(0, len(interrupted), at_a_time):
            yield interrupted[first : first + at_a_time]
        while (left := n_trials - len(self.trials())) > 0:
            yield [self.ask() for _ in range(min(left, at_a_time))]

    def ask(self) -> int:
        """Let the sampler choose a trial. Return its number."""
        sampler = self.make_sampler(len(self.trials()))
        if sampler is not None:
            self.study.sampler = sampler
        return self.study.ask(self.space.distributions).number

    def tell(self, number: int, jobs: Sequence[Job]) -> None:
        """Store the mean of a trial's jobs as its result, and the result of each. jobs: none if it could not run."""
        finished = [job for job in jobs if job.status == "finished"]
        found = [[trials.value_in(job.record(), name) for name in self.space.goals] for job in finished]
        if any(job.status == "pruned" for job in jobs):  # its value is that of its last validation, which it has stored
            self.study.tell(number, state=TrialState.PRUNED)
        elif len(found) < len(self.space.repeats) or any(None in values for values in found):
            self.study.tell(number, state=TrialState.FAIL)
        else:
            for repeat, values in zip(self.space.repeats, found, strict=True) if len(jobs) > 1 else ():
                trial = optuna.Trial(self.study, self.trials()[number]._trial_id)
                trial.set_user_attr(" ".join(repeat), values[0])
            self.study.tell(number, [fmean(values) for values in zip(*found, strict=True)])

    def best(self) -> list[FrozenTrial]:
        """Return the best trials, those on the Pareto front of several objectives, by the first objective."""
        is_falling = next(iter(self.space.goals.values())) == trials.MINIMIZE
        return sorted(self.study.best_trials, key=lambda trial: trial.values[0], reverse=not is_falling)

    def write_best(self, jobs: Mapping[int, Sequence[Job]]) -> None:
        """Write the best trial as JSON, or those on the Pareto front of several objectives."""
        best, names = self.best(), [*self.space.goals]
        if not best:
            return
        runs = [{"values": trial.params, "run": str(jobs[trial.number][0].folder.path)} for trial in best]
        content: dict[str, Any] = {"metric": names[0], "value": best[0].values[0], **runs[0]}
        if len(self.space.repeats) > 1:
            content["seeds"] = {job.folder.path.name: job.record()["metrics"][names[0]] for job in jobs[best[0].number]}
        if len(names) > 1:
            values = [{"objectives": dict(zip(names, trial.values, strict=True))} for trial in best]
            content = {"objectives": self.space.goals, "front": [a | b for a, b in zip(values, runs, strict=True)]}
        write_atomically(self.space.folder / BEST_FILE, json.dumps(content, indent=2) + "\n")


def settings(space: Space) -> dict[str, str]:
    """Return the settings that must stay the same when a search is continued, by the key."""
    names, directions = [*space.goals], [*space.goals.values()]
    if len(names) == 1:
        goals = {"optimized_metric": names[0], "optimized_mode": directions[0][:3]}
    else:
        goals = {trials.OBJECTIVES: f"[{','.join(names)}]", trials.DIRECTION: f"[{','.join(directions)}]"}
    if len(space.seeds) > 1:
        goals["hydra.sweeper.seeds"] = str([*space.seeds])
    if space.folds:
        goals[FOLD] = ",".join(each.partition("=")[2] for each in space.folds)
    return goals | {key: str(each) for key, each in space.distributions.items()}
