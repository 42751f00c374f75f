"""Options by name: choices of an enum, and names that are not known. Imports nothing heavy."""

import difflib
import typing
from collections.abc import Collection, Iterable
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

Choice = TypeVar("Choice", bound=Enum)


def accept_names(options: Any, prefix: str = "") -> None:
    """Replace the name of a choice by its enum member, in every field of a dataclass that holds an enum.

    options: a dataclass instance, changed in place; prefix: what an error message puts before the field's name, such as
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
        kinds = [kind for kind in (types[field.name], *typing.get_args(types[field.name])) if _is_enum(kind)]
        if kinds:
            value, may_be_none = getattr(options, field.name), type(None) in typing.get_args(types[field.name])
            is_none = value is None and may_be_none
            setattr(options, field.name, None if is_none else member(kinds[0], value, prefix + field.name))


def member(kind: type[Choice], value: Any, name: str) -> Choice:
    """The member of an enum, given itself or its name.

    name: what an error message calls the option. Raises ValueError if there is no such member.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    raise ValueError(f"{name}={value!r} must be one of {', '.join(kind.__members__)}")


def refuse_unknown(given: Iterable[str], known: Collection[str], owner: str) -> None:
    """Raise TypeError for the first name that is not known, and show the nearest one that is.

    owner: what an error message says the option was given to.
    """
    for name in given:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            raise TypeError(f"{owner} has no option {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""))


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)
