"""The study of a search: Optuna's database in the folder of the sweep, its sampler and its pruner.

Imports Optuna only when it is used.
"""

from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from firstlight.choices import nearest
from firstlight.errors import UserError, reason

STUDY_FILE = "study.db"
STUDY_NAME = "search"
SECONDS_FOR_OTHERS = 60  # that a job waits while another one writes to the database
UNPICKLES = "CmaEsSampler"
BASES = {"sampler": "BaseSampler", "pruner": "BasePruner"}


def trial_folder(number: int) -> str:
    """Return the name of a trial's folder."""
    return f"trial-{number:04d}"


def number_of_trial(folder: str) -> int:
    """Return the number of the trial that has a folder of this name."""
    return int(folder.rpartition("-")[2])


def storage_of(path: Path) -> Any:
    """Return Optuna's storage in a file. Several processes can use it at the same time."""
    from optuna.storages import RDBStorage

    return RDBStorage(f"sqlite:///{path.absolute()}", engine_kwargs={"connect_args": {"timeout": SECONDS_FOR_OTHERS}})


def is_chosen(node: Any) -> bool:
    """Return whether a node of the configuration names a sampler or a pruner."""
    return isinstance(node, str) or bool(node and node.get("_target_") is not None)


def made(part: str, node: Any, **changes: Any) -> Any:
    """Return the sampler or the pruner that a node of the configuration describes; None for a node that names none.

    part: `sampler` or `pruner`; changes: arguments that replace those of the node.

    Raises UserError for a class that does not exist, or that is not a sampler or pruner, and for wrong arguments.
    """
    key = f"hydra.sweeper.{part}"
    if isinstance(node, str):
        raise UserError(f"{key}={node}: the {part} is a group; write {key.replace('.', '/')}={node}")
    if not is_chosen(node):
        return None
    module = import_module(f"optuna.{part}s")
    target = str(node["_target_"])
    if guess := _no_such_class(module, target):
        raise UserError(f"{key}._target_={target}: Optuna has no such {part}; {guess}")
    try:
        cls = resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"{key}._target_={target} cannot be imported: {reason(error)}; {_classes_of(module)}"
        ) from error
    if cls is getattr(module, UNPICKLES, None):
        raise UserError(
            f"{key}._target_={target} unpickles values of {STUDY_FILE}, which could run code from that file; "
            "choose another sampler, such as hydra/sweeper/sampler=tpe"
        )
    _check_numbers(key, cls, node)
    try:
        found = instantiate(node, **changes, _convert_="all")
    except (InstantiationException, TypeError, ValueError) as error:
        raise UserError(f"{key}: {target}: {reason(error)}; correct its arguments") from error
    if not isinstance(found, getattr(module, BASES[part])):
        raise UserError(f"{key}._target_={target} is not a {part} of Optuna; {_classes_of(module)}")
    return found


def seed_of(node: Any) -> int | None:
    """Return the seed that the node of a sampler gives; None if it gives none."""
    return None if node is None or isinstance(node, str) or node.get("seed") is None else int(node["seed"])


def _check_numbers(key: str, cls: Any, node: Any) -> None:
    """Raise UserError for a text in place of a number. Some classes of Optuna notice it in the middle of a search."""
    for name, parameter in signature(cls).parameters.items():
        value, default = node.get(name), parameter.default
        if isinstance(value, str) and isinstance(default, int | float):
            raise UserError(f"{key}.{name}={value} must be a number, such as {default}")


def _no_such_class(module: Any, target: str) -> str | None:
    """Return what to write instead of a class that a module of Optuna does not have; None if the class may exist."""
    where, _, name = target.rpartition(".")
    if where != module.__name__ or hasattr(module, name):
        return None
    meant = nearest(name, module.__all__)
    return f"did you mean {where}.{meant}?" if meant else _classes_of(module)


def _classes_of(module: Any) -> str:
    return f"{module.__name__} has {', '.join(sorted(name for name in module.__all__ if name[0].isupper()))}"
