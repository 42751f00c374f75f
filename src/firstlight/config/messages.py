"""Messages of one line for the errors of Hydra and OmegaConf: the key, the value, what is wrong and what to do."""

import difflib
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from hydra import errors
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from firstlight import config_files
from firstlight.choices import listed, nearest
from firstlight.config.keys import TEXTS, flat_keys
from firstlight.config.schema import compose
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.runs.overrides import key_of, value_of
from firstlight.spelling import quoted_option

ALSO_CALLED = {name: keys.split() for keys, names in TEXTS["names_elsewhere"].items() for name in names.split()}
NAMED = ("task", "model", "experiment", "optimizer", "schedule", "trainer", "logger", "tokenizer", "vectors", "debug")
COMPOSING = re.compile(r"In '(?P<group>\w+)/(?P<choice>[^']+)': ")
NO_GROUP = re.compile(r"Could not override '([^']+)'\.\s+No match in the defaults list")
FULL_KEY = re.compile(r"full_key: (\S+)")
AMBIGUOUS = re.compile(r"(?:Ambiguous value for argument|Sweep parameters) '([^=]+)=(.*?)'\s", re.DOTALL)
LOCATION = re.compile(r"\s*(reference_type|object_type)=|\s*full_key: ")
OF_CLASSES = ("optimizer.", "schedule.", "hydra.sweeper.sampler.", "hydra.sweeper.pruner.")
MOST_LISTED = 16  # choices in a message that has a guess


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors of Hydra and OmegaConf into a UserError."""
    try:
        yield
    except (errors.HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error)) from error
    except (yaml.reader.ReaderError, UnicodeDecodeError, RecursionError):
        for path in (path for folder in config_files.own_folders() for path in sorted(folder.rglob("*.yaml"))):
            read_yaml(path)  # raises a UserError that names the file
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.name}:{mark.line + 1}" if mark is not None else "a file of the configuration"
        raise UserError(f"{where}: it is not valid YAML ({error.problem}); correct it") from error


def explain(error: Exception) -> str:
    """Return an error of Hydra or OmegaConf in one line: the key, the value, what is wrong and what to do.

    Its text is parsed only for facts that the exception has no attribute for.
    """
    if not isinstance(error, errors.HydraException | OmegaConfBaseException):
        return str(error)
    behind = error.__cause__ or error.__context__
    key = str(getattr(behind, "full_key", ""))
    match error, behind:
        case errors.OverrideParseException(), _:
            return _not_parsed(error.override)
        case errors.InstantiationException(), UserError():
            return str(behind)
        case errors.InstantiationException(), ValueError():  # a class rejects its arguments
            full_key = FULL_KEY.search(str(error))
            return f"{full_key[1]}: {behind}" if full_key else str(behind)
        case errors.MissingConfigException(), _:
            return _no_such_choice(error)
        case errors.ConfigCompositionException(), ConfigKeyError() if composing := COMPOSING.match(str(error)):
            return _no_such_key_here(composing["group"], composing["choice"], str(behind.key))
        case errors.ConfigCompositionException(), ConfigKeyError() | ConfigAttributeError():
            adding = f"; to pass it to the class, write +{key}" if key.startswith(OF_CLASSES) else ""
            return f"{key} is not a key of the configuration{did_you_mean(key, known_keys())}{adding}"
        case errors.ConfigCompositionException(), OmegaConfBaseException() if behind.full_key:
            return _wrong_value(behind)
        case errors.ConfigCompositionException(), _ if group := NO_GROUP.match(str(error)):
            return _no_such_group(group[1])
        case errors.ConfigCompositionException(), _ if several := AMBIGUOUS.search(str(error)):
            typed = f"{several[1]}={several[2]}"
            return f"{typed}: several values require -m, which runs every combination; add -m, or quote a single value"
        case OmegaConfBaseException(), _:
            return _sentence(error)
    return " ".join(f"{error}\n{error.__cause__ or ''}".split())


def _not_parsed(argument: str) -> str:
    """Return the message for an argument that is not `key=value` in Hydra's grammar."""
    key, is_given, value = argument.partition("=")
    if value.endswith(","):
        return f"{argument}: a value must not end with a comma; write {key}={value.rstrip(',')}"
    if is_given:
        problem = "a value with spaces, commas, brackets or quotes must be quoted for Hydra and for the shell"
        return f"{argument}: {problem}; write {quoted_option(key.strip(), value.strip())}"
    known = known_keys()
    if key in known:
        spaces = ", without spaces around the equals sign" if "=" in sys.argv else ""
        return f"{argument}: a value is missing; write {key}=…{spaces}"
    candidates = choices_named(key) or [f"{name}=…" for name in nearest_keys(key, known)]
    if Path(argument).is_file():
        candidates = [quoted_option("data.path", argument)]
    remedy = question(candidates) or "`--help` lists the keys"
    return f"{argument}: write arguments as key=value, and quote a value with spaces; {remedy}"


