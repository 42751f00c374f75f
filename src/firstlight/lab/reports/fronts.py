"""The Pareto front of a search with several objectives: the trials that no other trial beats in all of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from firstlight.runs.objectives import MEASURES, on_front
from firstlight.runs.summary import Run

MINIMIZE = "minimize"


@dataclass(frozen=True)
class Front:
    """The trials of a search with several objectives.

    objectives: `minimize` or `maximize` by name; best: the trials on the front, sorted by the first objective; others:
    the other trials that have a value of each objective.
    """

    objectives: dict[str, str]
    best: tuple[Run, ...]
    others: tuple[Run, ...]

    @property
    def names(self) -> str:
        return " and ".join(self.objectives)

    @property
    def size(self) -> int:
        return len(self.best) + len(self.others)

    def values(self, run: Run) -> list[float]:
        """Return the values of the objectives of one of the trials."""
        return [value for name in self.objectives if (value := value_of(run, name)) is not None]


def front_of(runs: Sequence[Run]) -> Front | None:
    """Return the front of the counted runs that have the most frequent objectives; None without such runs."""
    known = Counter(tuple(run.objectives.items()) for run in runs if run.is_counted and run.objectives)
    if not known:
        return None
    chosen = min(known, key=lambda each: (-known[each], each))
    objectives = dict(chosen)
    measured = [
        run
        for run in runs
        if run.is_counted
        and tuple(run.objectives.items()) == chosen
        and all(value_of(run, name) is not None for name in objectives)
    ]
    if not measured:
        return None
    front = Front(objectives, (), ())
    falls = [direction == MINIMIZE for direction in objectives.values()]
    is_best = on_front([front.values(run) for run in measured], falls)
    best = [run for run, is_on in zip(measured, is_best, strict=True) if is_on]
    best.sort(key=lambda run: front.values(run)[0], reverse=not falls[0])
    others = [run for run, is_on in zip(measured, is_best, strict=True) if not is_on]
    return Front(objectives, tuple(best), tuple(others))


def value_of(run: Run, name: str) -> float | None:
    """Return the value of an objective of a run: a metric or a number of its record."""
    value: float | None = getattr(run, name) if name in MEASURES else run.metrics.get(name)
    return value


def front_sentence(front: Front) -> str:
    """Return the result of a search with several objectives, such as `3 of 9 trials are on the Pareto front of …`."""
    verb = "trial is" if len(front.best) == 1 else "trials are"
    return f"{len(front.best)} of {front.size} {verb} on the Pareto front of {front.names}"
