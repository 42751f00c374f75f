"""What Hydra and OmegaConf complain about, in one line: the key, the value and what there is instead."""

import difflib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import hydra
import yaml
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
)
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from firstlight import config_files, earlier_names
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.errors import UserError, reason
from firstlight.runs.overrides import value_of

COMPOSING = re.compile(r"In '(?P<group>\w+)/(?P<choice>[^']+)': ")
NO_GROUP = re.compile(r"Could not override '([^']+)'\.\s+No match in the defaults list")
FULL_KEY = re.compile(r"full_key: (\S+)")
NOT_LOCATED = re.compile(r"Error (?:locating|loading) (?:target )?'([^']+)'")
LOCATION = re.compile(r"\s*(reference_type|object_type)=|\s*full_key: ")


@contextmanager
def explained() -> Iterator[None]:
    """Turn what Hydra and OmegaConf complain about into a UserError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.name}:{mark.line + 1}" if mark is not None else "a file of settings"
        raise UserError(f"{where}: it is not valid YAML ({error.problem}); correct it") from error


def explain(error: Exception) -> str:
    """Return Hydra's or OmegaConf's error in one line: the key, the value and what there is instead.

    Their text is read only for what they have no field for.
    """
    if not isinstance(error, HydraException | OmegaConfBaseException):
        return str(error)
    behind = error.__cause__ or error.__context__
    if moved := earlier_names.remedy(str(getattr(behind, "full_key", ""))):
        return moved
    match error, behind:
        case InstantiationException(), _:
            return _not_instantiated(error)
        case MissingConfigException(), _:
            return _no_such_choice(error)
        case ConfigCompositionException(), ConfigKeyError() if composing := COMPOSING.match(str(error)):
            return _no_such_key_here(composing["group"], composing["choice"], str(behind.key))
        case ConfigCompositionException(), ConfigKeyError() | ConfigAttributeError():
            key = str(behind.full_key)
            return f"{key} is not a key of the configuration{did_you_mean(key, _known_keys())}"
        case ConfigCompositionException(), OmegaConfBaseException() if behind.full_key:
            value = "null" if behind.value is None else behind.value
            return f"{behind.full_key}={value}: {_sentence(behind)}"
        case ConfigCompositionException(), _ if group := NO_GROUP.match(str(error)):
            return f"{group[1]} is not a group of the configuration{did_you_mean(group[1], _known_keys())}"
        case OmegaConfBaseException(), _:
            return _sentence(error)
    return " ".join(f"{error}\n{error.__cause__ or ''}".split())


def _sentence(error: OmegaConfBaseException) -> str:
    """What OmegaConf says, without the lines on where it happened."""
    lines = str(error.msg or error).splitlines()
    return " ".join(" ".join(line for line in lines if not LOCATION.match(line)).split())


def _not_instantiated(error: InstantiationException) -> str:
    """A class that cannot be imported, or that refuses its arguments."""
    key = FULL_KEY.search(str(error))
    cause = error.__cause__
    if isinstance(cause, UserError):
        return str(cause)
    if isinstance(cause, ValueError):
        return f"{key[1]}: {cause}" if key else str(cause)
    if located := NOT_LOCATED.search(f"{error}\n{cause or ''}"):
        target = f"{key[1]}._target_" if key else "_target_"
        return f"{target}={located[1]} cannot be imported: {reason(error)}"
    return " ".join(f"{error}\n{cause or ''}".split())


def _no_such_choice(error: MissingConfigException) -> str:
    """A file of a group that does not exist, with those that do."""
    group, _, choice = str(error.missing_cfg_file).partition("/")
    options = error.options or config_files.choices(group)  # Hydra lists nothing inside a folder of a group
    return f"{group}={choice}: no such choice; there are {', '.join(options)}"


def _no_such_key_here(group: str, choice: str, key: str) -> str:
    """A file that sets a key which the rest of the configuration does not have."""
    if group == "task" and key == "task":
        return f"conf/task/{choice}.yaml: the first line of a task must be `# @package _global_`; add it"
    if group != "model":
        return f"{group}={choice}: its file sets {key}, which is not a key here; correct the file"
    return f"{group}={choice} is not for this task, whose network has no {group}.{key}; choose another"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean …?' with the nearest known keys of the same parent, or where to look."""
    parent = word.rpartition(".")[0]
    siblings = {key for key in known if key.rpartition(".")[0] == parent}
    nearest = difflib.get_close_matches(word, siblings - {word}, n=2)
    return f"; did you mean {' or '.join(nearest)}?" if nearest else "; `--help` lists the keys"


def _known_keys() -> list[str]:
    """All keys and groups of the composition of the task that is typed."""
    task = value_of("task", sys.argv[1:])
    is_known = task in config_files.choices("task")
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=[f"task={task}"] if is_known else [])
    return config_files.groups() + list(_flat_keys(config))


def _flat_keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    for key in map(str, config):
        yield prefix + key
        if not OmegaConf.is_missing(config, key) and not OmegaConf.is_interpolation(config, key):
            child = config[key]
            if isinstance(child, DictConfig):
                yield from _flat_keys(child, f"{prefix}{key}.")
