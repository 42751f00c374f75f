"""The keys of a composed configuration: what each one means, its type and its value.

Dataclasses describe the keys of our sections. The keys of a class that the user can replace, such as those of
`optimizer`, are described by this class, which is imported for that.
"""

import inspect
import json
import re
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml
from docstring_parser import ParseError, google
from omegaconf import DictConfig, ListConfig, OmegaConf

from firstlight.choices import descriptions
from firstlight.config_files import CONFIG_DIR
from firstlight.kind.kind import DataNode, ModelNode
from firstlight.kind.registry import KINDS

MOST_CHARACTERS = 160  # of a description of several sentences
TEXTS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("help.yaml").read_text(encoding="utf-8"))
SECTIONS: dict[str, str] = TEXTS["sections"]  # in the order in which they are listed; "" holds the keys at the top
OPEN = ("module", "optimizer", "schedule", "trainer", "callbacks", "logger")  # of classes that the user can replace
HYDRAS = ("_target_", "_partial_", "_recursive_")  # keys that hydra.utils.instantiate reads
TYPES = {int: "integer", float: "number", str: "string", Path: "string", bool: "boolean", types.NoneType: "null"}


@dataclass(frozen=True)
class Key:
    """A key of a configuration.

    Attributes:
        name: The key as it is typed, such as `data.path`.
        sentence: What it means; "" if its class does not describe it.
        type: The type of its values in words, such as `integer or null`; "" if it is unknown.
        value: Its value.
        is_node: Whether it is a callback or a logger as a whole.
        is_rare: Whether it is one of the keyword-only fields of its dataclass, which are listed last.
    """

    name: str
    sentence: str
    type: str
    value: Any
    is_node: bool = False
    is_rare: bool = False

    @property
    def section(self) -> str:
        """The section of the key; "" for a key at the top."""
        return section_of(self.name)


def keys_of(config: DictConfig, prefix: str = "") -> Iterator[Key]:
    """Yield the keys of a configuration, or of a part of it, that a user can set.

    prefix: of the names of a part, such as `model.`. Raises LookupError for a field of a dataclass without a docstring.
    """
    owner: Any = OmegaConf.get_type(config)
    # Keys of a section that repeat those at the top, which the user sets instead.
    repeated = {name for node in (ModelNode, DataNode) if issubclass(owner, node) for name in node.__annotations__}
    rare = {field.name for field in fields(owner) if field.kw_only} if is_dataclass(owner) else set()
    for field in sorted(map(str, config), key=rare.__contains__):
        name = prefix + field
        if name == "hydra" or (field in HYDRAS and name != "model._target_") or field in repeated:
            continue
        child: Any = None if OmegaConf.is_missing(config, field) else config._get_node(field)
        has_value = isinstance(child, DictConfig) and child._value() is not None and not child._is_interpolation()
        if has_value and (not prefix or ("_target_" in child and not is_dataclass(owner))):
            if prefix:
                yield Key(name, parameter(child._target_, "")[0], "", {}, is_node=True)
            yield from keys_of(child, f"{name}.")
        elif name not in SECTIONS and prefix not in ("callbacks.", "logger."):  # one of which may be null
            sentence, hint = _described(config, field, name)
            value = {} if has_value else _plain(child)
            yield Key(name, sentence, " or ".join(types_of(hint)), value, is_rare=field in rare)


def keys_of_choices() -> Iterator[tuple[str, Key]]:
    """Yield the keys of each choice of the open groups, and of each kind of network, with the choice or the kind."""
    for group in OPEN:
        for path in sorted((CONFIG_DIR / group).glob("*.yaml")):
            node = OmegaConf.load(path)
            assert isinstance(node, DictConfig)
            node.pop("defaults", None)
            yield from ((f"{group}={path.stem}", key) for key in keys_of(node, f"{group}."))
    for kind in KINDS.values():
        for section, schema in [("model", kind.model), *(("data", schema) for schema in kind.schema.values())]:
            yield from ((f"a {kind.noun}", key) for key in keys_of(OmegaConf.structured(schema), f"{section}."))


def section_of(name: str) -> str:
    """Return the part of a key before the first dot; "" for a key at the top."""
    return name.partition(".")[0] if "." in name else ""


def flat_keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    """Yield the name of every key of a configuration, sections included, such as `data` and `data.path`."""
    for key in map(str, config):
        yield prefix + key
        if not OmegaConf.is_missing(config, key) and not OmegaConf.is_interpolation(config, key):
            child = config[key]
            if isinstance(child, DictConfig):
                yield from flat_keys(child, f"{prefix}{key}.")


def types_of_key(config: DictConfig, name: str) -> list[str]:
    """Return the types of the values of a key of a configuration, as `types_of`; [] if nothing describes the key."""
    section, _, field = name.rpartition(".")
    node = OmegaConf.select(config, section) if section else config
    return types_of(_described(node, field, name)[1]) if isinstance(node, DictConfig) and field in node else []


