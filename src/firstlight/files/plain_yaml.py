"""YAML files of a run's folder, which may be a stranger's, read as data and nothing else."""

from pathlib import Path
from typing import Any

from firstlight.earlier_names import current_config
from firstlight.errors import UserError
from firstlight.files.regular import regular

MOST_BYTES = 2**24
DEEPEST = 100  # lists and mappings in each other; our files have 6, and the C parser's stack ends below 100,000


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file as dicts, lists, strings, numbers, booleans and None.

    `${…}` stays text. Raises FileNotFoundError where there is no file, and UserError for one that is too large, nested
    too deeply, no valid YAML, or has aliases, by which a small file can stand for terabytes; no file of ours has any.
    """
    import yaml  # takes 30 ms, and a report that needs none of these files goes without

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        with regular(path).open("rb") as file:
            text = file.read(MOST_BYTES + 1).decode("utf-8")
        _check_structure(yaml, text, loader)
        return yaml.load(text, Loader=loader)  # noqa: S506  (a safe loader)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read as YAML ({' '.join(str(error).split())})") from error


def read_config(path: Path) -> dict[str, Any]:
    """Return the resolved configuration that a run has saved, with the names of this version.

    Raises UserError where it is missing or broken.
    """
    reason = "no mapping"
    try:
        config = read_yaml(path)
    except FileNotFoundError:
        config, reason = None, "there is no such file"
    except UserError as error:
        config, reason = None, str(error)
    if not isinstance(config, dict):
        raise UserError(f"{path} is missing or broken ({reason}); train the run again")
    return current_config(config)


def _check_structure(yaml: Any, text: str, loader: Any) -> None:
    """Raise ValueError for size, for aliases and for deep nesting, before anything is built."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"it is larger than the {MOST_BYTES:,} bytes of any configuration")
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"it has an alias, *{event.anchor}, in line {event.start_mark.line + 1}")  # noqa: TRY004
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
