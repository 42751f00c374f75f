"""Docstrings and signatures of the classes that a configuration names, which are imported for that."""

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pkgutil import resolve_name
from typing import Any

from docstring_parser import ParseError, google

MOST_CHARACTERS = 160  # of a description of several sentences


def summary(target: str) -> str:
    """Return the first sentences of the docstring of a class or function; "" if it has none.

    >>> summary("firstlight.callbacks.Throughput").startswith("Log ")
    True
    """
    return parameter(target, "")[0]


def parameter(target: str, name: str) -> tuple[str, Any]:
    """Return the first sentences about a parameter of a class or function, and its type.

    They are "" and Any if the source has none. Base classes describe what a class does not.

    >>> parameter("lightning.pytorch.Trainer", "max_steps")
    ('Stop training after this number of steps.', <class 'int'>)
    """
    sentences, hints = _described(target)
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
def _described(target: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the sentences about the parameters of a class or function and their types, by name. "": the whole."""
    try:
        found = resolve_name(target)
    except (ImportError, AttributeError, ValueError):  # the command that uses the class reports it
        return {}, {}
    sentences: dict[str, str] = {}
    hints: dict[str, Any] = {}
    for part in _parts(found):
        with suppress(ParseError):  # a docstring in another style; the types are in the signature
            parsed = google.parse(inspect.cleandoc(part.__doc__ or ""))
            texts = {"": parsed.short_description} | {each.arg_name: each.description for each in parsed.params}
            sentences = {name: _in_short(text) for name, text in texts.items() if text} | sentences
        if inspect.isfunction(part):
            hints = part.__annotations__ | hints
    return sentences, hints


def _parts(found: Any) -> Iterator[Any]:
    """Yield a function, or a class and its base classes with their constructors."""
    if not isinstance(found, type):
        yield found
        return
    for owner in found.__mro__[:-1]:
        yield owner
        yield vars(owner).get("__init__", owner)
