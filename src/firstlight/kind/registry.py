"""Registry of the kinds of networks. Imports no torch."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.errors import UserError
from firstlight.kind.kind import Kind

PACKAGES = ("classifier", "generator", "translator", "masked")  # of firstlight; add a new kind here
KINDS: Mapping[str, Kind] = {name: import_module(f"firstlight.{name}.kind").KIND for name in PACKAGES}


def kind_of_config(config: DictConfig) -> Kind:
    """Return the kind of network that a composed configuration describes."""
    return next(kind for kind in KINDS.values() if OmegaConf.get_type(config.model) is kind.model)


def kind_of_saved(model: Mapping[str, Any]) -> Kind:
    """Return the kind of network with the options that a run saved as `model`. Another version may differ in some.

    Raises UserError if none of the options is known.
    """

    def likeness(kind: Kind) -> tuple[int, int]:
        options = {field.name for field in fields(kind.model)}
        return len(options & model.keys()), -len(options - model.keys())

    kind = max(KINDS.values(), key=likeness)
    if likeness(kind)[0] == 0:
        problem = f"the saved options of model do not belong to a kind of network ({', '.join(KINDS)})"
        raise UserError(f"{problem}; train the run again")
    return kind


def kinds_with(option: str) -> str:
    """Return the kinds to which an option of `evaluate` or `predict` applies, such as `generators and translators`."""
    return " and ".join(
        f"{kind.noun}s" for kind in KINDS.values() if option in kind.evaluation_options + kind.prediction_options
    )
