"""What Hydra and OmegaConf complain about, in one line: the key, the value and what there is instead."""

import difflib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import hydra
import yaml
from hydra.errors import HydraException, InstantiationException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from firstlight import config_files
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.errors import UserError, reason
from firstlight.runs.overrides import value_of


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
    """Hydra's or OmegaConf's error in one line: the key, the value and what there is instead."""
    if not isinstance(error, HydraException | OmegaConfBaseException):
        return str(error)
    if isinstance(error, InstantiationException) and isinstance(error.__cause__, UserError):
        return str(error.__cause__)
    if isinstance(error, InstantiationException) and isinstance(error.__cause__, ValueError):
        key = re.search(r"full_key: (\S+)", str(error))
        return f"{key[1]}: {error.__cause__}" if key else str(error.__cause__)
    message = f"{error}\n{error.__cause__ or ''}"
    if located := re.search(r"Error (?:locating|loading) (?:target )?'([^']+)'", message):
        return f"{_target_key(error)}={located[1]} cannot be imported: {reason(error)}"
    if unknown := re.search(r"Could not override '([^']+)'\.\s+To append", message):
        full_key = unknown[1]
        return f"{full_key} is not a key of the configuration{did_you_mean(full_key, _known_keys())}"
    if choice := re.search(r"Could not find '([^']+)'\s+Available options in '([^']+)':(.*)", message, re.DOTALL):
        group, name = choice[2], choice[1].removeprefix(choice[2] + "/")
        options = re.findall(r"^\t(\S+)$", choice[3], re.MULTILINE)
        return f"{group}={name}: no such choice; there are {', '.join(options)}"
    if missing := re.search(r"Could not find '([^']+)'", message):  # Hydra lists nothing inside a folder of a group
        group, _, choice_path = missing[1].partition("/")
        return f"{group}={choice_path}: no such choice; there are {', '.join(config_files.choices(group))}"
    if misfit := re.search(r"In '(\w+)/([^']+)': ConfigKeyError.*Key '(\w+)' not in '", message, re.DOTALL):
        missing_key = f"{misfit[1]}.{misfit[3]}"
        if misfit[1] == "task" and misfit[3] == "task":
            return f"conf/task/{misfit[2]}.yaml: the first line of a task must be `# @package _global_`; add it"
        if misfit[1] != "model":
            return f"{misfit[1]}={misfit[2]}: its file sets {misfit[3]}, which is not a key here; correct the file"
        return f"{misfit[1]}={misfit[2]} is not for this task, whose network has no {missing_key}; choose another"
    if group := re.search(r"Could not override '([^']+)'\.\s+No match in the defaults list", message):
        return f"{group[1]} is not a group of the configuration{did_you_mean(group[1], _known_keys())}"
    message = re.sub(r"Error merging override (\S+)", r"\1:", message)
    message = re.sub(r"\s+(reference_type|object_type)=\S+", "", message)
    message = re.sub(r"\s+full_key: \S*", "", message)
    return " ".join(message.split())


def _target_key(error: Exception) -> str:
    """The full key of the `_target_` that Hydra's error is about."""
    key = re.search(r"full_key: (\S+)", str(error))
    return f"{key[1]}._target_" if key else "_target_"


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
