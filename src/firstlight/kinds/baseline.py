"""What every baseline reports, and how it chooses among its candidates on the validation split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from firstlight.errors import UserError
from firstlight.runs.folder import lower_is_better
from firstlight.terminal_text import say

SPLITS = {"val": "validation", "test": "test"}

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Fitted:
    """A baseline whose choice is made.

    parameters: its weights or counts; chosen: the choice by its name; tried: the validation metrics of every choice;
    validation: those of the one chosen; test: measures the test split, which nothing has read until then.
    """

    parameters: int
    chosen: dict[str, Any]
    tried: dict[str, dict[str, dict[str, float]]]
    validation: dict[str, float]
    test: Callable[[], dict[str, float]]


def best_of(tried: Mapping[Choice, dict[str, float]], metric: str) -> Choice:
    """The first choice whose validation metric no other betters. Raises UserError for a metric that none has."""
    measured = next(iter(tried.values()))
    if metric not in measured:
        raise UserError(f"optimized_metric={metric} is nothing that a baseline has; it has {', '.join(measured)}")
    choose = min if lower_is_better(metric) else max
    return choose(tried, key=lambda choice: tried[choice][metric])


def say_choice(name: str, choice: float, metrics: dict[str, float]) -> None:
    """One line for a choice that was tried."""
    say(f"{name}={choice:g}: {', '.join(f'{metric} {value:.4f}' for metric, value in metrics.items())}", flush=True)
