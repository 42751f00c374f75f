import math
import re

import pytest

from firstlight.text.options import TokenizerKind, TokenizerOptions, VectorOptions, VectorsKind

CHARACTERS, PIECES = TokenizerKind.char, TokenizerKind.subword


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_size": 2}, r"tokenizer.max_size=2 must be at least 3, for \[PAD\], \[UNK\] and one word"),
        ({"min_document_frequency": 0}, "tokenizer.min_document_frequency=0 must be at least 1"),
        ({"kind": PIECES, "max_size": None}, "tokenizer.max_size=null: byte-pair encoding requires"),
        ({"kind": CHARACTERS, "unknown_symbol": "??"}, r"tokenizer.unknown_symbol=\?\? must be one character"),
        ({"kind": CHARACTERS, "unknown_symbol": ""}, "tokenizer.unknown_symbol= must be one character, or null"),
    ],
)
def test_options_that_make_no_tokenizer_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TokenizerOptions(**options)


@pytest.mark.parametrize(("kind", "expected"), [("word", True), ("subword", False), ("char", False)])
def test_marks_are_words_by_default_where_there_are_words(kind, expected):
    assert TokenizerOptions(kind=kind).punctuation is expected
    assert TokenizerOptions(kind=kind, punctuation=False).punctuation is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "vectors.window=0 must be at least 1"),
        ({"std": 0.0}, "vectors.std=0.0 must be a finite number above 0, or null"),
        ({"std": math.inf}, "vectors.std=inf must be a finite number above 0, or null"),
        ({"std": math.nan}, "vectors.std=nan must be a finite number above 0, or null"),
        ({"kind": VectorsKind.file}, "vectors=file requires a file; set vectors.path"),
        ({"trained": False}, "vectors.trained=false requires vectors that are not random; set vectors=cooccurrence,"),
        ({"path": "a.txt"}, "vectors=random reads no file; set vectors=file, or remove vectors.path"),
        ({"kind": "cooccurrence", "path": "a.txt"}, "vectors=cooccurrence reads no file; set vectors=file, or remove"),
    ],
)
def test_options_that_make_no_vectors_are_refused(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        VectorOptions(**options)
