"""Sample names from six invented languages, each with its own sounds, roots and endings, which are in names.toml.

All sounds of a name have the same harmony: its vowels are all front or all back, or its stops are all voiced or all
voiceless. The ending depends on the gender. The last two letters do not determine the language or the harmony.
"""

import random
import re
from functools import cache

from firstlight.data.samples.grammar import Lexicon, front_first, load

VERSION = 1  # increased when the generated names change, so that caches are not reused
NUM_NAMES = 20_000
MIN_LETTERS, MAX_LETTERS = 2, 12
STEEPNESS = 1.5  # of `front_first`

LANGUAGES = load("names")
_STUMBLES = re.compile(r"(.)\1\1|[aeiouy]{4}|[^aeiouy]{5}|(..)\2\2")


def names(seed: int = 0) -> list[str]:
    """Return distinct names in random order."""
    rng = random.Random(f"names {seed}")
    languages = tuple(LANGUAGES)
    drawn: dict[str, None] = {}
    while len(drawn) < NUM_NAMES:
        drawn[coin(rng, rng.choice(languages), feminine=rng.random() < 0.5)] = None
    shuffled = list(drawn)  # without this, rare names would come last
    rng.shuffle(shuffled)
    return shuffled


def coin(rng: random.Random, language: str, *, feminine: bool) -> str:
    """Return a random name of a language and a gender."""
    grammar = LANGUAGES[language]
    harmony = rng.randrange(len(grammar["harmonies"]))
    patterns, roots = grammar["feminine" if feminine else "masculine"], _roots(language)[harmony]
    while True:
        root, other = (front_first(roots, rng, STEEPNESS) for _ in range(2))
        letters = {"0": root, "9": other} | dict(zip("123", root, strict=False))
        pattern = front_first(patterns, rng, STEEPNESS)
        name = _spell(pattern, grammar["harmonies"][harmony], letters, rng)
        if MIN_LETTERS <= len(name) <= MAX_LETTERS and not _STUMBLES.search(name):
            return name


@cache
def _roots(language: str) -> tuple[tuple[str, ...], ...]:
    """Return the roots of a language by harmony. They do not depend on the seed."""
    rng, grammar = random.Random(f"roots of {language}"), LANGUAGES[language]
    return tuple(
        tuple(_spell(rng.choice(grammar["roots"]), sounds, {}, rng) for _ in range(grammar["num_roots"]))
        for sounds in grammar["harmonies"]
    )


def _spell(pattern: str, sounds: Lexicon, letters: dict[str, str], rng: random.Random) -> str:
    return "".join(
        front_first(sounds[symbol], rng, STEEPNESS) if symbol in sounds else letters.get(symbol, symbol)
        for symbol in pattern
    )
