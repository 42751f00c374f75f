"""Results of baselines, and the choice among their candidates on the validation split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from firstlight.errors import UserError
from firstlight.kind.data_changes import DataChanges
from firstlight.runs.folder import lower_is_better
from firstlight.terminal_text import say

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Fitted:
    """Baseline with a chosen candidate.

    parameters: number of weights or counts. chosen: name and value of the choice. tried: validation metrics of all
    candidates. validation: validation metrics of the chosen one. test: function that measures the test split, which is
    not read before. references: function that returns the metrics of simpler models by their name, such as
    `largest_class`. other: function from the options of the task's data, their changes and the folder of the cache to
    the metrics of other data; None if the kind of the data has no such function.
    """

    parameters: int
    chosen: dict[str, Any]
    tried: dict[str, dict[str, dict[str, float]]]
    validation: dict[str, float]
    test: Callable[[], dict[str, float]]
    references: Callable[[], dict[str, dict[str, float]]] = dict
    other: Callable[[dict[str, Any], DataChanges, Path], dict[str, float]] | None = None


def best_of(tried: Mapping[Choice, dict[str, float]], metric: str) -> Choice:
    """Return the choice with the best validation metric, and of equal ones that with the lowest loss.

    Raises UserError for an unknown metric.
    """
    measured = next(iter(tried.values()))
    if metric not in measured:
        raise UserError(f"optimized_metric={metric}: the baseline does not measure it; use {', '.join(measured)}")
    sign = 1 if lower_is_better(metric) else -1
    return min(tried, key=lambda choice: (sign * tried[choice][metric], tried[choice]["val/loss"]))


def say_choice(name: str, choice: float, metrics: dict[str, float]) -> None:
    """Print the metrics of a candidate on one line."""
    say(f"{name}={choice:g}: {', '.join(f'{metric} {value:.4f}' for metric, value in metrics.items())}", flush=True)
