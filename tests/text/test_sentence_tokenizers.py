import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstlight.errors import UserError
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID, MARKS, SentenceTokenizer, tidy
from firstlight.text.tokenizers import PAD_ID, UNKNOWN_ID, Tokenizer, train_subword_tokenizer, train_word_tokenizer

SRC = Path(__file__).parents[2] / "src"
EVERY_WORD = TokenizerOptions(min_document_frequency=1)
PIECES = TokenizerOptions(kind=TokenizerKind.subword, max_size=311)
TEXTS = ["A dog runs, doesn't it?", "Two dogs (red ones) run!", "Zwei Hunde laufen — schön schnell."]

words = SentenceTokenizer.train(TEXTS, EVERY_WORD)
pieces = SentenceTokenizer.train(TEXTS * 3, PIECES)
EVERY_KIND = pytest.mark.parametrize("tokenizer", [words, pieces], ids=["words", "pieces"])


def encode(tokenizer: SentenceTokenizer, text: str) -> list[int]:
    return tokenizer.encode_batch([text]).ids.tolist()


# --- tidy ---


def test_a_tidy_text_has_one_space_between_words_and_none_around_them():
    assert tidy(" \tA\u00a0dog \r\n\u2003runs.\n") == "A dog runs."
    assert tidy(" \n\u3000") == ""
    assert tidy("scho\u0308n cafe\u0301") == "schön café"  # composed
    assert tidy("a \ud800 dog") == "a ? dog"


# --- there and back ---


@given(st.lists(st.text(), max_size=5))
def test_texts_are_encoded_each_for_itself_and_in_their_order(texts):
    encoded = pieces.encode_batch(texts)
    assert [pieces.decode(ids) for ids in encoded] == [tidy(text) for text in texts]
    assert encoded.ids.dtype == np.int32
    assert min(encoded.ids, default=len(MARKS)) >= len(MARKS)


@EVERY_KIND
@pytest.mark.parametrize("text", TEXTS)
def test_spacing_and_punctuation_come_back(tokenizer, text):
    assert tokenizer.decode(encode(tokenizer, f"  {text}\n")) == text


def test_an_unknown_word_is_one_mark_and_is_not_written():
    ids = encode(words, "A cat runs, doesn't it?")
    assert [words.words[i] for i in ids] == ["ĠA", "[UNK]", "Ġruns", ",", "Ġdoesn", "'t", "Ġit", "?"]
    assert words.decode(ids) == "A runs, doesn't it?"


# --- marks ---


def test_the_first_ids_are_the_marks():
    for tokenizer in (words, pieces):
        assert tokenizer.words[:4] == ["[PAD]", "[UNK]", "[BEGIN]", "[END]"]
        assert (PAD_ID, tokenizer.unknown_id, BEGIN_ID, END_ID) == (0, 1, 2, 3)
        assert list(tokenizer.unwritten) == [PAD_ID, UNKNOWN_ID, BEGIN_ID]  # a translation contains [END]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("around", ["", " ", "dog"])
def test_no_mark_comes_out_of_a_text_that_has_its_name(mark, around):
    texts = [f"{around}{mark}{around}", f"A {mark} {mark}{mark}"] * 7
    for options in (EVERY_WORD, PIECES):
        tokenizer = SentenceTokenizer.train(texts, options)
        for text in texts:
            ids = encode(tokenizer, text)
            assert min(ids) >= len(MARKS)
            assert tokenizer.decode(ids) == tidy(text)
    assert not set(encode(words, texts[0])) & {PAD_ID, BEGIN_ID, END_ID}


@EVERY_KIND
def test_marks_are_left_out_of_what_is_written(tokenizer):
    ids = encode(tokenizer, TEXTS[0])
    middle = len(ids) // 2
    with_marks = [BEGIN_ID, *ids[:middle], UNKNOWN_ID, *ids[middle:], END_ID, PAD_ID, PAD_ID]
    assert tokenizer.decode(with_marks) == TEXTS[0]


