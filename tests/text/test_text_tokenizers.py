import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from firstlight.errors import UserError
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.text_tokenizers import (
    BYTE_OF_SYMBOL,
    BytePairTokenizer,
    CharacterTokenizer,
    TextTokenizer,
    TextWordTokenizer,
    WordText,
    decode,
    first_id,
    writer_of,
)
from firstlight.text.tokenizers import (
    PAD_ID,
    UNKNOWN_ID,
    Tokenizer,
    train_subword_tokenizer,
    train_word_tokenizer,
)

SRC = Path(__file__).parents[2] / "src"
TEXTS = ["the cat sat on the mat\n", "the naïve café — 日本語 𝕏\n", "the cats’ hats\n"] * 7
SIZE = 293
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # the characters that a UTF-8 file can contain

characters = CharacterTokenizer.train(TEXTS, "\ufffd")
byte_pairs = BytePairTokenizer.train(TEXTS, SIZE)
text_words = TextWordTokenizer.train(TEXTS, SIZE)


def encode(tokenizer: TextTokenizer, text: str) -> list[int]:
    return tokenizer.encode_batch([text]).ids.tolist()


# --- characters ---


def test_characters_are_numbered_in_the_order_of_their_code_points_after_the_unknown_symbol():
    tokenizer = CharacterTokenizer.train(["beda", "ca𝕏é"], "?")
    assert tokenizer.words == ["?", "a", "b", "c", "d", "e", "é", "𝕏"]
    assert (tokenizer.unknown_id, tokenizer.unwritten, tokenizer.vocab_size) == (0, [0], 8)
    assert encode(tokenizer, "ab𝕏é") == [1, 2, 7, 6]


def test_without_an_unknown_symbol_the_characters_are_all_there_is():
    tokenizer = CharacterTokenizer.train(["beda"], None)
    assert tokenizer.words == ["a", "b", "d", "e"]
    assert (tokenizer.unknown_id, tokenizer.unwritten) == (None, [])
    assert encode(tokenizer, "deb") == [2, 3, 1]


def test_the_vocabulary_depends_on_the_characters_and_not_on_their_order():
    assert CharacterTokenizer.train(["ab", "ca"], "?").words == CharacterTokenizer.train(iter(["acb"]), "?").words


@given(st.lists(ANY_TEXT))
def test_any_text_comes_back_from_its_characters(texts):
    for unknown_symbol in ("\ufffd", None):
        tokenizer = CharacterTokenizer.train(texts, unknown_symbol)
        encoded = tokenizer.encode_batch(texts)
        assert [decode(tokenizer, ids) for ids in encoded] == texts
        assert encoded.lengths.tolist() == list(map(len, texts))
        assert encoded.ids.dtype == np.int32


@given(known=ANY_TEXT, text=ANY_TEXT)
def test_a_character_outside_the_vocabulary_is_the_unknown_symbol(known, text):
    tokenizer = CharacterTokenizer.train([known], "?")
    assert decode(tokenizer, encode(tokenizer, text)) == "".join(c if c in known else "?" for c in text)


@pytest.mark.parametrize("strange", ["\0", "A", "b", "z", "é", "日", "𝕏", "\U0010ffff", "\ud800"])
def test_where_there_is_no_unknown_symbol_a_strange_character_is_refused_by_its_name(strange):
    tokenizer = CharacterTokenizer.train(["ac"], None)
    with pytest.raises(UserError, match="is not in the vocabulary, which has no unknown symbol; remove it") as refused:
        tokenizer.encode(f"ac{strange}d")
    assert str(refused.value).startswith(f"the character {strange!r} ")
    assert "\n" not in str(refused.value)


def test_an_unknown_symbol_in_the_text_is_itself():
    tokenizer = CharacterTokenizer.train(["a?c"], "?")
    assert tokenizer.words == ["?", "a", "c"]
    assert decode(tokenizer, encode(tokenizer, "c?a")) == "c?a"


def test_every_character_is_one_token_long():
    assert characters.characters_per_token().tolist() == [1] * characters.vocab_size


def test_no_texts_are_no_ids():
    for tokenizer in (characters, byte_pairs):
        assert len(tokenizer.encode_batch([])) == 0
        assert tokenizer.encode_batch(["", "a", ""]).offsets.tolist() == [0, 0, 1, 1]


# --- byte pairs ---


def test_the_symbols_of_bytes_are_the_alphabet_of_hugging_face():
    assert sorted(BYTE_OF_SYMBOL) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert sorted(BYTE_OF_SYMBOL.values()) == list(range(256))
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
    for code in range(0x110000):
        if code < 0x900 or (code % 1009 == 0 and not 0xD800 <= code < 0xE000):
            [(symbols, _)] = split(chr(code))
            assert bytes(BYTE_OF_SYMBOL[symbol] for symbol in symbols) == chr(code).encode()


