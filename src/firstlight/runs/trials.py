"""What a search and its trials share: objectives, and Optuna's parts. Imports nothing heavy."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from omegaconf import ListConfig

from firstlight.errors import UserError, reason
from firstlight.runs.folder import lower_is_better

# Numbers in every record, besides the metrics, and whether lower values are better.
MEASURES = {"parameters": True, "flops": True, "fit_seconds": True, "tokens_per_second": False}
OBJECTIVES, DIRECTION = "hydra.sweeper.objectives", "hydra.sweeper.direction"
PRUNER = "hydra.sweeper.pruner._target_"
MINIMIZE, MAXIMIZE = "minimize", "maximize"
STUDY_FILE = "study.journal"  # in the folder of the sweep
STUDY_NAME = "search"
BEGIN_OF_LINE = b'{"op_code":'
UNPICKLES = "CmaEsSampler"
# What Optuna raises for a damaged file, besides its own errors.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RecursionError)


def objectives_of(sweeper: Any) -> dict[str, str]:
    """Return the objectives that a search names, with `minimize` or `maximize`; {} for a search for optimized_metric.

    sweeper: the node `hydra.sweeper`, of any sweeper. Raises UserError for objectives without a direction or repeated.
    """
    given, directions = (_listed(sweeper.get(key)) for key in ("objectives", "direction"))
    if not given:
        if directions:
            raise UserError(f"{DIRECTION} requires {OBJECTIVES}; for one metric, set optimized_mode=min or max")
        return {}
    if len(set(given)) < max(2, len(given)):
        shown = f"{OBJECTIVES}=[{','.join(given)}]"
        raise UserError(f"{shown}: name several different objectives; for one metric, set optimized_metric={given[0]}")
    directions = directions or [MINIMIZE if MEASURES.get(name, lower_is_better(name)) else MAXIMIZE for name in given]
    if len(directions) != len(given) or not {*directions} <= {MINIMIZE, MAXIMIZE}:
        typed, right = ",".join(directions), ",".join([MINIMIZE] * len(given))
        rule = f"must be {MINIMIZE} or {MAXIMIZE} for each of {len(given)} objectives, such as [{right}]"
        raise UserError(f"{DIRECTION}=[{typed}] {rule}")
    return dict(zip(given, directions, strict=True))


def _listed(node: Any) -> list[str]:
    """Return a list of the configuration; a single value as a list of one."""
    if node is None:
        return []
    return [str(each) for each in node] if isinstance(node, ListConfig | list) else [str(node)]


def value_in(record: Mapping[str, Any], name: str) -> float | None:
    """Return the value of an objective in a run's record; None if it is unknown."""
    where: Any = (record.get("seconds") or {}) if name == "fit_seconds" else record
    found = where.get("fit" if name == "fit_seconds" else name) if name in MEASURES else record["metrics"].get(name)
    return None if found is None else float(found)


def trial_folder(number: int) -> str:
    """Return the name of a trial's folder."""
    return f"trial-{number:04d}"


def number_of_trial(folder: str) -> int:
    """Return the number of the trial that has a folder of this name, such as `trial-0007` or `trial-0007_seed-2`."""
    return int(folder.partition("_")[0].rpartition("-")[2])


def storage_of(path: Path) -> Any:
    """Return Optuna's storage in a file of JSON lines, which several processes and computers can use at the same time.

    A second file is its lock, because a network disk may lock files for one computer only. A computer
    that crashes while it writes leaves an incomplete last line; this function removes it. Raises ValueError if the file
    is not a journal of Optuna.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    lock = JournalFileOpenLock(str(path))
    if path.exists():
        lock.acquire()
        try:
            with path.open("rb+") as file:
                content = file.read()
                end = content.rfind(b"\n") + 1
                if content[end:] and not content.startswith(BEGIN_OF_LINE, end):
                    raise ValueError("its last line is not one of a journal of Optuna")
                file.truncate(end)
        finally:
            lock.release()
    return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))


def is_chosen(node: Any) -> bool:
    """Return whether a node of the configuration names a sampler or a pruner."""
    return isinstance(node, str) or bool(node and node.get("_target_") is not None)


def made(part: str, node: Any, **changes: Any) -> Any:
    """Return the sampler or the pruner that a node of the configuration describes; None for a node that names none.

    part: `sampler` or `pruner`; changes: arguments that replace those of the node.

    Raises UserError for a class that is not a sampler or pruner of Optuna, and for wrong arguments.
    """
    from hydra.errors import InstantiationException  # reports read this module, and do not require Hydra
    from hydra.utils import instantiate
    from optuna.exceptions import ExperimentalWarning

    key = f"hydra.sweeper.{part}"
    if isinstance(node, str):
        raise UserError(f"{key}={node}: the {part} is a group; write {key.replace('.', '/')}={node}")
    if not is_chosen(node):
        return None
    target = str(node["_target_"])
    module = import_module(f"optuna.{part}s")
    classes = ", ".join(sorted(name for name in module.__all__ if name[0].isupper()))
    remedy = f"{module.__name__} has {classes}"
    try:
        cls = resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"{key}._target_={target} cannot be imported: {reason(error)}; {remedy}") from error
    if not (isinstance(cls, type) and issubclass(cls, getattr(module, f"Base{part.capitalize()}"))):
        raise UserError(f"{key}._target_={target} is not a {part} of Optuna; {remedy}")
    if cls is getattr(module, UNPICKLES, None):
        problem = f"{key}._target_={target} unpickles values of {STUDY_FILE}, which could run code from that file"
        raise UserError(f"{problem}; choose another sampler, such as hydra/sweeper/sampler=tpe")
    for name, parameter in signature(cls).parameters.items():  # some classes notice it in the middle of a search
        if isinstance(node.get(name), str) and isinstance(parameter.default, int | float):
            raise UserError(f"{key}.{name}={node[name]} must be a number, such as {parameter.default}")
    try:
        with warnings.catch_warnings():  # some classes are new, and Optuna may change their arguments
            warnings.simplefilter("ignore", ExperimentalWarning)
            return instantiate(node, **changes, _convert_="all")
    except (InstantiationException, TypeError, ValueError) as error:
        raise UserError(f"{key}: {target}: {reason(error)}; correct its arguments") from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise UserError where Optuna cannot read the file of a study."""
    from optuna.exceptions import OptunaError

    try:
        yield
    except (OptunaError, *UNREADABLE) as error:
        problem = f"{path} cannot be read ({type(error).__name__}: {error})"
        raise UserError(f"{problem}; move the folder of the search, or choose another sweep.name") from error