def as_typed(value: Any) -> str:
    """Return a value as it is typed on the command line and in YAML: null, true, [0.9,0.98]."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{','.join(map(as_typed, value))}]"
    return str(value) if value != "" else '""'


def types_of(hint: Any) -> list[str]:
    """Return the types of a type hint in words, and the choices of an enum. [] stands for any value.

    >>> types_of(int | list[float] | None)
    ['integer', 'list of numbers', 'null']
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return []
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint.__members__)
    if origin is typing.Literal:
        return list(map(as_typed, arguments))
    if origin in (list, tuple, Sequence, Iterable):
        return [f"list of {' or '.join(types_of(arguments[0])) or 'value'}s"]
    if origin in (typing.Union, types.UnionType):
        names = list(dict.fromkeys(chain.from_iterable(map(types_of, arguments))))
        return [name for name in names if name != "Tensor" and not (name == "integer" and "number" in names)]
    kind = origin or hint
    return [TYPES[kind] if kind in TYPES else str(getattr(kind, "__name__", hint))]


def _described(node: DictConfig, field: str, name: str) -> tuple[str, Any]:
    """Return what a key means and the type of its values."""
    owner = OmegaConf.get_type(node)
    if not is_dataclass(owner):
        return parameter(str(node.get("_target_")), field)
    if (text := _docstrings(owner).get(field)) is None:
        raise LookupError(f"{name}: no docstring of {owner.__name__} describes it; add one")
    hints = [typing.get_type_hints(each) for each in owner.__mro__]
    # A schema for OmegaConf, which has no lists in unions, leaves the type to a base class.
    return text, next((each[field] for each in hints if each.get(field, Any) is not Any), Any)


@cache
def _docstrings(owner: type) -> dict[str, str]:
    """Return the descriptions of a dataclass's fields as comments of YAML."""
    return {name: as_yaml(text).replace("`", "") for name, text in descriptions(owner).items() if text}


def _plain(value: Any) -> Any:
    if isinstance(value, ListConfig) and value._value() is not None and not value._is_interpolation():
        return OmegaConf.to_container(value, enum_to_str=True)
    plain = None if value is None else value._value()
    return plain.name if isinstance(plain, Enum) else plain


def parameter(target: str, name: str) -> tuple[str, Any]:
    """Return the first sentences about a parameter of a class or function, and its type; name "": about the whole.

    They are "" and Any if the source has none. Base classes describe what a class does not.

    >>> parameter("lightning.pytorch.Trainer", "max_steps")
    ('Stop training after this number of steps.', <class 'int'>)
    """
    sentences, hints = _of_class(target)
    return sentences.get(name, ""), hints.get(name, Any)


def as_yaml(text: str) -> str:
    """Return a description in one line, with the values of Python as they are written in YAML."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`|`([^`<]+) <[^>]+>`_", r"\1\2", " ".join(text.split()))
    text = re.sub(r"\b(None|True|False)\b", lambda found: {"None": "null"}.get(found[0], found[0].lower()), text)
    return re.sub(r'"([a-z_]+)"', r"\1", text)


def _in_short(text: str) -> str:
    """Return the first sentences of a description, without the default of the class, which need not be ours."""
    first, *more = re.split(r"(?<=[^.\s]{2}[.!?])\s(?=[^a-z])", as_yaml(text))
    short = re.split(r"[.;,]?\s*\(?\b[Dd]efaults?(?: to|:)", first)[0]
    for sentence in more if short == first else ():
        if len(short) + len(sentence) > MOST_CHARACTERS or "default" in sentence.lower():
            break
        short = f"{short} {sentence}"
    short = f"{short[:1].upper()}{short[1:]}".replace("`", "").rstrip(".:")
    return short and f"{short}."


@cache
def _of_class(target: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the sentences about the parameters of a class or function and their types, by name. "": the whole."""
    try:
        found = resolve_name(target)
    except (ImportError, AttributeError, ValueError):  # the command that uses the class reports it
        return {}, {}
    sentences: dict[str, str] = {}
    hints: dict[str, Any] = {}
    owners = found.__mro__[:-1] if isinstance(found, type) else [found]
    pairs = ((owner, getattr(owner, "__dict__", {}).get("__init__", owner)) for owner in owners)  # with its constructor
    for part in chain.from_iterable(pairs):
        with suppress(ParseError):  # a docstring in another style; the types are in the signature
            parsed = google.parse(inspect.cleandoc(part.__doc__ or ""))
            texts = {"": parsed.short_description} | {each.arg_name: each.description for each in parsed.params}
            sentences = {name: _in_short(text) for name, text in texts.items() if text} | sentences
        if inspect.isfunction(part):
            hints = part.__annotations__ | hints
    return sentences, hints