@given(ANY_TEXT)
def test_any_text_comes_back_from_its_byte_pairs(text):
    assert decode(byte_pairs, encode(byte_pairs, text)) == text


@given(ANY_TEXT)
def test_the_characters_of_the_tokens_sum_to_those_of_the_text(text):
    assert byte_pairs.characters_per_token()[encode(byte_pairs, text)].sum() == len(text)


@given(st.lists(st.integers(0, byte_pairs.vocab_size - 1)))
def test_any_ids_can_be_written_one_at_a_time(ids):
    content = b"".join(bytes(BYTE_OF_SYMBOL[symbol] for symbol in byte_pairs.words[i]) for i in ids)
    assert decode(byte_pairs, ids) == content.decode(errors="replace")


def test_a_character_is_written_when_it_is_whole():
    alone = BytePairTokenizer.train([], 256)
    stream = alone.stream()
    first, second, third = encode(alone, "日")
    assert [stream.write(token) for token in (first, second)] == ["", ""]
    assert stream.write(third) == "日"
    assert stream.end() == ""


def test_a_character_that_is_never_finished_is_replaced():
    alone = BytePairTokenizer.train([], 256)
    first, second, _ = encode(alone, "日")
    stream = alone.stream()
    assert stream.write(first) + stream.write(second) == ""
    assert stream.end() == "\ufffd"
    stream = alone.stream()
    assert stream.write(first) + stream.write(*encode(alone, "a")) + stream.end() == "\ufffda"


def test_streams_do_not_mix():
    alone = BytePairTokenizer.train([], 256)
    one, other = alone.stream(), alone.stream()
    one.write(encode(alone, "日")[0])
    assert other.write(*encode(alone, "a")) == "a"


def test_what_is_found_often_is_one_token():
    assert byte_pairs.vocab_size == SIZE
    assert len(encode(byte_pairs, "the cat")) == 2
    assert [byte_pairs.words[i] for i in encode(byte_pairs, "the cat")] == ["the", "Ġcat"]


def test_the_vocabulary_is_as_large_as_asked_or_as_the_text_has_pairs():
    assert BytePairTokenizer.train(["ab"], 1009).vocab_size == 256  # no pair is found twice
    assert BytePairTokenizer.train(["ab ab"], 1009).vocab_size == 257
    assert BytePairTokenizer.train(TEXTS, 263).vocab_size == 263


def test_a_vocabulary_without_room_for_the_bytes_is_refused():
    assert BytePairTokenizer.train(TEXTS, 256).vocab_size == 256
    with pytest.raises(AssertionError, match=r"255 is too small for 256 bytes"):
        BytePairTokenizer.train(TEXTS, 255)


TRAIN = """
import sys
from firstlight.text.text_tokenizers import BytePairTokenizer
print(BytePairTokenizer.train(eval(sys.argv[1]), 397).to_json())
"""


