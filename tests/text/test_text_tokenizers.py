import json

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from firstlight.errors import UserError
from firstlight.text.options import TokenizerOptions
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import (
    BYTE_OF_SYMBOL,
    BytePairTokenizer,
    CharacterTokenizer,
    PieceDecoder,
    TextTokenizer,
    TextWordTokenizer,
    decode,
    first_id,
)
from firstlight.text.tokenizers import PAD_ID, UNKNOWN_ID, Tokenizer, train_subword_tokenizer, train_word_tokenizer

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
    assert tokenizer.characters_per_token().tolist() == [1] * 8
    without = CharacterTokenizer.train(["beda"], None)
    assert (without.words, without.unknown_id, without.unwritten) == (["a", "b", "d", "e"], None, [])


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


# --- byte pairs ---


def test_the_symbols_of_bytes_are_the_alphabet_of_hugging_face():
    assert sorted(BYTE_OF_SYMBOL) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert sorted(BYTE_OF_SYMBOL.values()) == list(range(256))


@given(ANY_TEXT)
def test_any_text_comes_back_from_its_tokens(text):
    for tokenizer in (byte_pairs, text_words):
        ids = encode(tokenizer, text)
        assert decode(tokenizer, ids) == text
        assert tokenizer.characters_per_token()[ids].sum() == len(text)


def test_a_character_is_written_when_it_is_whole_and_replaced_if_it_never_is():
    alone = BytePairTokenizer.train([], 256)
    whole, interrupted = PieceDecoder(), PieceDecoder()
    first, second, third = [alone.pieces[i] for i in encode(alone, "日")]
    assert [whole.decode(piece) for piece in (first, second, third)] == ["", "", "日"]
    assert whole.decode(first) + whole.decode(b"", final=True) == "\ufffd"
    assert interrupted.decode(first) + interrupted.decode(b"a") == "\ufffda"


def test_the_vocabulary_is_as_large_as_asked_or_as_the_text_has_pairs():
    assert BytePairTokenizer.train(["ab"], 1009).vocab_size == 256  # no pair is found twice
    assert BytePairTokenizer.train(["ab ab"], 1009).vocab_size == 257
    assert BytePairTokenizer.train(TEXTS, 263).vocab_size == 263


# --- words of a text ---


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
    return train_word_tokenizer(["the cat sat", "the mat"])


def test_words_are_written_apart_and_a_new_line_for_the_padding_between_texts(words):
    assert decode(words, [PAD_ID, *encode(words, "The mat, the CAT!"), PAD_ID]) == "\n the mat the cat\n"


def test_a_subword_is_written_to_the_one_before_it():
    tokenizer = train_subword_tokenizer(["low lower lowest slow"] * 3, vocab_size=17)
    ids = encode(tokenizer, "slowest low")
    assert len(ids) > 2
    assert decode(tokenizer, ids) == " slowest low"


def test_an_unknown_word_is_read_and_never_written(words):
    assert encode(words, "the dog") == [words.words.index("the"), UNKNOWN_ID]
    assert (words.unknown_id, list(words.unwritten)) == (UNKNOWN_ID, [UNKNOWN_ID])
    assert words.characters_per_token() is None


# --- read back ---

EVERY_KIND = {
    "characters": characters,
    "characters without an unknown symbol": CharacterTokenizer.train(TEXTS, None),
    "byte pairs": byte_pairs,
    "words of a text": text_words,
    "words": train_word_tokenizer(TEXTS),
    "subwords": train_subword_tokenizer(TEXTS, vocab_size=53),
    "words of sentences": SentenceTokenizer.train(TEXTS, TokenizerOptions(min_document_frequency=1)),
    "pieces of sentences": SentenceTokenizer.train(TEXTS, TokenizerOptions("subword", max_size=311)),
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


# --- the id before a text ---


def test_a_text_begins_after_the_separator_of_documents():
    assert first_id(characters, 5) == 5
    for tokenizer in (characters, byte_pairs):
        assert decode(tokenizer, [first_id(tokenizer, None)]) == "\n"  # without a separator
    assert first_id(CharacterTokenizer.train(["cab"], "?"), None) == 1  # a token that can be written
    assert first_id(CharacterTokenizer.train(["cab"], None), None) == 0
