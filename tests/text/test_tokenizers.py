import re
from collections import Counter

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from firstlight.errors import UserError
from firstlight.text.normalize import simplify
from firstlight.text.tokenizers import PAD, UNK, Tokenizer, train_subword_tokenizer, train_word_tokenizer

TEXTS = [
    "The coffee is good, good, good!",
    "The tea from Kenya isn't good.",
    "A café: the coffee of Kenya.",
    "Weak tea.",
    "",
]
LETTERS = st.sampled_from("abcdéÀΣ'`’_-. \n5½\u0301日")


@pytest.fixture
def word_tokenizer() -> Tokenizer:
    return train_word_tokenizer(TEXTS)


@pytest.fixture(scope="module")
def subword_tokenizer() -> Tokenizer:
    return train_subword_tokenizer(["low lower lowest slow slower new newer newest"] * 11, vocab_size=53)


# --- words ---


def test_words_are_in_order_of_document_frequency_and_then_of_the_alphabet(word_tokenizer):
    several, one = ["the", "coffee", "good", "kenya", "tea"], ["cafe", "from", "is", "isnt", "of", "weak"]
    assert word_tokenizer.words[2:] == several + one


def test_max_size_counts_pad_and_unknown():
    tokenizer = train_word_tokenizer(iter(TEXTS), max_size=5)
    ids = tokenizer.encode_batch(TEXTS)
    assert tokenizer.words == [PAD, UNK, "the", "coffee", "good"] == ["[PAD]", "[UNK]", "the", "coffee", "good"]
    assert (tokenizer.kind, tokenizer.vocab_size, tokenizer.unknown_id) == ("word", 5, 1)
    assert [row.tolist() for row in ids] == [tokenizer.encode(text) for text in TEXTS]
    assert [row.tolist() for row in tokenizer.encode_batch(iter(TEXTS))] == [row.tolist() for row in ids]


def test_an_unknown_word_is_unk_also_where_it_is_spelled_like_a_special_token(word_tokenizer):
    assert word_tokenizer.tokens("[PAD] good a zyzzyva [UNK]") == [UNK, "good", UNK, UNK]
    assert word_tokenizer.encode("[PAD] zyzzyva") == [1, 1]


@given(st.lists(st.text(LETTERS), min_size=1), st.integers(1, 3))
@settings(deadline=None)
def test_the_vocabulary_is_the_one_that_plain_python_counts(texts, minimum):
    frequency = Counter(word for text in texts for word in set(re.findall(r"\w\w+\b", simplify(text))))
    expected = sorted((w for w, n in frequency.items() if n >= minimum), key=lambda w: (-frequency[w], w))
    if expected:
        assert train_word_tokenizer(texts, min_document_frequency=minimum).words[2:] == expected
    else:
        with pytest.raises(UserError):
            train_word_tokenizer(texts, min_document_frequency=minimum)


def test_texts_without_words_are_refused(tokenizer):
    assert all(tokenizer.encode(text) == [] for text in ("", " \n", "a", "?!", "'"))
    with pytest.raises(UserError, match=r"no words; check data\.text_column"):
        train_word_tokenizer(["", "a", "!"])
    with pytest.raises(UserError, match="the training texts have no words"):
        train_subword_tokenizer(["!"], vocab_size=101)


def test_a_minimum_that_no_word_reaches_is_refused():
    with pytest.raises(UserError, match="min_document_frequency=30 removes all words; set it to 3 or less"):
        train_word_tokenizer(TEXTS, min_document_frequency=30)


# --- subwords ---


def test_subwords_spell_their_words(subword_tokenizer):
    tokens = subword_tokenizer.tokens("Newest, slow... nestor wolt!")
    assert " ".join(tokens).replace(" ##", "") == "newest slow nestor wolt"


def test_subwords_respect_the_size(subword_tokenizer):
    letters = len(set("lowernst"))
    assert 2 + 2 * letters < subword_tokenizer.vocab_size <= 53
    assert subword_tokenizer.words[:2] == [PAD, UNK]
    assert train_subword_tokenizer(TEXTS * 11, vocab_size=47).vocab_size == 47


def test_a_letter_too_rare_to_learn_is_left_out():
    tokenizer = train_subword_tokenizer(["plain words"] * 10_007 + ["日本"], vocab_size=101)
    assert not {"日", "本", "##本"} & set(tokenizer.words)


