"""Every key of all tasks: the reference of the documentation, and a JSON Schema of the configuration for editors.

`python -m firstlight.config.reference` prints the JSON Schema.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from firstlight.config.keys import HYDRAS, OPEN, SECTIONS, Key, as_typed, keys_of, keys_of_choices, merged, parts_of
from firstlight.config.schema import compose
from firstlight.config_files import CONFIG_DIR

INTERPOLATION = {"$ref": "#/definitions/interpolation"}
DEFAULTS = {"description": "Hydra's defaults list: the files that this one extends", "type": "array"}


@cache
def all_keys() -> dict[str, dict[str, Key]]:
    """Return every key by its name, for each task that has it; for other keys, for the choices that have it."""
    found: dict[str, dict[str, Key]] = {}
    tasks = sorted(path.stem for path in (CONFIG_DIR / "task").glob("*.yaml"))
    for task in tasks:
        config = compose([f"task={task}"], with_hydra=True)
        HydraConfig.instance().set_config(config)
        OmegaConf.set_struct(config, False)
        for key in keys_of(config):
            found.setdefault(key.name, {})[task] = key
    for choice, key in keys_of_choices():
        if found.setdefault(key.name, {}).keys().isdisjoint(tasks):
            found[key.name][choice] = key
    order = list(SECTIONS)
    return dict(sorted(found.items(), key=lambda item: order.index(next(iter(item[1].values())).section)))


def key_reference() -> str:
    """Return a chapter of Markdown for each section of the configuration, with a table of its keys.

    The chapters begin with headings of the second level, `## data`, for a page with a title.
    """
    return "\n".join(line for section in SECTIONS for line in _chapter(section))


def _chapter(section: str) -> Iterator[str]:
    yield f"## {f'`{section}`' if section else SECTIONS[section]}\n"
    if section:
        yield f"{SECTIONS[section]}.\n"
    yield "| key | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for name, places in all_keys().items():
        if (key := next(iter(places.values()))).section == section:
            values = {place: f"`{as_typed(each.value)}`" for place, each in places.items()}
            sentences = {place: _escaped(each.sentence) for place, each in places.items()}
            default = "" if key.is_node else _by_place(values, "; ")
            yield f"| `{name}` | {key.type} | {default} | {_by_place(sentences, '<br>')} |"
    yield ""


def _by_place(texts: dict[str, str], separator: str) -> str:
    """Return the text, or if the tasks have several, each one with its tasks."""
    where: dict[str, list[str]] = {}
    for place, text in texts.items():
        where.setdefault(text, []).append(place)
    if len(where) == 1:
        return next(iter(where))
    return separator.join(f"{', '.join(places)}: {text}" for text, places in where.items())


def _escaped(sentence: str) -> str:
    return sentence.replace("<", "&lt;").replace("_", r"\_").replace("*", r"\*").replace("[", r"\[").replace("|", r"\|")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the files of conf/: of a task or experiment as a whole, of a group by `definitions`."""
    definitions: dict[str, Any] = {"interpolation": {"type": "string", "pattern": r"\$\{.+\}"}}
    for section, title in SECTIONS.items():
        if section:
            is_open = section in OPEN
            properties: dict[str, Any] = {"defaults": DEFAULTS} | ({key: {} for key in HYDRAS} if is_open else {})
            definitions[section] = {"title": title, "type": ["object", "null"], "properties": properties}
            definitions[section] |= {} if is_open else {"additionalProperties": False}
    root: dict[str, Any] = {"defaults": DEFAULTS, "hydra": {"description": "Settings of Hydra", "type": "object"}}
    for name, places in all_keys().items():
        section, *path, field = ("." + name if "." not in name else name).split(".")
        properties = definitions[section]["properties"] if section else root
        for part in path:
            properties = properties.setdefault(part, {}).setdefault("properties", {key: {} for key in HYDRAS})
        properties[field] = properties.get(field, {}) | _property(list(places.values()))
    root |= {section: {"$ref": f"#/definitions/{section}"} for section in SECTIONS if section}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of firstlight",
        "type": ["object", "null"],
        "properties": root,
        "additionalProperties": False,
        "definitions": definitions,
    }


def _property(keys: list[Key]) -> dict[str, Any]:
    value = merged([key.schema for key in keys] + [{"type": "null"} for key in keys if key.value is None])
    accepts_text = any(part.get("type", "string") == "string" and "enum" not in part for part in parts_of(value))
    is_one = len({as_typed(key.value) for key in keys}) == 1
    return {
        "description": "\n".join(dict.fromkeys(key.sentence for key in keys)),
        **(value if accepts_text or keys[0].is_node else {"anyOf": [*value.get("anyOf", [value]), INTERPOLATION]}),
        **({"default": keys[0].value} if is_one and not keys[0].is_node else {}),
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), ensure_ascii=False, indent=1))  # noqa: T201  (JSON for a file)
