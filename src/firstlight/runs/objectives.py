"""The objectives of a search: what it minimizes or maximizes. Imports nothing heavy."""

from collections.abc import Mapping
from typing import Any

from omegaconf import ListConfig

from firstlight.errors import UserError
from firstlight.runs.folder import lower_is_better

MEASURES = {  # numbers in every record, besides the metrics, and whether lower values are better
    "parameters": True,
    "flops": True,
    "fit_seconds": True,
    "tokens_per_second": False,
}
KEY, DIRECTION = "hydra.sweeper.objectives", "hydra.sweeper.direction"
MINIMIZE, MAXIMIZE = "minimize", "maximize"


def objectives_of(sweeper: Any) -> dict[str, str]:
    """Return the objectives that a search names, with `minimize` or `maximize`; {} for a search for optimized_metric.

    sweeper: the node `hydra.sweeper`, of any sweeper. Raises UserError for objectives without a direction or repeated.
    """
    given, directions = (_listed(sweeper.get(key)) for key in ("objectives", "direction"))
    if not given:
        if directions:
            raise UserError(f"{DIRECTION} requires {KEY}; for one metric, set optimized_mode=min or optimized_mode=max")
        return {}
    shown = f"{KEY}=[{','.join(given)}]"
    if len(set(given)) < max(2, len(given)):
        raise UserError(f"{shown}: name several different objectives; for one metric, set optimized_metric={given[0]}")
    directions = directions or [MINIMIZE if _falls(name) else MAXIMIZE for name in given]
    wrong = next((each for each in directions if each not in (MINIMIZE, MAXIMIZE)), None)
    if wrong is not None:
        raise UserError(f"{DIRECTION}: {wrong} must be {MINIMIZE} or {MAXIMIZE}")
    if len(directions) != len(given):
        raise UserError(
            f"{DIRECTION} names {len(directions)} directions for {len(given)} objectives; name one for each, such as "
            f"{DIRECTION}=[{','.join([MINIMIZE] * len(given))}]"
        )
    return dict(zip(given, directions, strict=True))


def _listed(node: Any) -> list[str]:
    """Return a list of the configuration; a single value as a list of one."""
    if node is None:
        return []
    return [str(each) for each in node] if isinstance(node, ListConfig | list) else [str(node)]


def _falls(name: str) -> bool:
    return MEASURES[name] if name in MEASURES else lower_is_better(name)


def value_in(record: Mapping[str, Any], name: str) -> float | None:
    """Return the value of an objective in a run's record; None if it is unknown."""
    where: Any = (record.get("seconds") or {}) if name == "fit_seconds" else record
    found = where.get("fit" if name == "fit_seconds" else name) if name in MEASURES else record["metrics"].get(name)
    return None if found is None else float(found)
