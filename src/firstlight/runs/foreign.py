"""The saved command line of a run's folder, which another person may have written: it is checked before it is used.

A line may choose among the configuration files, and set numbers, names and the user's data. It may not name code, a
place to write, an address, or an interpolation. What is typed again on this command line is the user's own.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from firstlight import config_files
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.runs.overrides import key_of
from firstlight.runs.targets import TARGET

LEFT_OUT = {"hydra", "paths", "hparams_search", "resume"}  # groups and keys that choose where and how Hydra runs
LEFT_OUT_OF_DATA = {"data.cache_dir"}
BUILT = {"callbacks", "logger", "trainer", "module", "optimizer", "schedule", "model"}  # values become arguments
ADDRESSES = {"data.url", "data.hub"}
PLACE = re.compile(r"(^|_)(dir|dirpath|folder|paths?|files?|root|location|registry|ur[il]|host)($|_)|(dir|path)$")
OF_AN_ACCOUNT = {"entity", "workspace", "api_key", "settings", "id", "experiment", "resume_from", "fork_from"}
IN_THE_RUN = re.compile(r"\$\{paths\.output_dir\}(/\w[\w.-]*)*")
METRIC = re.compile(r"(train|val|test|reference)/\w+")
KEY = re.compile(r"[\w.-]+(/[\w-]+)*")
ROOTS = ("firstlight.", "lightning.", "torch.optim.")  # the packages whose classes may be named


class Place(NamedTuple):
    """A key that may name a class.

    key: a pattern; packages: those from which the class may be; bases: it must be a subclass of one of them; what: the
    words for such a class.
    """

    key: str
    packages: tuple[str, ...]
    bases: tuple[str, ...]
    what: str


PLACES = (
    Place(
        r"callbacks\.[^.]+",
        ("firstlight.", "lightning.pytorch.callbacks."),
        ("lightning.pytorch.Callback",),
        "a callback class of firstlight or Lightning",
    ),
    Place(
        r"logger\.[^.]+",
        ("lightning.pytorch.loggers.",),  # only those that write on this machine
        ("lightning.pytorch.loggers.CSVLogger", "lightning.pytorch.loggers.TensorBoardLogger"),
        "Lightning's CSVLogger or TensorBoardLogger",
    ),
    Place("trainer", ("lightning.pytorch.",), ("lightning.pytorch.Trainer",), "Lightning's Trainer"),
    Place(
        r"trainer\.profiler",
        ("lightning.pytorch.profilers.",),
        ("lightning.pytorch.profilers.Profiler",),
        "a profiler class of Lightning",
    ),
    Place(
        r"trainer\.strategy",
        ("lightning.pytorch.strategies.",),
        ("lightning.pytorch.strategies.Strategy",),
        "a strategy class of Lightning",
    ),
    Place(
        "module",
        ("firstlight.",),
        ("lightning.pytorch.LightningModule",),
        "a LightningModule of firstlight",
    ),
    Place("data", ("firstlight.",), ("lightning.pytorch.LightningDataModule",), "a data module of firstlight"),
    Place("model", ("firstlight.",), ("torch.nn.Module",), "a network of firstlight"),
    Place(
        "optimizer",
        ("torch.optim.", "firstlight.lit."),
        ("torch.optim.Optimizer",),
        "an optimizer class of torch.optim or firstlight",
    ),
    Place(
        "schedule",
        ("torch.optim.lr_scheduler.", "firstlight.lit."),
        ("torch.optim.lr_scheduler.LRScheduler",),
        "a scheduler class of torch.optim",
    ),
)
# These write and delete files that the state in a checkpoint names.
NOT_FROM_A_FOLDER = ("lightning.pytorch.callbacks.ModelCheckpoint", "lightning.pytorch.callbacks.OnExceptionCheckpoint")


class Refusal(NamedTuple):
    """A line that is refused. what: its key and value; why: what is wrong with them."""

    line: str
    what: str
    why: str


def kept_overrides(file: Path, typed: Sequence[str]) -> list[str]:
    """Return the lines of a run's overrides.yaml from which a resumed run is composed.

    Lines that choose where files are written are left out. Raises UserError for a line that names code, a place, an
    address or an interpolation, with what to type to allow it; `overrides.merged` replaces a line that is typed again.
    """
    lines, typed_keys = saved_lines(file), {key_of(argument) for argument in typed}
    wrong = refused(lines, typed_keys)
    if wrong:
        again = " ".join(shlex.quote(each.line) for each in wrong)
        raise UserError(
            f"{file}: {wrong[0].what} {wrong[0].why}; a run's folder may not choose that. "
            f"If it is your own, type it again: {again}"
        )
    return [line for line in lines if not _is_left_out(line)]


def to_type_again(file: Path) -> list[str]:
    """Return the lines of a run's overrides.yaml that `resume=` does not take from its folder; [] without a file."""
    return [each.line for each in refused(saved_lines(file), ())] if file.is_file() else []


