import pytest

from firstlight.text.options import TokenizerKind, TokenizerOptions

CHARACTERS, PIECES = TokenizerKind.char, TokenizerKind.subword


@pytest.mark.parametrize(("kind", "expected"), [("word", True), ("subword", False), ("char", False)])
def test_marks_are_words_by_default_where_there_are_words(kind, expected):
    assert TokenizerOptions(kind=kind).punctuation is expected
    assert TokenizerOptions(kind=kind, punctuation=False).punctuation is False
