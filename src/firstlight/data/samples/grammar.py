"""Shared parts of the samples: data files, weighted draws from lists, patterns with slots, and English spelling.

A data file is TOML. Its texts are lists: one item a line, or several on a line with " / " between them. An item may
have slots, `{word}`, which name another list. The first items of a list are used most, so the frequencies of the words
have a long tail.
"""

import random
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

Lexicon = dict[str, tuple[str, ...]]

_SEPARATOR = re.compile(r"\s*\n\s*|\s+/\s+")


@cache
def read(name: str) -> Any:
    """Return the content of a data file in this folder, such as "names"."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def load(name: str) -> Any:
    """Return the content of a data file in this folder, with each text as a tuple of items."""
    return _listed(read(name))


def items(text: str) -> tuple[str, ...]:
    """Return the items of a text, which line breaks or " / " separate."""
    return tuple(_SEPARATOR.split(text.strip()))


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_listed(inner) for inner in value]
    return items(value) if isinstance(value, str) else value


def front_first(choices: tuple[str, ...], rng: random.Random, steepness: float) -> str:
    """Return a random choice. The first is the most frequent; a steepness of 1 makes all equally frequent."""
    return choices[int(len(choices) * rng.random() ** steepness)]


class Words(dict[str, str]):
    """The words of one text. Given words are fixed; any other slot is drawn again whenever it is read."""

    steepness = 2.0

    def __init__(self, rng: random.Random, choices: Lexicon, given: Mapping[str, str] | None = None) -> None:
        super().__init__(given or {})
        self.rng, self.choices = rng, choices

    def __missing__(self, slot: str) -> str:
        return self.one_of(self.choices[slot])

    def one_of(self, patterns: tuple[str, ...]) -> str:
        """Return one of the patterns, filled."""
        return self.fill(front_first(patterns, self.rng, self.steepness))

    def fill(self, pattern: str) -> str:
        """Return the pattern with a word in each {slot}."""
        return pattern.format_map(self) if "{" in pattern else pattern


# Spelling

# A pattern of the beginnings of words after "an". Version 1 of the reviews has "a unimpressive", which must not change.
VOWEL = r"[aeio]|un(?!i[fm])|um|up|ug|us(?![eu])|hour|heir|hones|honor"
_ARTICLE = re.compile(rf"\ba(?= (?:{VOWEL}))", re.IGNORECASE)


def with_articles(text: str) -> str:
    """Return a text with "an" instead of "a" before a vowel."""
    return _ARTICLE.sub(r"\g<0>n", text)


def capitalized(text: str) -> str:
    """Return a text with a capital first letter and an unchanged rest."""
    return text[0].upper() + text[1:]
