"""Enum options by name; descriptions and checks of options; unknown names, and names in messages. Imports little."""

import difflib
import typing
from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum, EnumType
from typing import Any, TypeVar

Choice = TypeVar("Choice", bound=Enum)


def descriptions(options: type) -> dict[str, str]:
    """Return the description of each field of a dataclass, from `Args:` of its docstring and those of its bases."""
    from docstring_parser import parse_from_object  # parses the source, which few commands require

    parts = [part for part in reversed(options.__mro__) if is_dataclass(part)]
    return {each.arg_name: each.description or "" for part in parts for each in parse_from_object(part).params}


def accept_names(options: Any, prefix: str = "") -> None:
    """Replace the name of a choice by its enum member, in every enum field of a dataclass.

    options: a dataclass instance, changed in place; prefix: the text before the field's name in messages, such as
    `data.`. Raises ValueError if the value is not one of the choices.

    >>> from dataclasses import dataclass
    >>> from firstlight.networks.config import Norm
    >>> @dataclass
    ... class Options:
    ...     norm: Norm = Norm.post
    >>> options = Options(norm="pre")
    >>> accept_names(options)
    >>> options.norm
    <Norm.pre: 'pre'>
    """
    types = typing.get_type_hints(type(options))
    for field in fields(options):
        value, parts = getattr(options, field.name), (types[field.name], *typing.get_args(types[field.name]))
        kinds: list[Any] = [kind for kind in parts if isinstance(kind, EnumType)]
        if kinds and not (value is None and type(None) in parts):
            setattr(options, field.name, member(kinds[0], value, prefix + field.name))


def member(kind: type[Choice], value: Any, name: str) -> Choice:
    """Return the member of an enum, given the member or its name.

    name: the option's name in messages. Raises ValueError if the enum has no such member.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    raise ValueError(f"{name}={value!r} must be one of {', '.join(kind.__members__)}")


def require(is_right: bool, problem: str) -> None:
    """Raise ValueError with the problem unless a condition is true. It checks the options of a dataclass."""
    if not is_right:
        raise ValueError(problem)


def refuse_unknown(given: Iterable[str], known: Collection[str], owner: str) -> None:
    """Raise TypeError for the first unknown name, and suggest the most similar known name.

    owner: the class or function that got the option, for the message.
    """
    for name in given:
        if name not in known:
            meant = nearest(name, known)
            raise TypeError(f"{owner} has no option {name}" + (f"; did you mean {meant}?" if meant else ""))


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to a wrong one; None if none is.

    cutoff: the lowest similarity, from 0 to 1, as in difflib.

    >>> nearest("sentimen", ["stars", "sentiment"])
    'sentiment'
    """
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), None)


def listed(names: Iterable[str], conjunction: str = "", *, most: int = 8) -> str:
    """Return names in one line. If there are many, return the first ones and the number of the others.

    >>> listed(["a", "b", "c"], "or"), listed(["a", "b", "c"], most=2)
    ('a, b or c', 'a, b and 1 more')
    """
    shown = list(names)
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most:,} more"
    if conjunction and len(shown) > 1:
        return f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"
    return ", ".join(shown)