def test_readable_ids_are_words_without_their_space_and_marks_by_name():
    ids = [BEGIN_ID, *encode(words, "A cat — schön?"), END_ID, PAD_ID]
    assert words.readable(ids) == ["[BEGIN]", "A", "[UNK]", "—", "schön", "?", "[END]", "[PAD]"]
    ids = encode(pieces, "A dog runs, doesn't it?")
    assert "".join(pieces.readable(ids)) == "Adogruns,doesn'tit?"
    assert len(pieces.readable(ids)) == len(ids)


# --- the vocabulary ---


def test_words_of_fewer_texts_than_asked_are_unknown():
    texts = ["b a", "c c c b", "b a!"]
    found = {n: SentenceTokenizer.train(texts, TokenizerOptions(min_document_frequency=n)).words[4:] for n in (2, 3)}
    assert found == {2: ["Ġb", "Ġa"], 3: ["Ġb"]}
    with pytest.raises(UserError, match="the training texts have no words"):
        SentenceTokenizer.train([" ", ""], EVERY_WORD)
    with pytest.raises(UserError, match=r"tokenizer.min_document_frequency=4 removes all words; set it to 3 or less"):
        SentenceTokenizer.train(texts, TokenizerOptions(min_document_frequency=4))


@pytest.mark.parametrize(("max_size", "expected"), [(6, 6), (8, 8), (9, 9), (1009, 9), (None, 9), (3, 5), (5, 5)])
def test_as_many_words_are_kept_as_asked_the_marks_included_and_at_least_one(max_size, expected):
    options = TokenizerOptions(max_size=max_size, min_document_frequency=1)
    tokenizer = SentenceTokenizer.train(["b a", "c c c b", "b a!", "A"], options)
    assert tokenizer.vocab_size == expected
    assert tokenizer.words == [*MARKS, "Ġb", "Ġa", "!", "ĠA", "Ġc"][:expected]


@pytest.mark.parametrize(("max_size", "expected"), [(260, 260), (263, 263), (1009, 264)])
def test_pieces_are_as_many_as_asked_or_as_the_texts_have_pairs(max_size, expected):
    options = TokenizerOptions(kind=TokenizerKind.subword, max_size=max_size)
    tokenizer = SentenceTokenizer.train(["abcd abcd"], options)  # Ġa, bc, ... up to the whole word
    assert tokenizer.vocab_size == expected
    assert (len(encode(tokenizer, "abcd")) == 1) is (max_size == 1009)


TRAIN = """
import sys
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import BytePairTokenizer
from firstlight.text.tokenizers import train_subword_tokenizer, train_word_tokenizer
texts = eval(sys.argv[1])
print(SentenceTokenizer.train(texts, TokenizerOptions(max_size=97, min_document_frequency=1)).to_json())
print(SentenceTokenizer.train(texts, TokenizerOptions(kind=TokenizerKind.subword, max_size=311)).to_json())
print(BytePairTokenizer.train(texts, 331).to_json())
print(train_word_tokenizer(texts).to_json())
print(train_subword_tokenizer(texts, vocab_size=61).to_json())
"""


def test_every_vocabulary_is_the_same_in_every_process():
    texts = ["".join(np.random.default_rng(seed).choice(list("abcdeé日  ,"), 211)) for seed in range(5)]
    trained = {
        subprocess.run(
            [sys.executable, "-c", TRAIN, repr(texts)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}
            | {"TOKENIZERS_PARALLELISM": parallel, "RAYON_NUM_THREADS": seed},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for seed, parallel in (("1", "false"), ("2", "true"))
    }
    assert len(trained) == 1
    assert [tokenizer_of_json(line).vocab_size for line in next(iter(trained)).splitlines()][:3] == [97, 311, 331]
    here = [train_word_tokenizer(texts), train_subword_tokenizer(texts, vocab_size=61)]
    assert [Tokenizer.from_json(line).words for line in trained.pop().splitlines()[3:]] == [each.words for each in here]
