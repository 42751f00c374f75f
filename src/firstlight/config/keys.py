"""The keys of the configuration, as conf/schema.json describes them. Imports nothing heavy.

`described.py` writes that file from the docstrings of the schema. `--help`, messages and the documentation use it here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from firstlight.config_files import CONFIG_DIR

SCHEMA_FILE = CONFIG_DIR / "schema.json"
SECTIONS = {  # in the order in which they are listed; "" holds the keys at the top
    "": "Top-level keys",
    "data": "Source of the data, and how it is divided and batched",
    "model": "Network",
    "tokenizer": "Tokenizer and vocabulary",
    "vectors": "Initial word vectors",
    "module": "LightningModule, which computes the loss",
    "distillation": "Distillation of the teacher",
    "optimizer": "Optimizer",
    "schedule": "Schedule of the learning rate",
    "trainer": "Lightning's Trainer",
    "callbacks": "Callbacks; callbacks.<name>=null removes one",
    "logger": "Loggers",
    "paths": "Folders",
    "sweep": "Sweeps (-m)",
}
VARIANTS = "x-variants"  # of a key in conf/schema.json


@dataclass(frozen=True)
class Variant:
    """What a key means, and its default, for some tasks or for a choice of its group.

    where: names of tasks, or `group=choice` for a key that the default choice of some task does not have. sizes: the
    values that the choices of `model`, such as tiny, set instead of the default.
    """

    where: tuple[str, ...]
    sentence: str
    default: Any
    sizes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Key:
    """A key of the configuration.

    Attributes:
        name: The key as it is typed, such as `data.path`.
        value: The JSON Schema of its value.
        variants: What it means and its default, for each group of tasks that agree.
    """

    name: str
    value: Mapping[str, Any]
    variants: tuple[Variant, ...]

    @property
    def section(self) -> str:
        """The part of the name before the first dot; "" for a key at the top."""
        return self.name.partition(".")[0] if "." in self.name else ""

    @property
    def type(self) -> str:
        """The type of the value in words, such as `integer or null`."""
        return " or ".join(_types(self.value))

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that are allowed, if they are listed."""
        parts = self.value.get("anyOf", [self.value])
        return tuple(str(value) for part in parts for value in part.get("enum", ()) if value is not None)

    @property
    def is_node(self) -> bool:
        """Whether it is a callback or logger as a whole, which is removed by null."""
        return "object" in self.value.get("type", ()) and self.section in ("callbacks", "logger")

    @property
    def default_text(self) -> str:
        """The default in words, with those of the tasks and sizes that have another one."""
        by_value: dict[str, list[str]] = {}
        for variant in self.variants:
            sizes = ", ".join(f"{as_typed(value)} for model={size}" for size, value in variant.sizes.items())
            by_value.setdefault(sizes or as_typed(variant.default), []).extend(variant.where)
        if len(by_value) == 1 and not any("=" in where for variant in self.variants for where in variant.where):
            return next(iter(by_value))
        return "; ".join(f"{value} ({', '.join(where)})" for value, where in by_value.items())

    def variant(self, task: str) -> Variant | None:
        """Return the variant for a task, or None if the task does not have the key."""
        return next((each for each in self.variants if task in each.where), None)


@cache
def keys() -> tuple[Key, ...]:
    """Return every key of the configuration, in the order of `SECTIONS` and of the schema."""
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    found = _keys_of(schema, "", schema)
    order = list(SECTIONS)
    return tuple(sorted(found, key=lambda key: order.index(key.section)))


def as_typed(value: Any) -> str:
    """Return a value as it is typed on the command line and in YAML: null, true, [0.9,0.98]."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{','.join(map(as_typed, value))}]"
    return str(value) if value != "" else '""'


def _keys_of(node: Mapping[str, Any], prefix: str, schema: Mapping[str, Any]) -> list[Key]:
    found = []
    for name, child in node.get("properties", {}).items():
        if VARIANTS in child:
            variants = tuple(
                Variant(
                    tuple(each["where"].split()),
                    each.get("sentence", child["description"]),
                    each["default"],
                    each.get("sizes", {}),
                )
                for each in child[VARIANTS]
            )
            found.append(Key(prefix + name, child, variants))
        if "$ref" in child:
            child = schema["definitions"][child["$ref"].rpartition("/")[2]]
        found += _keys_of(child, f"{prefix}{name}.", schema)
    return found


def _types(value: Mapping[str, Any]) -> list[str]:
    if "anyOf" in value:
        return list(dict.fromkeys(name for each in value["anyOf"] for name in _types(each)))
    if "$ref" in value:  # an interpolation, which every key accepts
        return []
    if "enum" in value:
        return [as_typed(each) for each in value["enum"]]
    kinds = value.get("type", [])
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    return [f"list of {_types(value['items'])[0]}s" if name == "array" else name for name in names]
