"""Describe every key of the configuration from the docstrings of its schema, and write conf/schema.json.

`python -m firstlight.config.described` writes the file. It is a JSON Schema for editors, and the source of `--help` and
of the key reference in the documentation. Imports no torch.
"""

import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from dataclasses import field as dataclass_field
from enum import Enum
from functools import cache
from itertools import chain
from typing import Any

import hydra
from docstring_parser import parse_from_object
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, ListConfig, OmegaConf

from firstlight.config.keys import SCHEMA_FILE, SECTIONS, VARIANTS, Key, Variant, as_typed, keys
from firstlight.config.open_keys import OPEN_SECTIONS
from firstlight.config.schema import RootConfig, register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.kind.top_level import DataNode, ModelNode

HYDRAS = ("_target_", "_partial_", "_recursive_")  # keys that hydra.utils.instantiate reads
CLOSED = (
    "model",
    "tokenizer",
    "vectors",
    "distillation",
    "paths",
    "sweep",
)  # sections that accept only the keys of the schema
CHOOSING = ("optimizer", "schedule", "logger", "callbacks")  # open groups whose choices have keys of their own
REPLACED = ("optimizer", "schedule")  # groups of which a choice replaces that of the task
INTERPOLATION = {"$ref": "#/definitions/interpolation"}
TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", types.NoneType: "null", dict: "object"}


@dataclass(frozen=True)
class Leaf:
    """A key in one configuration. owner, field: the class and the field of it that describe the key."""

    name: str
    owner: type
    field: str
    default: Any
    sizes: Mapping[str, Any] = dataclass_field(default_factory=dict)


def described_keys() -> list[Key]:
    """Return every key of the configuration with its sentence, its type and its default for each task.

    Raises LookupError for a key without a sentence.
    """
    found: dict[str, dict[str, Leaf]] = {}  # name -> task or choice -> the key there
    for task, config in _composed():
        sizes = _sizes(HydraConfig.get().runtime.choices["size"])
        for leaf in _leaves(config, "", RootConfig):
            found.setdefault(leaf.name, {})[task] = replace(leaf, sizes=sizes.get(leaf.name, {}))
    tasks = {task for places in found.values() for task in places}
    for choice, section, node in _choices():
        for leaf in _leaves(node, f"{section}.", OPEN_SECTIONS[section]):
            without = tasks - found.get(leaf.name, {}).keys()
            if without == tasks or (without and section in REPLACED):
                found.setdefault(leaf.name, {})[choice] = leaf
    return [_key(name, places) for name, places in found.items()]


def json_schema(keys: list[Key]) -> dict[str, Any]:
    """Return the JSON Schema of the files of conf/: of a task or experiment as a whole, of a group by `definitions`."""
    definitions: dict[str, Any] = {"interpolation": {"type": "string", "pattern": r"\$\{.+\}"}}
    for section, title in SECTIONS.items():
        if section:
            definitions[section] = {"title": title, "type": ["object", "null"], "properties": {}}
            definitions[section]["properties"]["defaults"] = {"$ref": "#/definitions/defaults"}
            if section in CLOSED:
                definitions[section]["additionalProperties"] = False
            else:
                definitions[section]["properties"] |= {name: _HYDRAS[name] for name in HYDRAS}
    definitions["defaults"] = {"description": "Hydra's defaults list: the files that this one extends", "type": "array"}
    root: dict[str, Any] = {
        "defaults": {"$ref": "#/definitions/defaults"},
        "hydra": {"description": "Settings of Hydra", "type": "object"},
    }
    for key in keys:
        *path, name = key.name.split(".")
        properties = root if not path else definitions[path[0]]["properties"]
        for part in path[1:]:
            node = properties.setdefault(part, {})
            properties = node.setdefault("properties", dict(_HYDRAS))
        properties[name] = {**properties.get(name, {}), **_property(key)}
    root |= {section: {"$ref": f"#/definitions/{section}"} for section in SECTIONS if section}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of firstlight",
        "description": "Written by `python -m firstlight.config.described` from the docstrings of the schema.",
        "type": ["object", "null"],
        "properties": root,
        "additionalProperties": False,
        "definitions": definitions,
    }


def schema_text() -> str:
    """Return the content of conf/schema.json, with a line for each key."""
    return _lines(json_schema(described_keys())) + "\n"


