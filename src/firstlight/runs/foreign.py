"""The saved command line of a run's folder, which another person may have written: it is checked before it is used.

A setting that names a class, a place or an address is not used unless it is typed again, or is on a short list: texts
of arguments that no class reads as a path, and paths in the run's own folder. Choices among the configuration files,
numbers and the user's data are used.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from firstlight import config_files
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.runs.overrides import key_of
from firstlight.runs.targets import TARGET

LEFT_OUT = {"hydra", "paths", "hparams_search", "resume"}  # groups and keys that choose where and how Hydra runs
PLACES = {"data.url", "data.hub", "data.cache_dir"}  # of the keys that firstlight itself reads
# The arguments of classes, which may have any name.
OPEN = ("callbacks.", "logger.", "trainer.", "module.", "optimizer.", "schedule.", "model.options.")
TEXTS = {  # the arguments of classes whose texts are neither a place nor an address, an account or code
    *("monitor", "mode", "logging_interval", "anneal_strategy"),
    *("accelerator", "strategy", "device", "devices", "precision", "profiler", "max_time", "gradient_clip_algorithm"),
    *("project", "name", "group", "job_type", "tags", "version"),
}
PLAIN = re.compile(r"\w[\w .:-]*(/\w[\w.-]*)*")
IN_THE_RUN = re.compile(r"\$\{paths\.output_dir\}(/\w[\w.-]*)*")
KEY = re.compile(r"[\w.-]+(/[\w-]+)*")


def kept_overrides(file: Path, typed: Sequence[str]) -> list[str]:
    """Return the lines of a run's overrides.yaml from which a resumed run is composed.

    Lines that choose where files are written are left out. Raises UserError for a line that names code, a place, an
    address or an interpolation, with what to type to allow it; `overrides.merged` replaces a line that is typed again.
    """
    if not file.is_file():
        raise UserError(f"{file} is missing, so the run cannot be resumed; train it again")
    lines = saved_lines(file)
    if wrong := refused(lines, {key_of(argument) for argument in typed}):
        problem = f"{file}: {next(iter(wrong.values()))}; a run's folder may not choose that"
        raise UserError(f"{problem}. If it is your own, type it again: {shlex.join(wrong)}")
    return [line for line in lines if not _is_left_out(line)]


def to_type_again(file: Path) -> list[str]:
    """Return the lines of a run's overrides.yaml that `resume=` does not take from its folder; [] without a file."""
    return [*refused(saved_lines(file), ())] if file.is_file() else []


def is_harmless(key: str, value: Any) -> bool:
    """Return whether a run's folder may choose the value of a key, in its config.yaml."""
    return not _is_left_out(key) and all(_wrong(leaf, part) is None for leaf, part in _leaves(key, value))


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


def refused(lines: Sequence[str], typed: Collection[str]) -> dict[str, str]:
    """Return what is wrong with the lines, by the line. typed: the keys on the command line, which are allowed."""
    given = (line for line in lines if not _is_left_out(line) and key_of(line) not in typed)
    return {line: why for line in given if (why := _wrong_in(line)) is not None}


def _wrong_in(line: str) -> str | None:
    """Return a key and a value of a line, and what is wrong with them; None if the line is harmless."""
    override = _parsed(line)
    if override.package is not None:
        return f"{line.lstrip('+~')} moves settings to another place"
    key, value = override.key_or_group, None if override.is_delete() else override.value()
    if "/" in key or key in config_files.groups():
        known = config_files.choices(key)
        wanted = value if isinstance(value, list) else [value]
        is_known = all(choice is None or choice in known for choice in wanted)
        return None if is_known else f"{line.lstrip('+')} is not a choice of {key} in the configuration files"
    wrong = ((f"{leaf}={part}", _wrong(leaf, part)) for leaf, part in _leaves(key, value))
    return next((f"{what} {why}" for what, why in wrong if why), None)


def _wrong(key: str, value: Any) -> str | None:
    """Return what is wrong with the value of a key that is not a group; None if it is harmless."""
    name = key.rpartition(".")[2]
    if name == TARGET:
        return "names code"
    if name == "weights_only" and value is not True:
        return "would run code from files"
    if key.startswith(OPEN):
        return None if _is_known(key, value) else "may be a place to write or read, an address or an account"
    if not isinstance(value, str):
        return None
    if "${" in value:
        return "is an interpolation"
    if key in PLACES:
        return "is a place or an address"
    if key == "data.path" and not Path(value).exists():
        return "is not a file or folder here, and would be looked for on the Hub"
    return None


def _is_known(key: str, value: Any) -> bool:
    """Return whether the value of an argument of a class is harmless, whatever the class does with it."""
    if value is None or isinstance(value, bool):
        return True
    argument = next(part for part in reversed(key.split(".")) if not part.isdigit())
    if isinstance(value, int | float):
        return argument in TEXTS or not key.startswith("logger.")  # the id of a run of an account can be a number
    return bool(IN_THE_RUN.fullmatch(value) or (argument in TEXTS and PLAIN.fullmatch(value)))


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
    return re.split(r"[./]", key)[0] in LEFT_OUT or key == "data.cache_dir"


def _parsed(line: str) -> Override:
    return OverridesParser.create().parse_override(line)