def _wrong_value(error: OmegaConfBaseException) -> str:
    """Return the message for a value of the wrong type."""
    key, value = str(error.full_key), "null" if error.value is None else error.value
    if "is not a ListConfig" in str(error):
        return f"{key}={value}: the value must be a list; write {key}=[{value}]"
    if key == "data.label_column" and isinstance(error.value, list) and len(error.value) > 1:
        columns = ",".join(map(str, error.value))
        return f"{key}=[{columns}]: name one column; docs/own-tasks.md is about texts with several labels"
    if isinstance(error.value, list | dict):
        typed = next((each.partition("=")[2] for each in sys.argv[1:] if key_of(each) == key), str(value))
        return f"{key}={typed}: the value must not be a list; to give a text, write {quoted_option(key, typed)}"
    remedy = f"; write an integer, as in {key}=3" if "could not be converted to Integer" in str(error) else ""
    return f"{key}={value}: {_sentence(error)}{remedy}"


def _sentence(error: OmegaConfBaseException) -> str:
    """Return OmegaConf's text without the lines on where it happened."""
    lines = str(error.msg or error).splitlines()
    return " ".join(" ".join(line for line in lines if not LOCATION.match(line)).split())


def _no_such_choice(error: errors.MissingConfigException) -> str:
    """Return the message for a choice that does not exist, with the choices of its group."""
    group, _, choice = str(error.missing_cfg_file).partition("/")
    if group == "hydra":  # whose groups have names such as hydra/launcher
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
    options = error.options or config_files.choices(group)  # Hydra lists nothing inside a folder of a group
    nearest = nearest_choices(group, choice, options) if options else []
    if group == "data" and Path(choice).suffix:
        nearest = [quoted_option("data.path", choice)]
    if not nearest:
        return f"{group}={choice}: no such choice; the choices are {', '.join(options)}"
    listed = f"The choices are {', '.join(options)}" if len(options) <= MOST_LISTED else f"`--help {group}` lists all"
    return f"{group}={choice}: no such choice; {question(nearest)} {listed}"


def _no_such_group(group: str) -> str:
    """Return the message for a group that is not in the defaults list: a wrong name, or a folder of the user."""
    if group in config_files.groups() and group not in TEXTS["internal"]:
        return f"{group}: train.yaml lists no choice of this group; write +{group}=…"
    return f"{group} is not a group of the configuration{did_you_mean(group, known_keys())}"


def _no_such_key_here(group: str, choice: str, key: str) -> str:
    """Return the message for a file that sets a key which the rest of the configuration does not have."""
    if group == "task" and key == "task":
        return f"conf/task/{choice}.yaml: the first line of a task must be `# @package _global_`; add it"
    if group != "model":
        return f"{group}={choice}: its file sets {key}, which is not a key of this configuration; correct the file"
    return f"{group}={choice} does not apply to this task, whose network has no {group}.{key}; choose another"


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return `; did you mean …?` with the known keys that a user can mean by a wrong one, or where to look."""
    nearest = nearest_keys(word, known)
    return f"; {question(nearest)}" if nearest else "; `--help` lists the keys"


def known_keys() -> list[str]:
    """Return all groups and keys of the configuration of the task that is typed."""
    task = value_of("task", sys.argv[1:])
    config = compose([f"task={task}"] if task in config_files.choices("task") else [])
    return [*config_files.groups(), *flat_keys(config), *TEXTS["keys_of_hydra"]]


def nearest_keys(word: str, known: Collection[str]) -> list[str]:
    """Return the known keys that a user can mean by a wrong one, at most three.

    In this order: a key that other programs call so, keys with the same last part, similar keys of the same section,
    and keys with a similar last part.
    """
    section, _, leaf = word.rpartition(".")
    if leaf in ALSO_CALLED:
        return [key for key in ALSO_CALLED[leaf] if key in known and key != word]
    leaves = _by_leaf(known)
    siblings = {key for key in known if key.rpartition(".")[0] == section}
    similar = difflib.get_close_matches(word, siblings - {word}, n=2)
    similar.sort(key=lambda key: sorted(key) != sorted(word))  # first two letters that changed places
    same = [key for key in leaves.get(leaf, []) if key != word]
    return (same or similar or leaves.get(nearest(leaf, leaves, cutoff=0.75) or "", []))[:3]


def nearest_choices(group: str, choice: str, options: Collection[str]) -> list[str]:
    """Return what a user can mean by a choice that a group does not have, as `group=choice`, at most three."""
    leaves = _by_leaf(options, "/")
    same = leaves.get(choice) or difflib.get_close_matches(choice, options, n=1)
    same = same or leaves.get(nearest(choice.rpartition("/")[2], leaves) or "", [])
    return [f"{group}={option}" for option in same[:3]] or choices_named(choice)[:3]


def choices_named(name: str) -> list[str]:
    """Return every `group=choice` whose choice has a name, such as `task=stars` and `experiment=post/stars`."""
    found = ((group, choice) for group in NAMED for choice in config_files.choices(group))
    return [f"{group}={choice}" for group, choice in found if choice.rpartition("/")[2] == name]


def question(candidates: Iterable[str]) -> str:
    """Return `did you mean a, b or c?`; nothing without candidates."""
    names = listed(candidates, "or")
    return names and f"did you mean {names}?"


def _by_leaf(names: Iterable[str], separator: str = ".") -> dict[str, list[str]]:
    leaves: dict[str, list[str]] = {}
    for name in names:
        leaves.setdefault(name.rpartition(separator)[2], []).append(name)
    return leaves