def _lines(node: Any, indent: str = "") -> str:
    if not isinstance(node, dict) or not node or (VARIANTS in node and "properties" not in node):
        return json.dumps(node, ensure_ascii=False)
    inner = indent + " "
    lines = (f"{inner}{json.dumps(name)}: {_lines(child, inner)}" for name, child in node.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


# --- where the keys come from ---


def _composed() -> Iterator[tuple[str, DictConfig]]:
    """Yield the configuration of each task of firstlight."""
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        for task in sorted(path.stem for path in (CONFIG_DIR / "task").glob("*.yaml")):
            config = hydra.compose(CONFIG_NAME, overrides=[f"task={task}"], return_hydra_config=True)
            HydraConfig.instance().set_config(config)
            OmegaConf.set_struct(config, False)
            del config["hydra"]
            yield task, config


def _sizes(choice: str) -> dict[str, dict[str, Any]]:
    """Return the values that each choice of `model` sets, by key. choice: of `size`, such as classifier/small."""
    files = (CONFIG_DIR / "size" / choice).parent.glob("*.yaml")
    nodes: dict[str, Any] = {path.stem: OmegaConf.load(path) for path in files}
    sizes: dict[str, dict[str, Any]] = {}
    for name in sorted(nodes, key=lambda name: nodes[name].dim):
        for field, value in nodes[name].items():
            sizes.setdefault(f"model.{field}", {})[name] = value
    return sizes


def _choices() -> Iterator[tuple[str, str, DictConfig]]:
    """Yield `group=choice`, the group and the keys of each choice of the open groups."""
    for group in CHOOSING:
        for path in sorted((CONFIG_DIR / group).glob("*.yaml")):
            node = OmegaConf.load(path)
            assert isinstance(node, DictConfig)
            node.pop("defaults", None)
            yield f"{group}={path.stem}", group, node


def _leaves(node: DictConfig, prefix: str, owner: type) -> Iterator[Leaf]:
    """Yield the keys below a node that a user sets. owner: the class that describes the node."""
    for field in map(str, node):
        name = prefix + field
        if (field in HYDRAS and name != "model._target_") or _is_written_once(owner, field):
            continue
        value = None if OmegaConf.is_missing(node, field) else node._get_node(field)
        if isinstance(value, DictConfig) and value._value() is not None and not OmegaConf.is_interpolation(node, field):
            inner = _owner(name, owner, value)
            if inner is None:
                yield Leaf(name, owner, field, {})
                continue
            if owner is OPEN_SECTIONS.get(prefix.rstrip(".")):
                yield Leaf(name, owner, field, {})
            yield from _leaves(value, f"{name}.", inner)
        else:
            yield Leaf(name, owner, field, _plain(value))


def _owner(name: str, owner: type, value: DictConfig) -> type | None:
    """Return the class that describes the keys below a node; None if the node is the value of a key."""
    if name in OPEN_SECTIONS:
        return OPEN_SECTIONS[name]
    if is_dataclass(OmegaConf.get_type(value)):
        return OmegaConf.get_type(value)
    return getattr(owner, _class_name(name.rpartition(".")[2]), None)


def _class_name(field: str) -> str:
    return field.title().replace("_", "")


def _is_written_once(owner: type, field: str) -> bool:
    """Return whether a key repeats one at the top, which the user sets instead."""
    return any(issubclass(owner, node) and field in node.__annotations__ for node in (ModelNode, DataNode))


def _plain(value: Any) -> Any:
    if isinstance(value, ListConfig) and value._value() is not None and not value._is_interpolation():
        return OmegaConf.to_container(value, enum_to_str=True)
    plain = None if value is None else value._value()
    return plain.name if isinstance(plain, Enum) else plain


# --- what describes them ---


def _key(name: str, places: Mapping[str, Leaf]) -> Key:
    grouped: dict[str, tuple[Leaf, str, list[str]]] = {}
    for place, leaf in places.items():
        sentence = sentence_of(leaf)
        same = json.dumps([sentence, leaf.default, leaf.sizes])
        grouped.setdefault(same, (leaf, sentence, []))[2].append(place)
    variants = tuple(
        Variant(tuple(where), sentence, leaf.default, leaf.sizes) for leaf, sentence, where in grouped.values()
    )
    return Key(name, _merged([_value(_hint(leaf.owner, leaf.field)) for leaf in places.values()]), variants)


def sentence_of(leaf: Leaf) -> str:
    """Return the docstring of a key. Raises LookupError if there is none."""
    for parent in leaf.owner.__mro__:
        if text := _docstrings(parent).get(leaf.field):
            return text
    nested = getattr(leaf.owner, _class_name(leaf.field), None)
    if nested is not None and nested.__doc__:
        return " ".join(nested.__doc__.split())
    raise LookupError(f"{leaf.name}: no docstring of {leaf.owner.__name__} describes it; add one")


@cache
def _docstrings(owner: type) -> dict[str, str]:
    """Return the descriptions of a class's own fields, from `Args:` of its docstring or the attributes' docstrings."""
    if owner.__module__ == "builtins":
        return {}
    given = parse_from_object(owner).params
    return {each.arg_name: _as_yaml(each.description) for each in given if each.description}


def _as_yaml(text: str) -> str:
    """Return a sentence with the values of Python as they are written in YAML."""
    text = " ".join(text.split())
    text = re.sub(r"\b(None|True|False)\b", lambda found: {"None": "null"}.get(found[0], found[0].lower()), text)
    return re.sub(r'"([a-z_]+)"', r"\1", text).replace("`", "")


def _hint(owner: type, field: str) -> Any:
    """Return the type of a field. A schema for OmegaConf, which has no lists in unions, leaves it to a base class."""
    hints = [typing.get_type_hints(each) for each in owner.__mro__]
    found = [each[field] for each in hints if field in each]
    return next((hint for hint in found if hint is not Any), found[0] if found else dict)


def _value(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type."""
    if hint is Any:
        return {}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": list(hint.__members__)}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _value(arguments[0])}
    if origin is dict or hint is dict:
        return {"type": "object"}
    if origin in (typing.Union, types.UnionType):
        return _merged([_value(each) for each in arguments])
    return {"type": TYPES[hint]}


def _merged(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a schema that accepts what any of several accept."""
    kinds: list[str] = []
    others: list[dict[str, Any]] = []
    for part in chain.from_iterable(value.get("anyOf", [value]) for value in values):
        if set(part) == {"type"}:
            kinds += [part["type"]] if isinstance(part["type"], str) else part["type"]
        elif part not in others:
            others.append(part)
    kinds = list(dict.fromkeys(kinds))
    if kinds == ["null"] and len(others) == 1 and "enum" in others[0]:
        return {"enum": [*others[0]["enum"], None]}
    simple = [{"type": kinds[0] if len(kinds) == 1 else kinds}] if kinds else []
    parts = [*simple, *others]
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


_HYDRAS = {
    "_target_": {"description": "Class or function to use; any that can be imported.", "type": "string"},
    "_partial_": {"description": "Whether further arguments are added before the call.", "type": "boolean"},
    "_recursive_": {"description": "Whether nested targets are created too.", "type": "boolean"},
}


def _property(key: Key) -> dict[str, Any]:
    sentences = list(dict.fromkeys(each.sentence for each in key.variants))
    is_one = len({as_typed(each.default) for each in key.variants}) == 1
    value = {"type": ["object", "null"]} if key.is_node else _with_interpolation(dict(key.value))
    return {
        "description": "\n".join(sentences),
        **value,
        **({"default": key.variants[0].default} if is_one else {}),
        VARIANTS: [
            {"where": " ".join(each.where), "default": each.default}
            | ({"sentence": each.sentence} if len(sentences) > 1 else {})
            | ({"sizes": each.sizes} if each.sizes else {})
            for each in key.variants
        ],
    }


def _with_interpolation(value: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also accepts `${…}`."""
    kinds = value.get("type", [])
    if not value or "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return value
    return {"anyOf": [*value.get("anyOf", [value]), INTERPOLATION]}


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")


def key_reference() -> str:
    """Return a chapter for each section of the configuration, with a table of its keys.

    The chapters begin with headings of the second level, `## data`, for a page with a title of its own.
    """
    return "\n".join(line for section in SECTIONS for line in _chapter(section))


def _chapter(section: str) -> Iterator[str]:
    yield f"## {f'`{section}`' if section else SECTIONS[section]}\n"
    if section:
        yield f"{SECTIONS[section]}.\n"
    yield "| key | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key in keys():
        if key.section == section:
            yield f"| `{key.name}` | {key.type} | {_default(key)} | {_meaning(key)} |"
    yield ""


def _default(key: Key) -> str:
    return "" if key.is_node else f"`{key.default_text}`" if ";" not in key.default_text else key.default_text


def _meaning(key: Key) -> str:
    """Return the sentence, or the sentences with the tasks to which each applies."""
    where: dict[str, list[str]] = {}
    for variant in key.variants:
        where.setdefault(variant.sentence, []).extend(variant.where)
    if len(where) == 1:
        return _escaped(next(iter(where)))
    return "<br>".join(f"{', '.join(tasks)}: {_escaped(sentence)}" for sentence, tasks in where.items())


def _escaped(sentence: str) -> str:
    return sentence.replace("<", "&lt;").replace("_", r"\_").replace("*", r"\*").replace("[", r"\[").replace("|", r"\|")
