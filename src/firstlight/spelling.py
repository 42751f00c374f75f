"""Spelling of options in messages: as they are typed for the running command, or as keywords of Python.

The code writes every option as for `train`, such as `data.lowest_label=1`. An error spells it `--data.lowest-label 1`
in a command with options, and `lowest_label=1` in Python.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

Spell = Callable[[str, str | None], str | None]  # of a key and its value; None: leave it unchanged

LOG_DIR = "paths.log_dir"
_NOT_PLAIN = re.compile(r"[^\w/.+-]")  # a character for which the shell or Hydra needs quotes
_OPTION = re.compile(r"(?<![\w/.-])((?:data|paths)\.[a-z_]+)\b(?:=(\w*))?")
_python_options: dict[str, Any] = {LOG_DIR: ""}  # each with an example of its value

QUOTING = re.compile(r"['\"\\]")  # a character by which one value can be typed in several ways


def declare(group: str, options: type) -> None:
    """Register the fields of a dataclass as keywords of Python. group: their section, such as `data`."""
    for each in fields(options):
        _python_options[f"{group}.{each.name}"] = None if each.default is MISSING else each.default


def as_override(key: str, value: str | None) -> str:
    """Return an option as it is typed for `train`."""
    return key if value is None else f"{key}={value}"


def as_keyword(key: str, value: str | None) -> str | None:
    """Return an option as it is given in Python."""
    if "." in key and key not in _python_options:
        return None
    name = key.rpartition(".")[2]
    if not value:
        return name if value is None else f"{name}="
    if isinstance(_python_options.get(key, ""), bool):
        return f"{name}={value.capitalize()}"
    is_choice = "." not in key or isinstance(_python_options[key], Enum)
    return f'{name}="{value}"' if is_choice else f"{name}={value}"


def as_options_of(options: type) -> Spell:
    """Return the spelling of options for the command whose options are a dataclass."""
    names = {each.name: each.name for each in fields(options)}  # by the key of `train`
    names |= {f"data.{name}": name for name in names}
    for each in fields(options):
        group: Any = each.default_factory
        if is_dataclass(group):
            names |= {(name := f"{each.name}.{part.name}"): name for part in fields(group)}
    if "log_dir" in names:
        names[LOG_DIR] = "log_dir"
    flags = {key: f"--{name.replace('_', '-')}" for key, name in names.items()}

    def spell(key: str, value: str | None) -> str | None:
        flag = flags.get(key)
        return flag if flag is None or value is None else f"{flag} {value}"

    return spell


_spell: ContextVar[Spell] = ContextVar("spell", default=as_keyword)


def use(spell: Spell) -> None:
    """Spell all options in this way from now on, in this context."""
    _spell.set(spell)


@contextmanager
def kept() -> Iterator[None]:
    """Restore the spelling at the end of the block."""
    token = _spell.set(_spell.get())
    try:
        yield
    finally:
        _spell.reset(token)


def option(key: str, value: str | None = None) -> str:
    """Return an option as the user would type it, or unchanged if the user cannot set it."""
    return _spell.get()(key, value) or as_override(key, value)


def quoted_option(key: str, value: str) -> str:
    """Return an option with any value, such as a name with spaces, quoted as the user would type it in a shell."""
    spell = _spell.get()
    if spell is as_keyword:
        return f"{as_keyword(key, None) or key}={value!r}"
    flag = spell(key, None)
    if spell is not as_override and flag is not None:
        return f"{flag} {shlex.quote(value)}"
    if not _NOT_PLAIN.search(value) and value.lower() not in ("", "null", "true", "false"):
        return as_override(key, value)
    override = as_override(key, quoted(value))
    return shlex.quote(override) if re.search(r'["$`!\\]', override) else f'"{override}"'


def quoted(text: str) -> str:
    """Return a text as one value of Hydra's grammar, whatever characters it has."""
    escaped = re.sub(r"\\*'|\\+$", lambda found: found[0].replace("\\", "\\\\").replace("'", "\\'"), text)
    return f"'{escaped}'"  # Hydra reads a backslash as one unless a quote follows


def in_python(sentence: str) -> str:
    """Return the description of an option of the configuration, as it is given in Python."""
    with kept():
        use(as_keyword)
        sentence = spelled(sentence)
    names = {"null": "None", "true": "True", "false": "False"}
    return re.sub(r"\b(null|true|false)\b", lambda found: names[found[0]], sentence)


def spelled(message: str) -> str:
    """Return a message in which every option is spelled as the user would type it."""
    return _OPTION.sub(lambda found: _spell.get()(found[1], found[2]) or found[0], message)
