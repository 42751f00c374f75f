from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.errors import UserError
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.translator.corpus import EncodedPairs, PairTokenizers, encode_pairs, find_pairs
from firstlight.translator.options import PairOptions
from split_folders import Rows, cached

EVERY_WORD = TokenizerOptions(min_document_frequency=1)
PIECES = TokenizerOptions(kind=TokenizerKind.subword, max_size=271)


def rows(count: int, word: str = "word") -> Rows:
    """Return pairs with their own number in both languages, and one more word in the target."""
    return [{"en": f"the {word}{number}", "de": f"{word}{number} das Wort"} for number in range(count)]


def encode_folder(folder: Path, given: PairTokenizers | None = None, **options: Any) -> EncodedPairs:
    """Return the encoded folder of a test, with a cache next to it."""
    defaults = {"path": str(folder), "cache_dir": str(folder.parent / "cache"), "tokenizer": EVERY_WORD}
    wanted = PairOptions(**(defaults | options))
    return encode_pairs(find_pairs(wanted), wanted, given)


def pairs_of(encoded: EncodedPairs, split: str) -> list[tuple[str, str]]:
    """Return the decoded pairs of a split."""
    source, target = encoded.tokenizers
    rows = encoded.rows_of(split)
    return [(words(source, encoded.source[row]), words(target, encoded.target[row])) for row in rows]


def words(tokenizer: SentenceTokenizer, ids: np.ndarray) -> str:
    """Return the words of a text, with [UNK] for unknown ones."""
    return " ".join(tokenizer.readable(ids.tolist()))


def split_words(tokenizer: SentenceTokenizer) -> set[str]:
    return {word.removeprefix("Ġ") for word in tokenizer.words[4:]}


# --- encoding ---


def test_all_pairs_are_encoded_split_after_split_in_their_order(write, folder):
    write(test=rows(3, "Ut"), train=rows(7, "Ag"), validation=rows(2, "Ze"))
    encoded = encode_folder(folder, tokenizer=PIECES)
    assert encoded.splits.tolist() == [0] * 7 + [1] * 2 + [2] * 3
    assert encoded.places.tolist() == [
        *([0, line] for line in range(1, 8)),
        *([1, line] for line in (1, 2)),
        *([2, line] for line in (1, 2, 3)),
    ]
    source, target = encoded.tokenizers
    for row, pair in enumerate([*rows(7, "Ag"), *rows(2, "Ze"), *rows(3, "Ut")]):
        assert source.decode(encoded.source[row]) == pair["en"]
        assert target.decode(encoded.target[row]) == pair["de"]


def test_the_columns_may_have_other_names_and_the_other_direction(write, folder):
    write(train=[{"id": 7, **row} for row in rows(23)])
    there = encode_folder(folder)
    back = encode_folder(folder, source_column="de", target_column="en")
    assert pairs_of(back, "train") == [(target, source) for source, target in pairs_of(there, "train")]
    with pytest.raises(UserError, match=rf"^{folder}/train.jsonl:1: the column 'fr' does not exist; .* id, en, de"):
        encode_folder(folder, target_column="fr")


@pytest.mark.parametrize("side", ["en", "de"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "is empty; fill it in, or remove the pair"),
        (" \t\n\u3000", "is empty; fill it in, or remove the pair"),
        (None, "holds None, not a text"),
        (7, "holds 7, not a text"),
    ],
)
def test_a_side_without_a_text_is_refused_with_its_place(write, folder, side, value, message):
    write(train=rows(23), validation=[*rows(4), {"en": "the word", "de": "das Wort", side: value}])
    with pytest.raises(UserError, match=f"^{folder}/validation.jsonl:5: column {side} {message}$"):
        encode_folder(folder)
    assert cached(folder) == []


# --- the vocabulary ---


def test_a_shared_vocabulary_is_one_tokenizer_of_both_languages_and_separate_ones_are_two(write, folder):
    write(train=rows(11))
    for _ in range(2):  # first encoded, then read from the cache
        encoded = encode_folder(folder, shared_vocabulary=True)
        assert encoded.tokenizers.source is encoded.tokenizers.target
        assert split_words(encoded.tokenizers.source) >= {"the", "das", "Wort", "word"}
        source, target = map(split_words, encode_folder(folder, shared_vocabulary=False).tokenizers)
        assert "the" in source - target
        assert {"das", "Wort"} <= target - source


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
def test_pairs_taken_out_of_training_are_not_in_the_vocabulary(write, folder, shared):
    write(train=[{"en": f"q{'x' * n}", "de": f"z{'x' * n}"} for n in range(53)])
    encoded = encode_folder(folder, shared_vocabulary=shared, validation_fraction=0.2, test_fraction=0.2)
    training = pairs_of(encoded, "train")
    assert len(training) == 31
    sides = [{source for source, _ in training}, {target for _, target in training}]
    expected = [sides[0] | sides[1]] * 2 if shared else sides
    assert [split_words(tokenizer) for tokenizer in encoded.tokenizers] == expected
    assert set(pairs_of(encoded, "validation") + pairs_of(encoded, "test")) == {("[UNK]", "[UNK]")}


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
def test_given_tokenizers_are_used_as_they_are_each_on_its_side(write, folder, shared):
    source = SentenceTokenizer.train(["the cup"], EVERY_WORD)
    given = PairTokenizers(source, source if shared else SentenceTokenizer.train(["das Wort"], EVERY_WORD))
    write(test=rows(3))  # a training split is not required
    encoded = encode_folder(folder, given)
    assert [side.words for side in encoded.tokenizers] == [side.words for side in given]
    assert (encoded.tokenizers.source is encoded.tokenizers.target) is shared
    expected = ("the [UNK] [UNK]", "[UNK] [UNK] [UNK] [UNK]" if shared else "[UNK] [UNK] das Wort")
    assert pairs_of(encoded, "test") == [expected] * 3
