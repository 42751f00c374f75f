"""The Pareto front of a search with several objectives: the trials that no other trial beats in all of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import le

from firstlight.runs.summary import Run
from firstlight.runs.trials import MEASURES, MINIMIZE


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
        found = (getattr(run, name) if name in MEASURES else run.metrics.get(name) for name in self.objectives)
        return [value for value in found if value is not None]


def on_front(points: Sequence[Sequence[float]], lower_is_better: Sequence[bool]) -> list[bool]:
    """Return for each point whether it is on the Pareto front.

    A point is on the front if no other point is at least as good in every objective and better in one.

    points: the values of the objectives of each point; lower_is_better: of each objective.

    >>> on_front([(1, 9), (2, 5), (3, 6)], [True, True])
    [True, True, False]
    """
    lowered = [[value if low else -value for value, low in zip(each, lower_is_better, strict=True)] for each in points]
    return [not any(other != point and all(map(le, other, point)) for other in lowered) for point in lowered]


def front_of(runs: Sequence[Run]) -> Front | None:
    """Return the front of the counted runs that have the most frequent objectives; None without such runs."""
    known = Counter(tuple(run.objectives.items()) for run in runs if run.is_counted and run.objectives)
    if not known:
        return None
    chosen = min(known, key=lambda each: (-known[each], each))
    front = Front(dict(chosen), (), ())
    same = [run for run in runs if run.is_counted and tuple(run.objectives.items()) == chosen]
    measured = [run for run in same if len(front.values(run)) == len(chosen)]
    falls = [direction == MINIMIZE for direction in front.objectives.values()]
    is_best = on_front([front.values(run) for run in measured], falls)
    best = [run for run, is_on in zip(measured, is_best, strict=True) if is_on]
    best.sort(key=lambda run: front.values(run)[0], reverse=not falls[0])
    others = [run for run, is_on in zip(measured, is_best, strict=True) if not is_on]
    return replace(front, best=tuple(best), others=tuple(others)) if measured else None


def front_sentence(front: Front) -> str:
    """Return the result of a search with several objectives, such as `3 of 9 trials are on the Pareto front of …`."""
    verb = "trial is" if len(front.best) == 1 else "trials are"
    return f"{len(front.best)} of {front.size} {verb} on the Pareto front of {front.names}"
