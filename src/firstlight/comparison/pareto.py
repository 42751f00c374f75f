"""The Pareto front of several objectives, and the objectives that are not metrics. Imports nothing heavy."""

from collections.abc import Sequence

MEASURES = {  # numbers in every record, besides the metrics, and whether lower values are better
    "parameters": True,
    "flops": True,
    "fit_seconds": True,
    "tokens_per_second": False,
}


def on_front(points: Sequence[Sequence[float]], lower_is_better: Sequence[bool]) -> list[bool]:
    """Return for each point whether it is on the Pareto front.

    A point is on the front if no other point is at least as good in every objective and better in one.

    points: the values of the objectives of each point; lower_is_better: of each objective.

    >>> on_front([(1, 9), (2, 5), (3, 6)], [True, True])
    [True, True, False]
    """
    lowered = [[value if low else -value for value, low in zip(each, lower_is_better, strict=True)] for each in points]
    return [not any(_dominates(other, point) for other in lowered) for point in lowered]


def _dominates(one: Sequence[float], two: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, two, strict=True)) and any(a < b for a, b in zip(one, two, strict=True))