def saved_lines(file: Path) -> list[str]:
    """Return the lines of a run's overrides.yaml as text. Raises UserError for a line that is not an override."""
    lines = read_yaml(file)
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise UserError(f"{file} is not a list of overrides; the run must be trained again")
    for line in lines:
        try:
            override = _parsed(line)
        except HydraException as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{file}: {line[:200]!r} is not an override ({reason[:200]}); delete the line") from None
        if not KEY.fullmatch(override.key_or_group) or override.is_sweep_override():
            raise UserError(f"{file}: {line[:200]!r} is not an override of a single run; delete the line")
    return lines


def refused(lines: Sequence[str], typed: Collection[str]) -> list[Refusal]:
    """Return what is wrong with the lines. typed: the keys on the command line, which are allowed."""
    return [
        refusal for line in lines if not _is_left_out(line) and key_of(line) not in typed for refusal in _refusals(line)
    ]


def _refusals(line: str) -> list[Refusal]:
    """Return what is wrong with a line: at most one refusal."""
    override = _parsed(line)
    if override.package is not None:
        return [Refusal(line, line.lstrip("+~"), "moves settings to another place")]
    if override.is_delete():
        return []
    if _is_group(override.key_or_group):
        why = _wrong_choice(override.key_or_group, override.value())
        return [Refusal(line, line.lstrip("+"), why)] if why else []
    for key, value in _leaves(override.key_or_group, override.value()):
        if why := _wrong(key, value):
            return [Refusal(line, f"{key}={value}", why)]
    return []


def _wrong_choice(group: str, value: Any) -> str | None:
    """Return what is wrong with the choice of a group, which must be a file of the configuration; or None."""
    known = config_files.choices(group)
    for choice in value if isinstance(value, list) else [value]:
        if choice is not None and choice not in known:
            return f"is not a choice of {group} in the configuration files"
    return None


def _wrong(key: str, value: Any) -> str | None:
    """Return what is wrong with the value of a key that is not a group; None if it is harmless."""
    *parents, name = parts = key.split(".")
    if name == TARGET:
        return _wrong_target(".".join(parents), value)
    if name == "weights_only" and value is not True:
        return "would run code from files"
    if "_args_" in parents:
        return "hides the names of arguments"
    is_argument = parts[0] in BUILT
    if is_argument and not OF_AN_ACCOUNT.isdisjoint(parts):
        return "chooses an account or a service"
    if not isinstance(value, str):
        return None
    is_in_the_run = is_argument and IN_THE_RUN.fullmatch(value) and ".." not in value
    if "${" in value:
        return None if is_in_the_run else "is an interpolation"
    if key in ADDRESSES:
        return "is an address"
    if key == "data.path" and not Path(value).exists():
        return "is not a file or folder here, and would be looked for on the Hub"
    if key in LEFT_OUT_OF_DATA or (is_argument and any(map(PLACE.search, parts[1:]))):
        return "is a place to write or read"
    if is_argument and not METRIC.fullmatch(value) and re.search(r"[/\\]|\.\.|^~", value):
        return "may be a place to write or read"
    return None


def _wrong_target(parent: str, target: Any) -> str | None:
    """Return what is wrong with a class named below a key. Only modules of the allowed packages are imported."""
    place = next((place for place in PLACES if re.fullmatch(place.key, parent)), None)
    if place is None:
        return "names code where no class is expected"
    why = f"is not {place.what}"
    if not isinstance(target, str) or not target.startswith(place.packages):
        return why
    try:
        found = resolve_name(target)
    except (ImportError, AttributeError, ValueError):
        return why
    bases = tuple(map(resolve_name, place.bases))
    is_ours = isinstance(found, type) and issubclass(found, bases) and f"{found.__module__}.".startswith(ROOTS)
    if not is_ours or issubclass(found, tuple(map(resolve_name, NOT_FROM_A_FOLDER))):
        return why
    return None


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every value of a parsed override with its full key."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if children is None:
        yield key, value
        return
    for name, child in children:
        yield from _leaves(f"{key}.{name}", child)


def _is_left_out(line: str) -> bool:
    key = key_of(line)
    return re.split(r"[./]", key)[0] in LEFT_OUT or key in LEFT_OUT_OF_DATA


def _is_group(key: str) -> bool:
    return "/" in key or key in config_files.groups()


def _parsed(line: str) -> Override:
    return OverridesParser.create().parse_override(line)