@pytest.mark.slow  # 0.6 s: processes; test_sentence_tokenizers.py tests the same
def test_the_vocabulary_of_byte_pairs_is_the_same_in_every_process():
    texts = ["".join(np.random.default_rng(3).choice(list("abcdeé日 \n"), 1009)) for _ in range(5)]
    trained = {
        subprocess.run(
            [sys.executable, "-c", TRAIN, repr(texts)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}
            | {"TOKENIZERS_PARALLELISM": parallel},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for seed, parallel in (("1", "false"), ("2", "true"), ("3", "true"))
    }
    assert len(trained) == 1
    assert tokenizer_of_json(trained.pop()).words == BytePairTokenizer.train(texts, 397).words


# --- words of a text ---


@given(ANY_TEXT)
def test_any_text_comes_back_from_its_words(text):
    ids = encode(text_words, text)
    assert decode(text_words, ids) == text
    assert text_words.characters_per_token()[ids].sum() == len(text)


def test_a_word_has_the_space_before_it_and_a_mark_and_a_line_break_are_tokens():
    tokenizer = TextWordTokenizer.train(["To be, or not.\n\nANNA. Oh!!! “To be”\n"], None)
    found = [decode(tokenizer, [i]) for i in encode(tokenizer, "To be, or not.\n\nOh!!! “To")]
    assert found == ["To", " be", ",", " or", " not", ".", "\n\n", "O", "h", "!!!", " “", "To"]


def test_a_word_outside_the_vocabulary_is_divided_into_the_longest_tokens_that_spell_it():
    tokenizer = TextWordTokenizer.train(["sun shine sun shine moon"], None, min_frequency=1)
    assert [decode(tokenizer, [i]) for i in encode(tokenizer, "sun sunrise")] == ["sun", " sun", "r", "i", "s", "e"]


def test_the_most_frequent_words_are_kept():
    text = "a b b c c c d d d d\n" * 3
    assert TextWordTokenizer.train([text], 258).words[256:] == ["Ġd", "Ġc"]
    assert TextWordTokenizer.train([text], None, min_frequency=7).words[256:] == ["Ġd", "Ġc"]
    assert TextWordTokenizer.train([text, text], None).words[256:] == ["Ġd", "Ġc", "Ġb"]  # the others are bytes


def test_a_tokenizer_of_words_without_a_byte_is_refused():
    content = json.loads(text_words.to_json())
    vocabulary = content["backend"]["model"]["vocab"]
    vocabulary["Ġsomething"] = vocabulary.pop("a")
    with pytest.raises(UserError, match=r"the saved tokenizer is broken .*1 of the 256 bytes are no tokens"):
        tokenizer_of_json(json.dumps(content))


def test_a_very_long_word_is_encoded_in_pieces():
    text = "€" * 5000
    assert decode(text_words, encode(text_words, text)) == text
    word = "é" * 120
    assert decode(text_words, encode(text_words, word)) == word


# --- words ---


@pytest.fixture
def words() -> Tokenizer:
    return train_word_tokenizer(["the cat sat", "the mat"])[0]


def test_words_are_written_apart_and_a_new_line_for_the_padding_between_texts(words):
    tokenizer = WordText(words)
    assert decode(tokenizer, [PAD_ID, *encode(tokenizer, "The mat, the CAT!"), PAD_ID]) == "\n the mat the cat\n"


def test_a_subword_is_written_to_the_one_before_it():
    tokenizer = WordText(train_subword_tokenizer(["low lower lowest slow"] * 3, vocab_size=17))
    ids = encode(tokenizer, "slowest low")
    assert len(ids) > 2
    assert decode(tokenizer, ids) == " slowest low"


def test_an_unknown_word_is_read_and_never_written(words):
    tokenizer = WordText(words)
    assert encode(tokenizer, "the dog") == [words.words.index("the"), UNKNOWN_ID]
    assert (tokenizer.unknown_id, list(tokenizer.unwritten)) == (UNKNOWN_ID, [UNKNOWN_ID])
    assert tokenizer.characters_per_token() is None


def test_words_are_those_of_the_tokenizer(words):
    tokenizer = writer_of(words)
    assert (tokenizer.words, tokenizer.vocab_size) == (words.words, words.vocab_size)
    assert tokenizer.to_json() == words.to_json()


@pytest.mark.parametrize("tokenizer", [characters, byte_pairs, text_words], ids=["characters", "byte pairs", "words"])
def test_what_keeps_every_character_writes_by_itself(tokenizer):
    assert writer_of(tokenizer) is tokenizer


# --- read back ---

EVERY_KIND = {
    "characters": characters,
    "characters without an unknown symbol": CharacterTokenizer.train(TEXTS, None),
    "byte pairs": byte_pairs,
    "words of a text": text_words,
    "words": train_word_tokenizer(TEXTS)[0],
    "subwords": train_subword_tokenizer(TEXTS, vocab_size=53),
}


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_tokenizer_is_read_back_as_it_was(name):
    tokenizer = EVERY_KIND[name]
    again = tokenizer_of_json(tokenizer.to_json())
    assert type(again) is type(tokenizer)
    assert again.words == tokenizer.words
    assert again.unknown_id == tokenizer.unknown_id
    assert again.encode_batch(TEXTS).ids.tolist() == tokenizer.encode_batch(TEXTS).ids.tolist()
    assert json.loads(again.to_json()) == json.loads(tokenizer.to_json())


@settings(deadline=None, max_examples=31)
@given(ANY_TEXT)
def test_byte_pairs_that_were_read_back_keep_every_character(text):
    again = tokenizer_of_json(byte_pairs.to_json())
    assert decode(again, encode(again, text)) == text


# --- the id before a text ---


def test_a_text_begins_after_the_separator_of_documents():
    assert first_id(characters, 5) == 5
    assert first_id(characters, 0) == 0


def test_a_text_begins_after_a_new_line_where_documents_have_no_separator():
    for tokenizer in (characters, byte_pairs):
        assert decode(tokenizer, [first_id(tokenizer, None)]) == "\n"


def test_a_text_without_new_lines_begins_after_any_token_that_can_be_written():
    assert first_id(CharacterTokenizer.train(["cab"], "?"), None) == 1
    assert first_id(CharacterTokenizer.train(["cab"], None), None) == 0
