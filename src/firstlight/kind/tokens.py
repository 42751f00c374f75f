"""Choice of the tokens in the figure of the embeddings, and their groups, which determine the colors."""

import re
import tomllib
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstlight.kind.kind import NothingToDrawError
from firstlight.text.sentence_tokenizers import MARKS, SPACE
from firstlight.text.text_tokenizers import CharacterTokenizer
from firstlight.text.tokenizers import CONTINUATION, SPECIAL

MOST_TOKENS = 150  # tokens in the figure
BYTES = 256
WORD = re.compile(r"\w")
SIGNS = {"␣": "space", "⏎": "line break", "⇥": "tab"}
SHORTEST_TEXT, LONGEST_TEXT = 12, 40  # tokens of a text that is chosen automatically
OPINIONS = tomllib.loads(Path(__file__).with_name("opinions.toml").read_text(encoding="utf-8"))
POSITIVE, NEGATIVE = frozenset(OPINIONS["positive"]), frozenset(OPINIONS["negative"])
VOWELS = frozenset("aeiouyàáâäèéêëìíîïòóôöùúûüAEIOUYÀÁÂÄÈÉÊËÌÍÎÏÒÓÔÖÙÚÛÜ")


OPINION_NOTE = "positive and negative words are those of a fixed list; they do not depend on the labels"


class DrawnTokens(NamedTuple):
    """Tokens of a vocabulary.

    ids: token ids. names: readable name of each token. groups: index of the group of each token. group_names: name of
    each group. notes: where the groups come from, if their names do not say it.
    """

    ids: list[int]
    names: list[str]
    groups: list[int]
    group_names: list[str]
    notes: list[str] = []  # noqa: RUF012  (never changed)


def drawn_characters(tokenizer: CharacterTokenizer, readable: Callable[[int], str]) -> DrawnTokens:
    """Return the characters that a network writes. A punctuation mark has its name, such as "full stop".

    readable: function that returns the readable name of a token id.
    """
    ids = [i for i in range(tokenizer.vocab_size) if i not in tokenizer.unwritten][:MOST_TOKENS]
    shown = [readable(i) for i in ids]
    groups = [_group_of_character(tokenizer.words[i]) for i in ids]
    names = ["vowels", "consonants", "capital vowels", "capital consonants", "punctuation and space"]
    return DrawnTokens(ids, [SIGNS.get(name) or _name_of(name) for name in shown], groups, names)


def drawn_words(words: list[str], readable: Callable[[int], str]) -> DrawnTokens:
    """Return the most frequent words, without punctuation, or pieces of words. Words of opinion are first.

    words: the words of the vocabulary with a vector. readable: function that returns the readable name of a token id.
    """
    marks = [word for word in words[: len(MARKS)] if word in {*MARKS, *SPECIAL}]
    if any(word.startswith((SPACE, CONTINUATION)) for word in words):
        is_of_bytes = any(word.startswith(SPACE) for word in words)
        alphabet = BYTES if is_of_bytes else sum(len(word.removeprefix(CONTINUATION)) == 1 for word in words)
        ids = list(range(len(marks) + alphabet, len(words)))[:MOST_TOKENS] or list(range(len(marks), len(words)))
        groups = [_group_of_piece(words[i], is_of_bytes=is_of_bytes) for i in ids]
        group_names = ["begins a word", "capitalized", "inside a word", "other signs"]
        return DrawnTokens(ids, [readable(i) for i in ids], groups, group_names)
    opinions = [i for i, word in enumerate(words) if word in POSITIVE | NEGATIVE][: MOST_TOKENS // 3]
    rest = [i for i, word in enumerate(words) if i >= len(marks) and word not in POSITIVE | NEGATIVE]
    others = [i for i in rest if WORD.search(words[i])]
    ids = [*opinions, *others[: MOST_TOKENS - len(opinions)]]
    groups = [0 if words[i] in POSITIVE else 1 if words[i] in NEGATIVE else 2 for i in ids]
    group_names = ["positive words", "negative words", "other words"]
    return DrawnTokens(ids, [words[i] for i in ids], groups, group_names, [OPINION_NOTE] if opinions else [])


def _name_of(character: str) -> str:
    """Return the name of a punctuation mark, such as "full stop"; any other text as it is."""
    return character if len(character) != 1 or character.isalnum() else unicodedata.name(character, character).lower()


def _group_of_character(character: str) -> int:
    if not character.isalpha():
        return 4
    return (0 if character in VOWELS else 1) + (2 if character.isupper() else 0)


def _group_of_piece(piece: str, *, is_of_bytes: bool) -> int:
    """Return the group of a piece of a word. A byte-level piece marks the start of a word (Ġ), others the rest (##)."""
    plain = piece.removeprefix(SPACE).removeprefix(CONTINUATION)
    if not plain.isalpha():
        return 3
    is_inside = (
        not piece.startswith(SPACE) and not plain[0].isupper() if is_of_bytes else piece.startswith(CONTINUATION)
    )
    return 2 if is_inside else 1 if plain[0].isupper() else 0


def first_drawable(lengths: NDArray[np.int64]) -> int:
    """Return the index of the first length from SHORTEST_TEXT to LONGEST_TEXT, or of the length nearest to them.

    Raises NothingToDrawError without a length.
    """
    if not len(lengths):
        raise NothingToDrawError("the validation split has no rows")
    off = np.maximum(SHORTEST_TEXT - lengths, 0) + np.maximum(lengths - LONGEST_TEXT, 0)
    return int(off.argmin())
