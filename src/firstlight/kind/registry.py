"""Registry of the kinds of networks. Imports no torch."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from importlib import import_module
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight import config_files
from firstlight.errors import UserError, reason
from firstlight.kind.kind import Kind

PACKAGES = tuple(f"firstlight.{name}" for name in ("classifier", "generator", "translator", "masked"))
OWN: dict[str, Kind] = {kind.name: kind for kind in (import_module(f"{name}.kind").KIND for name in PACKAGES)}


class _Kinds(Mapping[str, Kind]):
    """All kinds by name: those of firstlight, then those that the user lists in conf/kinds.yaml.

    The packages of the user are imported at the first use. Raises UserError for one that cannot be used.
    """

    @cached_property
    def _all(self) -> dict[str, Kind]:
        kinds = dict(OWN)
        for file, package in config_files.kind_packages():
            kind = _kind_of(package, f"{file}: {package}")
            if kind.name in kinds:
                raise UserError(f"{file}: {package}: another kind has the name {kind.name}; choose another name")
            kinds[kind.name] = kind
        return kinds

    def __getitem__(self, name: str) -> Kind:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _kind_of(package: str, place: str) -> Kind:
    """Return the kind of a package of the user. place: the start of an error."""
    try:
        kind = import_module(f"{package}.kind").KIND
    except Exception as error:  # a module may raise any exception when it is imported
        raise UserError(f"{place} cannot be imported: {reason(error)}; start in the folder of the package") from error
    if not isinstance(kind, Kind):
        raise UserError(f"{place}: KIND in kind.py must be a Kind, not a {type(kind).__name__}")
    return kind


KINDS: Mapping[str, Kind] = _Kinds()


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
