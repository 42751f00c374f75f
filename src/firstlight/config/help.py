"""The text of `train --help`: commands, groups with their choices, sections, and keys with their values."""

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight import config_files
from firstlight.config.keys import SECTIONS, TEXTS, Key, as_typed, flat_keys, keys_of, keys_of_choices, section_of
from firstlight.config.messages import nearest_keys, question
from firstlight.config.schema import RootConfig, compose
from firstlight.errors import UserError
from firstlight.invocation import invocation

DIRECTIVES = ("# @package", "# yaml-language-server")  # comments that programs read
MOST_SHOWN = 10  # keys of a section, without `more`
GROUPS, INTERNAL = TEXTS["groups"], TEXTS["internal"]  # those that a user chooses from; those of our files


def help_text(words: Sequence[str], overrides: Sequence[str]) -> str:
    """Return the help in lines that fit the terminal.

    words: names of groups, sections and keys to show, and `more` for all keys of a section; none: an overview.
    overrides: keys that were typed too, whose values are shown. Raises UserError for a word without a match.
    """
    width = max(60, min(shutil.get_terminal_size().columns, 100))
    is_complete, words = "more" in words, [word for word in words if word != "more"]
    if not words and not overrides:
        return "\n".join(_overview(width))
    task = [] if any(each.startswith("task=") for each in overrides) else ["task=sentiment"]
    config = compose([*task, *overrides])
    parts = (line for word in words or SECTIONS for line in _about(word, config, width, is_complete=is_complete))
    return "\n".join(parts).strip("\n")


def _overview(width: int) -> Iterator[str]:
    yield f"usage: {invocation('train')} [-m] [GROUP=CHOICE ...] [KEY=VALUE ...]"
    yield f"       {invocation('train')} --help WORD ...  (these groups, sections and keys)\n"
    yield "Train a transformer from first principles.\n"
    yield "Commands:"
    for command, arguments, purpose in TEXTS["commands"]:
        yield from _entry(f"{invocation(command)} {arguments}", purpose, width)
    yield "\nGroups (GROUP=CHOICE):"
    for group in _groups():
        yield from _group(group, width)
    yield "\nTop-level keys (KEY=VALUE):"
    for key in _keys(OmegaConf.structured(RootConfig), ""):
        yield from _entry(f"{key.name}=", key.sentence, width)
    yield "\nSections of keys (such as optimizer.lr=0.001):"
    for section, title in SECTIONS.items():
        if section:
            yield from _entry(f"--help {section}", title, width)
    yield "\nOptions:"
    for option, purpose in TEXTS["options"].items():
        yield from _entry(option, purpose, width)


def _about(word: str, config: DictConfig, width: int, *, is_complete: bool) -> Iterator[str]:
    if is_group := word in _groups():
        yield from _group(word, width, explained=True)
    if word in SECTIONS:
        yield from _section(word, _keys(config, word), width, is_complete=is_complete)
        return
    names = [name for name in flat_keys(config) if _is_meant(name, word)]
    found = [key for section in dict.fromkeys(map(section_of, names)) for key in _keys(config, section)]
    meant = [(key, "") for key in found if _is_meant(key.name, word)]
    others = {} if meant or is_group else {key.name: (key, choice) for choice, key in keys_of_choices()}
    meant += [(key, choice) for key, choice in others.values() if _is_meant(key.name, word)]
    for key, choice in meant:
        yield from _key(key, width, with_type=True, of=choice)
    if not meant and not is_group:
        guess = question(nearest_keys(word, [*_groups(), *flat_keys(config), *others]))
        raise UserError(f"--help {word}: not a group or a key; {guess or '`--help` lists them'}")


def _keys(config: DictConfig, section: str) -> list[Key]:
    """Return the keys of a section; "" for those at the top."""
    if section:
        return list(keys_of(config[section], f"{section}.")) if config[section] is not None else []
    return list(takewhile(lambda key: not key.section, keys_of(config)))


def _is_meant(key: str, word: str) -> bool:
    return key == word or key.startswith(f"{word}.") or key.rpartition(".")[2] == word


def _groups() -> list[str]:
    own = [group for group in config_files.groups() if group not in (*GROUPS, *INTERNAL)]
    return [*GROUPS, *own]


def _group(group: str, width: int, *, explained: bool = False) -> Iterator[str]:
    choices = [choice for choice in config_files.choices(group) if not choice.startswith("metrics/")]
    title = f"{group}: {GROUPS[group]}" if group in GROUPS else group
    if not explained:
        yield from _entry(title, ", ".join(choices), width)
        return
    yield title
    for choice in choices:
        yield from _entry(f"{group}={choice}", _first_comment(group, choice), width)


def _first_comment(group: str, choice: str) -> str:
    """Return the first sentence of the comment at the top of a choice's file."""
    lines = config_files.file_of(group, choice).read_text(encoding="utf-8").splitlines()
    comments = takewhile(lambda line: line.startswith("#"), lines)
    comment = " ".join(line.lstrip("# ") for line in comments if not line.startswith(DIRECTIVES))
    return re.split(r"(?<=[.)])\s+(?=[A-Z])", comment)[0]


def _section(section: str, keys: list[Key], width: int, *, is_complete: bool) -> Iterator[str]:
    """Yield the first keys of a section with what they mean, and the names of the others; is_complete: all keys."""
    listed = [key for key in keys if key.is_node] or [key for key in keys if not key.is_rare]
    shown = keys if is_complete or not section else listed[:MOST_SHOWN]
    if shown:
        yield f"\n{section}: {SECTIONS[section]}" if section else f"{SECTIONS['']}:"
    for key in shown:
        yield from _key(key, width)
    if rest := [key.name.partition(".")[2] for key in keys if key not in shown]:
        yield from _wrapped(f"more: {', '.join(rest)}", width, "  ")
        yield from _wrapped(f"--help {section} more: what they mean", width, "  ")


def _key(key: Key, width: int, *, with_type: bool = False, of: str = "") -> Iterator[str]:
    name = key.name if key.is_node else f"{key.name}={as_typed(key.value)}"
    yield from _entry(f"{name} (of {of})" if of else name, key.sentence, width)
    if with_type and key.type and not key.is_node:
        yield from _wrapped(f"Type: {key.type}.", width, "      ")


def _entry(name: str, text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(name, width - 2, **_WHOLE, initial_indent="  ", subsequent_indent="    ")
    yield from _wrapped(text, width, "      ")


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, **_WHOLE, initial_indent=indent, subsequent_indent=indent)


_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}
