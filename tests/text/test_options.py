import pytest

from firstlight.text.options import TokenizerKind, TokenizerOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_size": 2}, r"tokenizer.max_size=2 must be at least 3: \[PAD\], \[UNK\] and a word"),
        ({"min_document_frequency": 0}, "tokenizer.min_document_frequency=0 must be at least 1"),
        ({"kind": TokenizerKind.subword, "max_size": None}, "tokenizer.max_size is not set; byte-pair encoding needs"),
        ({"kind": TokenizerKind.subword, "word_list": "words.txt"}, "tokenizer.word_list names whole words; use it"),
        ({"kind": TokenizerKind.char, "word_list": "words.txt"}, "tokenizer.word_list names whole words; use it"),
        ({"kind": TokenizerKind.char, "unknown_symbol": "??"}, r"tokenizer.unknown_symbol=\?\? must be one character"),
        (
            {"kind": TokenizerKind.char, "unknown_symbol": ""},
            "tokenizer.unknown_symbol= must be one character, or null",
        ),
    ],
)
def test_options_that_make_no_tokenizer_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TokenizerOptions(**options)


@pytest.mark.parametrize("unknown_symbol", [None, "\ufffd", "?", "𝕏"])
def test_an_unknown_symbol_is_one_character_or_none(unknown_symbol):
    options = TokenizerOptions(kind=TokenizerKind.char, max_size=None, unknown_symbol=unknown_symbol)
    assert options.unknown_symbol == unknown_symbol