def test_a_size_too_small_for_the_alphabet_is_refused():
    with pytest.raises(UserError, match="max_size=7 is too small for the 5 letters of the texts; set it to 12 or more"):
        train_subword_tokenizer(["abcde"], vocab_size=7)


# --- both kinds ---


@pytest.fixture(params=["word", "subword"])
def tokenizer(request) -> Tokenizer:
    return request.getfixturevalue(f"{request.param}_tokenizer")


def test_entities_are_read_as_the_characters_they_stand_for(tokenizer):
    assert tokenizer.encode("tea&amp;quot;low&lt;good") == tokenizer.encode('tea"low<good')


@given(text=st.text(st.one_of(LETTERS, st.sampled_from("lowernst"))))
@settings(deadline=None)
def test_hugging_face_reads_the_same_ids_from_the_json(text):
    marked = train_word_tokenizer([*TEXTS, "a/b ... !!! <br>"], punctuation=True)
    for tokenizer in (train_word_tokenizer(TEXTS), marked, train_subword_tokenizer(TEXTS * 2, vocab_size=59)):
        assert tokenizers.Tokenizer.from_str(tokenizer.to_json()).encode(text).ids == tokenizer.encode(text)


def test_with_punctuation_marks_are_words_and_still_are_after_json():
    tokenizer = train_word_tokenizer(["5/5!!! a", "no..."], punctuation=True)
    ids = tokenizer.encode_batch(["5/5!!! a", "no..."])
    assert sorted(tokenizer.words[2:]) == ["!!!", "...", "/", "5", "a", "no"]
    assert tokenizer.encode("5/5!!! a") == ids[0].tolist()
    assert Tokenizer.from_json(tokenizer.to_json()).tokens("No... 5!!!") == ["no", "...", "5", "!!!"]


# --- pairs of texts ---

PAIR = ("A cat sat.", "The CAT moved!")


@pytest.mark.parametrize("kind", ["word", "subword"])
def test_a_pair_is_two_texts_with_marks(kind):
    texts = ["a cat sat on the mat", "the cat moved"]
    if kind == "word":
        tokenizer = train_word_tokenizer(texts, pairs=True)
    else:
        tokenizer = train_subword_tokenizer(texts * 3, vocab_size=53, pairs=True)
    assert tokenizer.reads_pairs
    assert tokenizer.words[:5] == ["[PAD]", "[UNK]", "[START]", "[DELIMITER]", "[EXTRACT]"]
    single = [tokenizer.encode((text, "")) for text in PAIR]
    assert single[0][0] == 2
    assert single[0][-2:] == [3, 4]
    assert tokenizer.encode(PAIR) == [2, *single[0][1:-2], 3, *single[1][1:-2], 4]
    assert tokenizer.encode("A cat sat. ||| The CAT moved!") == tokenizer.encode(PAIR)
    assert tokenizer.encode(("[START] a", "[EXTRACT]")).count(4) == 1  # no text contains a mark
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.reads_pairs
    assert again.encode(PAIR) == tokenizer.encode(PAIR)
    assert tokenizers.Tokenizer.from_str(tokenizer.to_json()).encode(*PAIR).ids == tokenizer.encode(PAIR)
    words = tokenizer.words_of(PAIR)
    assert words == ["[START]", "cat", "sat", "[DELIMITER]", "the", "cat", "moved", "[EXTRACT]"]
    assert tokenizer.encode_words(words).ids.tolist() == tokenizer.encode(PAIR)


def test_the_marks_of_pairs_count_as_entries_of_the_vocabulary():
    tokenizer = train_word_tokenizer(["aa bb aa cc", "aa bb"], max_size=6, pairs=True)
    assert tokenizer.words[5:] == ["aa"]


def test_what_is_no_pair_and_what_is_one_are_refused_in_one_line():
    pairs = train_word_tokenizer(["aa bb"], pairs=True)
    for text in ("x" * 50, ("aa",), ("aa", "bb", "cc"), ("aa", 1)):
        with pytest.raises(UserError, match="the network reads pairs of texts") as error:
            pairs.encode(text)
        assert "\n" not in str(error.value)
    singles = train_word_tokenizer(["aa bb"])
    assert not singles.reads_pairs
    with pytest.raises(UserError, match=r"the network reads single texts, not \('aa', 'bb'\); give one text"):
        singles.encode(("aa", "bb"))
