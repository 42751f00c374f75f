"""Options that had another name in earlier versions. Every such name is here. Imports nothing heavy."""

from collections.abc import Mapping
from typing import Any

RENAMED = {
    "model.evidence": "data.evidence",
    "model.evidence_pairs": "data.evidence_pairs",
    "model.evidence_shrinkage": "data.evidence_shrinkage",
}
EARLIER = {new: old for old, new in RENAMED.items()}


def current_config(config: Any) -> Any:
    """Return a resolved configuration of any version, in plain types, with the names of this version.

    A value that is not a configuration is returned unchanged; the reader reports it.
    """
    return _renamed(config, RENAMED)


def earlier_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return a resolved configuration with the names of earlier versions, which identify a run."""
    return _renamed(config, EARLIER)


def current_override(line: str) -> str:
    """Return an override, such as `+model.evidence=true`, with the name of this version."""
    key, equals, value = line.partition("=")
    name = key.lstrip("+~")
    return key[: len(key) - len(name)] + RENAMED.get(name, name) + equals + value


def remedy(key: str) -> str | None:
    """Return the message for an earlier name that is typed; None for any other key."""
    return f"{key} was renamed; write {RENAMED[key]}" if key in RENAMED else None


def _renamed(config: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(config, dict):
        return config
    result = dict(config)
    for (group, key), (new_group, new_key) in ((old.split("."), new.split(".")) for old, new in names.items()):
        source, target = result.get(group), result.get(new_group)
        if isinstance(source, dict) and isinstance(target, dict) and key in source:
            result[group] = {name: value for name, value in source.items() if name != key}
            result[new_group] = {new_key: source[key], **target}
    return result
