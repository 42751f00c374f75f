"""Pairs of texts in the context of a network: the longer text is cut, and the marks remain."""

import random

import numpy as np
import pytest

from firstlight.data.options import Truncation
from firstlight.data.tables import fitted, kept_places
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import DELIMITER_ID, EXTRACT_ID, START_ID, train_word_tokenizer

PAIRS = train_word_tokenizer(["a b c", "d e"], pairs=True, punctuation=True)
SINGLES = train_word_tokenizer(["a b c", "d e"], punctuation=True)


def kept(text: list[int], count: int, truncation: Truncation) -> list[int]:
    head = {Truncation.head: count, Truncation.tail: 0, Truncation.head_tail: (count + 1) // 2}[truncation]
    return text[:head] + text[len(text) - (count - head) :]


def expected(first: list[int], second: list[int], context_length: int, truncation: Truncation) -> list[int]:
    """Remove one token at a time from the longer text, and from the second of two equally long texts."""
    sizes = [len(first), len(second)]
    while sum(sizes) + len(PAIRS.marks) > context_length:
        sizes[0 if sizes[0] > sizes[1] else 1] -= 1
    texts = (kept(text, size, truncation) for text, size in zip((first, second), sizes, strict=True))
    return [START_ID, *next(texts), DELIMITER_ID, *next(texts), EXTRACT_ID]


@pytest.mark.parametrize("truncation", Truncation)
@pytest.mark.parametrize("context_length", [5, 7, 12, 61])
def test_tokens_are_removed_from_the_longer_text_until_both_fit(context_length: int, truncation: Truncation) -> None:
    chosen = random.Random(context_length)
    pairs = [[[*range(100, 100 + chosen.choice((0, 1, 2, 3, 5, 11, 23)))] for _ in range(2)] for _ in range(97)]
    rows = [[START_ID, *first, DELIMITER_ID, *second, EXTRACT_ID] for first, second in pairs]
    found = fitted(RaggedIds.from_rows(rows), PAIRS, context_length, truncation)
    assert [found[i].tolist() for i in range(97)] == [expected(*pair, context_length, truncation) for pair in pairs]
    assert (found.lengths == np.minimum(RaggedIds.from_rows(rows).lengths, context_length)).all()


def test_the_places_are_those_of_the_tokens_that_are_kept() -> None:
    ids = PAIRS.encode_batch(["a b c a b c ||| d e"])
    assert kept_places(ids, PAIRS, 8, Truncation.tail).ids.tolist() == [0, 4, 5, 6, 7, 8, 9, 10]
    assert ids.ids[kept_places(ids, PAIRS, 8, Truncation.tail).ids].tolist() == PAIRS.encode("a b c ||| d e")


def test_a_context_without_room_for_two_words_is_refused() -> None:
    with pytest.raises(UserError, match="context_length=4 is too short for texts with marks; use 5 or more"):
        fitted(PAIRS.encode_batch(["a b ||| c"]), PAIRS, 4, Truncation.head)


def test_what_fits_and_what_is_no_pair_is_unchanged() -> None:
    pairs, singles = PAIRS.encode_batch(["a b ||| c"]), SINGLES.encode_batch(["a b c d e a b c"])
    assert fitted(pairs, PAIRS, 6, Truncation.head) is pairs
    assert fitted(singles, SINGLES, 6, Truncation.head) is singles
    nothing = PAIRS.encode_batch([])
    assert fitted(nothing, PAIRS, 6, Truncation.head) is nothing
