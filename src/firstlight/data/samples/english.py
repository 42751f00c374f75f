"""English spelling and inflection for the samples. Exceptions from the rules are in english.toml."""

import re
from functools import cache

from firstlight.data.samples.grammar import load

_DATA = load("english")
_IRREGULAR = {
    base: (past, participle) for base, past, participle in (entry.split(", ") for entry in _DATA["irregular"])
}
_DOUBLING = frozenset(_DATA["doubling"])
_PLURALS = dict(entry.split(", ") for entry in _DATA["plurals"])

_HISSING = re.compile("(?:[sxz]|[cs]h|[^aeiou]o)$")
_CONSONANT_Y = re.compile("(?<=[^aeiou])y$")


@cache
def plural(noun: str) -> str:
    """Return the plural of a noun."""
    first, space, noun = noun.rpartition(" ")
    if noun in _PLURALS:
        return first + space + _PLURALS[noun]
    if _CONSONANT_Y.search(noun):
        return first + space + noun[:-1] + "ies"
    return first + space + noun + ("es" if _HISSING.search(noun) else "s")


third = plural  # the form after "he", as in "he breaks", has the same rules


@cache
def ended(verb: str, ending: str) -> str:
    """Return a verb with the ending -eth, -est, -ed or -ing."""
    if verb in _DOUBLING:
        return verb + verb[-1] + ending
    if ending == "ing":
        if verb.endswith("ie"):
            return verb[:-2] + "ying"
        return re.sub("(?<!e)e$", "", verb) + ending
    return _CONSONANT_Y.sub("i", verb) + (ending[1:] if verb[-1] == "e" else ending)


def past(verb: str) -> tuple[str, str]:
    """Return the past tense and the past participle of a verb."""
    return _IRREGULAR.get(verb) or (ended(verb, "ed"),) * 2


def adverb(adjective: str) -> str:
    """Return the adverb of an adjective."""
    if adjective.endswith("ly"):
        return f"in {adjective} wise"
    if adjective.endswith("ll"):
        return adjective + "y"
    if adjective.endswith(("ble", "dle", "gle", "ple", "tle", "ckle")):
        return adjective[:-1] + "y"
    return _CONSONANT_Y.sub("i", adjective.removesuffix("e") if adjective.endswith("ue") else adjective) + "ly"
