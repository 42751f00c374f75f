import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstlight.text.normalize import normalizer, simplify, words, words_and_marks

ASSIGNED = st.characters(exclude_categories=["Cn", "Cs"])
TEXTS = st.text(st.one_of(ASSIGNED, st.sampled_from("aàÀİß ıΣ'`’‘_-.\u0301\u200d\n\r&;09½٣日क")))


def simplify_in_python(text: str) -> str:
    """Return the simplified text by its definition, letter by letter, as a reference."""
    lower = "".join(letter.lower() for letter in text)
    kept = [c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c)[0] != "M"]
    return re.sub(r"\r\n?|\n", " ", "".join(c for c in kept if c not in "'`’‘\u200c\u200d"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KENYA", "kenya"),
        ("Crème brûlée à la Ångström", "creme brulee a la angstrom"),
        ("it's it`s it’s it‘s", "its its its its"),
        ("zero\u200dwidth\u200cjoiners", "zerowidthjoiners"),
        ("one\ntwo\r\nthree\rfour", "one two three four"),
        ("fish &amp; chips, &quot;good&quot;", 'fish & chips, "good"'),
        ("&amp;quot;twice&amp;quot; &amp;#39;escaped&amp;#39;", '"twice" escaped'),
        ("", ""),
    ],
)
def test_simplify(text, expected):
    assert simplify(text) == expected


def test_a_word_has_two_letters_digits_or_underscores_and_more():
    assert words("a I 5 é x_ 42 ok Привет, 日本語! ½½") == ["x_", "42", "ok", "привет", "日本語", "½½"]
    sentence = "This coffee from Kenya is really good."  # of post 1
    assert words(sentence) == ["this", "coffee", "from", "kenya", "is", "really", "good"]


def test_a_lone_surrogate_separates_words_like_any_other_symbol():
    assert words("good\ud800bad") == ["good", "bad"]
    assert simplify("good\ud800bad") == "good?bad"


@given(st.one_of(TEXTS, st.text(st.characters(max_codepoint=127))))  # there is a shorter way for ASCII
@settings(deadline=None)
def test_words_are_those_of_the_simplified_text(text):
    assert words(text) == re.findall(r"\w\w+\b", simplify(text))


def test_every_assigned_character_is_simplified_as_defined():
    simplification = normalizer()
    assigned = (chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs"))
    assert [c for c in assigned if simplification.normalize_str(c) != simplify_in_python(c)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's a 5/5!!!", ["its", "a", "5", "/", "5", "!!!"]),
        ("hm..... ok", ["hm", "...", "..", "ok"]),
        ("line<br />line &lt;b&gt;bold&lt;/b&gt;", ["line", "line", "bold"]),
        ("a < b, c > d", ["a", "d"]),
        ("Привет, café :)", ["привет", ",", "cafe", ":", ")"]),
        (" \n'`", []),
    ],
)
def test_words_and_marks_keep_single_letters_and_punctuation_and_drop_tags(text, expected):
    assert words_and_marks(text) == expected
