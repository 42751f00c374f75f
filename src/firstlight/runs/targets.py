"""The classes that a configuration names by `_target_`: checks that they exist, and the user's own ones."""

import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from firstlight.choices import listed
from firstlight.errors import UserError, reason
from firstlight.invocation import is_installed, location
from firstlight.version import PACKAGE

TARGET = "_target_"
KNOWN = ("firstlight", "lightning", "torch")  # packages whose classes need not all of torchmetrics


def targets(config: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the full key of every `_target_` with its dotted name, except those in the settings of Hydra."""
    names = range(len(config)) if isinstance(config, ListConfig) else [str(name) for name in config]
    for name in names:
        full_key = f"{key}.{name}" if key else str(name)
        is_empty = OmegaConf.is_missing(config, name) or OmegaConf.is_interpolation(config, name)
        if full_key == "hydra" or is_empty:
            continue
        value = config[name]
        if name == TARGET and isinstance(value, str):
            yield full_key, value
        elif isinstance(value, DictConfig | ListConfig):
            yield from targets(value, full_key)


def check_targets(config: DictConfig) -> None:
    """Raise UserError for a `_target_` whose package cannot be found. Imports nothing."""
    for key, target in targets(config):
        if not target.isascii() or not all(part.isidentifier() for part in target.split(".")) or "." not in target:
            raise UserError(f"{key}={target} must be a class in a module, such as my_package.my_module.MyClass")
        if location(target) is None and not _is_built_in(target):
            problem = f"the package {_package(target)} is neither in {Path.cwd()} nor in this environment"
            remedy = "correct the name, or start in the folder that has the package"
            raise UserError(f"{key}={target}: {problem}; {remedy}")


def import_targets(config: DictConfig) -> None:
    """Raise UserError for a `_target_` that cannot be imported."""
    for key, target in targets(config):
        imported(key, target)


def imported(key: str, target: str) -> Any:
    """Return the class or function that a key names. Raises UserError, with what its module has in place of it."""
    place, _, name = target.rpartition(".")
    try:
        with suppress(AttributeError):
            return resolve_name(target)
        module = import_module(place)
    except Exception as error:  # a module may raise any exception when it is imported
        raise UserError(f"{key}={target} cannot be imported: {reason(error)}; start in its folder") from error
    public = {other: value for other, value in vars(module).items() if callable(value) and not other.startswith("_")}
    there = [other for other, value in public.items() if str(getattr(value, "__module__", "")).startswith(place)]
    raise UserError(f"{key}={target}: {place} has no {name}; {place} has {listed(there) or 'no class and no function'}")


def needs_all_metrics(config: DictConfig) -> bool:
    """Return whether config names a class that may need all of torchmetrics: not one of firstlight or its base."""
    return any(_package(target) not in KNOWN for _, target in targets(config))


def own_sources(config: DictConfig) -> list[Path]:
    """Return the files and folders of the user's own modules and packages that config names: those not installed."""
    found = {location(target) for _, target in targets(config)}
    return sorted(path for path in found if path is not None and _is_own(path))


def _package(target: str) -> str:
    return target.partition(".")[0]


def _is_built_in(target: str) -> bool:
    spec = find_spec(_package(target))
    return spec is not None and not spec.has_location


def _is_own(path: Path) -> bool:
    is_standard = path.is_relative_to(sysconfig.get_path("stdlib"))
    return not is_installed(path) and not is_standard and path != PACKAGE
