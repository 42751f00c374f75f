"""The values that a search chooses from, and Optuna's distributions of them."""

import json
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep

from firstlight.config.metric_names import check_objectives
from firstlight.errors import UserError
from firstlight.runs.objectives import MAXIMIZE, MINIMIZE, objectives_of, value_in
from firstlight.runs.study import trial_folder
from firstlight.sweeps.jobs import Composer, Job, choices
from firstlight.terminal_text import say


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
        self.objectives = objectives_of(composer.config.hydra.sweeper)
        check_objectives(self.lowest.config, self.objectives)

    def trial(self, number: int, values: dict[str, Any]) -> Job:
        """Return the job of a trial. Raises UserError if it cannot run."""
        return self.job(trial_folder(number), values)

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
        return ({"objectives": [*self.objectives]} if self.objectives else {"metric": self.metric}) | {"space": space}

    def directions(self) -> list[str]:
        """Return `minimize` or `maximize` for each objective."""
        if self.objectives:
            return [*self.objectives.values()]
        return [MINIMIZE if self.lowest.is_minimized else MAXIMIZE]

    def results(self, job: Job) -> list[float] | None:
        """Return the value of each objective of a finished job; None if one of them is unknown."""
        record = job.record()
        found = [value_in(record, name) for name in self.objectives or (self.metric,)]
        return None if None in found else [value for value in found if value is not None]

    def show(self, n_trials: int) -> None:
        """Print what dry_run=true shows of a search."""
        wanted = " and ".join(self.objectives) or self.metric
        say(f"{n_trials} trials in {self.folder}, for the best {wanted}; dry_run=true runs none")
        for key, each in self.distributions.items():
            say(f"  {key}: {each}")


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
