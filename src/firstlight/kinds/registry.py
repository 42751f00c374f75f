"""The kinds of networks that there are. Imports no torch."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.errors import UserError
from firstlight.kinds.kind import Kind

PACKAGES = ("classifier", "generator", "translator", "masked")  # of firstlight.kinds; a new kind is added here
KINDS: Mapping[str, Kind] = {name: import_module(f"firstlight.kinds.{name}").KIND for name in PACKAGES}


def kind_of_config(config: DictConfig) -> Kind:
    """Return the kind of network that a composed configuration describes."""
    return next(kind for kind in KINDS.values() if OmegaConf.get_type(config.model) is kind.model)


def kind_of_saved(model: Mapping[str, Any]) -> Kind:
    """Return the kind of network whose options a run saved as `model`, also if its version had some others.

    Raises UserError if none of the options is known.
    """

    def likeness(kind: Kind) -> tuple[int, int]:
        options = {field.name for field in fields(kind.model)}
        return len(options & model.keys()), -len(options - model.keys())

    kind = max(KINDS.values(), key=likeness)
    if likeness(kind)[0] == 0:
        raise UserError(f"the options of model are those of no kind of network ({', '.join(KINDS)}); train it again")
    return kind


def kinds_with(option: str) -> str:
    """Return the kinds whose runs take an option of `evaluate` or `predict`, in words: `generators and translators`."""
    return " and ".join(
        f"{kind.noun}s" for kind in KINDS.values() if option in kind.evaluation_options + kind.prediction_options
    )
