"""Sample names from six invented languages, each with sounds, roots and endings of its own.

A name keeps one harmony throughout: its vowels are all front or all back, its stops all voiced or all voiceless. The
ending tells the gender. Whoever reads only the last letter or two knows neither the language nor the harmony.
"""

import random
import re
from dataclasses import dataclass
from functools import cache

VERSION = 1  # raised whenever the generated names change: caches depend on it
NUM_NAMES = 20_000
MIN_LETTERS, MAX_LETTERS = 2, 12

Sounds = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Language:
    """Patterns: a capital is a sound of the name's harmony, 0 and 9 are two roots, 1 to 3 a root's single letters."""

    harmonies: tuple[Sounds, ...]
    roots: tuple[str, ...]
    masculine: tuple[str, ...]
    feminine: tuple[str, ...]
    num_roots: int = 120  # of each harmony


def names(seed: int = 0) -> list[str]:
    """Draw distinct names, in random order."""
    rng = random.Random(f"names {seed}")
    languages = tuple(LANGUAGES)
    drawn: dict[str, None] = {}
    while len(drawn) < NUM_NAMES:
        drawn[coin(rng, rng.choice(languages), feminine=rng.random() < 0.5)] = None
    shuffled = list(drawn)  # as drawn, the rare names would come last
    rng.shuffle(shuffled)
    return shuffled


def coin(rng: random.Random, language: str, *, feminine: bool) -> str:
    """Make up one name of a language and a gender."""
    grammar = LANGUAGES[language]
    harmony = rng.randrange(len(grammar.harmonies))
    patterns, roots = grammar.feminine if feminine else grammar.masculine, _roots(language)[harmony]
    while True:
        root, other = _front_first(roots, rng), _front_first(roots, rng)
        letters = {"0": root, "9": other} | dict(zip("123", root, strict=False))
        name = _spell(_front_first(patterns, rng), grammar.harmonies[harmony], letters, rng)
        if MIN_LETTERS <= len(name) <= MAX_LETTERS and not _STUMBLES.search(name):
            return name


@cache
def _roots(language: str) -> tuple[tuple[str, ...], ...]:
    """The roots of a language by harmony: the same for every seed."""
    rng, grammar = random.Random(f"roots of {language}"), LANGUAGES[language]
    return tuple(
        tuple(_spell(rng.choice(grammar.roots), sounds, {}, rng) for _ in range(grammar.num_roots))
        for sounds in grammar.harmonies
    )


def _spell(pattern: str, sounds: Sounds, letters: dict[str, str], rng: random.Random) -> str:
    return "".join(
        _front_first(sounds[symbol], rng) if symbol in sounds else letters.get(symbol, symbol) for symbol in pattern
    )


def _front_first(choices: tuple[str, ...], rng: random.Random) -> str:
    """Choose one, the first most often, the last least."""
    return choices[int(len(choices) * rng.random() ** 1.5)]


_STUMBLES = re.compile(r"(.)\1\1|[aeiouy]{4}|[^aeiouy]{5}|(..)\2\2")


def _sounds(**sounds: str) -> Sounds:
    return {symbol: tuple(choices.split()) for symbol, choices in sounds.items()}


LANGUAGES = {
    # Vowels are all back or all front; consonants double between vowels.
    "lake": Language(
        harmonies=(
            _sounds(
                V="a o u aa uo", A="a", U="u", O="o", C="k t m l n s v r p h j", M="l r k n tt kk m ll nt lk st rv"
            ),
            _sounds(
                V="e i y ee ie", A="e", U="y", O="i", C="k t m l n s v r p h j", M="l r k n tt kk m ll nt lk st rv"
            ),
        ),
        roots=("CVM", "CVMVM", "VM", "CVCVM"),
        masculine=("0Os", "0UkkO", "0Ar", "0UmAs", "0AnUr", "0U"),
        feminine=("0A", "0UllA", "0AnnA", "0OlkA", "0UtAr", "0OvA"),
    ),
    # Stops and hisses are all voiceless or all voiced, from the first to the last.
    "fjord": Language(
        harmonies=(
            _sounds(T="t k p", S="s th f sk st", V="o a e i u", R="r l w", N="n r l m"),
            _sounds(T="d g b", S="v z dh zg vr", V="o a e i u", R="r l w", N="n r l m"),
        ),
        roots=("TRVN", "SVNT", "TRVS", "SVT", "TVN", "RVNT", "TRVNT"),
        masculine=("0", "0oT", "0eNT", "0uNS", "0uN", "0VN9"),
        feminine=("0e", "0iSe", "0yNe", "0iNTe", "0aRe", "0eTi"),
    ),
    # Syllables are open; syllables or whole roots come twice.
    "isle": Language(
        harmonies=(
            _sounds(V="i e u ia", C="k l m n p t w h s"),
            _sounds(V="a o e ao", C="k l m n p t w h s"),
        ),
        roots=("CVCV", "CV", "VCV", "CVV", "CVCVCV"),
        masculine=("0Co", "0nu", "00", "0kau", "90ro", "00mo"),
        feminine=("0Ci", "0le", "00lei", "0nahi", "90ri", "0wie"),
    ),
    # Every consonant stands between vowels of one kind, broad or slender; a particle softens what follows.
    "glen": Language(
        harmonies=(
            _sounds(V="a o u ua ao", A="a", O="o", C="c d b g m f t r", L="l n r dh gh mh bh ch", G="gh bh dh mh"),
            _sounds(V="e i ei io ea", A="e", O="i", C="c d b g m f t r", L="l n r dh gh mh bh ch", G="gh bh dh mh"),
        ),
        roots=("CVL", "CVLVL", "VL", "CrVL", "CVnL"),
        masculine=("0An", "0", "0OrAn", "0AgAn", "mA0An", "0OcAl"),
        feminine=("0OnA", "0AthA", "nO0A", "0AssA", "0OrlA", "GV0A"),
    ),
    # Three consonants carry a name; the vowels between them tell the gender.
    "dune": Language(
        harmonies=(
            _sounds(C="r s m n l k b d h z j f", B="t q sh g"),
            _sounds(C="r s m n l k b d h z j f", B="t q y w"),
        ),
        roots=("CCC", "BCC", "CCB", "CBC"),
        masculine=("1a2i3", "1u2a3", "ma12u3", "1aa2i3", "i12a3", "1u2ay3", "a12a3", "mu1a22i3", "1a2u3im", "ya12u3"),
        feminine=("1a2i3a", "1u23a", "ta12i3e", "1a2a3at", "1i2e3et", "mi12a3ah", "1u2ay3a", "a1i22ae3", "te1e2i3e"),
        num_roots=240,
    ),
    # The ending's liquid is the one that the root lacks: l after r, r after l.
    "vale": Language(
        harmonies=(
            _sounds(L="l ll lv ld", R="r", V="a e i o u ia", C="c m b s d p v t f n g", M="n st nt ss nd"),
            _sounds(L="r rr rv rd", R="l", V="a e i o u ia", C="c m b s d p v t f n g", M="n st nt ss nd"),
        ),
        roots=("CVL", "VLVM", "CVLVM", "CVMVL", "CVCVL"),
        masculine=("0o", "0aRo", "0iRio", "0eRino", "0uRdo", "0eno"),
        feminine=("0a", "0aRa", "0iRia", "0eRina", "0uRda", "0ena"),
    ),
}
