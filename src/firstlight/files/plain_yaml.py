"""YAML files of a run folder, read as plain data, because the folder may come from an untrusted source."""

from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.files.regular import regular

MOST_BYTES = 2**19
DEEPEST = 100  # levels of nesting; the package's files have 6, and the C parser's stack overflows below 100,000


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file as dicts, lists, strings, numbers, booleans and None.

    `${…}` stays text. Raises FileNotFoundError if the file does not exist. Raises UserError if it is not valid YAML,
    too large, nested too deeply, or has aliases. With aliases, a small file can expand to terabytes. The package
    writes none.
    """
    import yaml  # takes 30 ms, which a report without such files need not spend

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
    """Return the resolved configuration that a run has saved. Raises UserError if the file is missing or broken."""
    try:
        config, reason = read_yaml(path), "it is not a mapping"
    except FileNotFoundError:
        config, reason = None, "the file does not exist"
    except UserError as error:
        config, reason = None, str(error)
    if not isinstance(config, dict):
        raise UserError(f"{path} is missing or broken ({reason}); train the run again")
    return config


def _check_structure(yaml: Any, text: str, loader: Any) -> None:
    """Raise ValueError if a text is too large, has aliases or is nested too deeply, before anything is built."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES:,} bytes, the limit of a configuration")
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"it has an alias, *{event.anchor}, in line {event.start_mark.line + 1}")  # noqa: TRY004
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
