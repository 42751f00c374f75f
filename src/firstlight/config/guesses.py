"""Which key or choice a user means by a name that does not exist. Imports nothing heavy."""

import difflib
from collections.abc import Collection, Iterable

from firstlight import config_files
from firstlight.choices import listed, nearest
from firstlight.config.keys import TEXTS

ALSO_CALLED = {name: keys.split() for keys, names in TEXTS["names_elsewhere"].items() for name in names.split()}
NAMED = ("task", "model", "experiment", "optimizer", "schedule", "trainer", "logger", "tokenizer", "vectors", "debug")


def nearest_keys(word: str, known: Collection[str]) -> list[str]:
    """Return the known keys that a user can mean by a wrong one, at most three.

    In this order: a key that other programs call so, keys with the same last part, similar keys of the same section,
    and keys with a similar last part.
    """
    section, _, leaf = word.rpartition(".")
    if named := [key for key in ALSO_CALLED.get(leaf, []) if key in known and key != word]:
        return named
    leaves = _by_leaf(known)
    siblings = {key for key in known if key.rpartition(".")[0] == section}
    similar = difflib.get_close_matches(word, siblings - {word}, n=2)
    same = [key for key in leaves.get(leaf, []) if key != word]
    return (same or similar or leaves.get(nearest(leaf, leaves, cutoff=0.75) or "", []))[:3]


def nearest_choices(group: str, choice: str, options: Collection[str]) -> list[str]:
    """Return what a user can mean by a choice that a group does not have, as `group=choice`, at most three."""
    leaves = _by_leaf(options, "/")
    same = leaves.get(choice) or difflib.get_close_matches(choice, options, n=1)
    same = same or leaves.get(nearest(choice.rpartition("/")[2], leaves) or "", [])
    return [f"{group}={option}" for option in same[:3]] or choices_named(choice)[:3]


def choices_named(name: str) -> list[str]:
    """Return every `group=choice` whose choice has a name, such as `task=stars` and `experiment=post/stars`."""
    found = ((group, choice) for group in NAMED for choice in config_files.choices(group))
    return [f"{group}={choice}" for group, choice in found if choice.rpartition("/")[2] == name]


def question(candidates: Iterable[str]) -> str:
    """Return `did you mean a, b or c?`; nothing without candidates."""
    names = listed(candidates, "or")
    return names and f"did you mean {names}?"


def _by_leaf(names: Iterable[str], separator: str = ".") -> dict[str, list[str]]:
    leaves: dict[str, list[str]] = {}
    for name in names:
        leaves.setdefault(name.rpartition(separator)[2], []).append(name)
    return leaves
