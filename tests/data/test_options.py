from typing import Any

import pytest

from firstlight.data import CharacterData, PairData, ReviewData, ReviewTextData
from firstlight.data.options import ReviewOptions
from firstlight.generator.options import CharacterOptions, Preparation
from firstlight.masked.data import MaskedReviewData
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.translator.options import PairOptions

CHARACTERS, PIECES = TokenizerKind.char, TokenizerKind.subword


@pytest.mark.parametrize(
    ("kind", "tokenizer", "message"),
    [
        (ReviewOptions, {"kind": CHARACTERS}, "tokenizer=char requires a generator; use tokenizer=word or"),
        (PairOptions, {"kind": CHARACTERS}, "tokenizer=char makes sentences too long; use tokenizer=subword or word"),
        (PairOptions, {"kind": PIECES, "max_size": 259}, "max_size=259 is too small for 256 bytes and 4 marks; set it"),
        (CharacterOptions, {"kind": PIECES, "max_size": 255}, "max_size=255 is too small for 256 bytes; set it to 256"),
        (CharacterOptions, {"punctuation": False}, "tokenizer.punctuation=false removes marks, but a generator"),
    ],
)
def test_tokenizers_that_do_not_suit_the_data_are_refused(kind, tokenizer, message):
    with pytest.raises(ValueError, match=message):
        kind(path="mine", tokenizer=TokenizerOptions(**({"kind": TokenizerKind.word} | tokenizer)))


def test_a_separator_must_be_encoded_by_the_tokenizer():
    with pytest.raises(ValueError, match=r"data.separator=\. equals tokenizer.unknown_symbol; change one of them"):
        CharacterOptions(
            path="mine", preparation=Preparation.lines, tokenizer=TokenizerOptions(CHARACTERS, unknown_symbol=".")
        )
    for kind in (PIECES, TokenizerKind.word):
        with pytest.raises(ValueError, match=f"data.separator=¶ must be ASCII for tokenizer={kind.value}; change it"):
            CharacterOptions(path="mine", separator="¶", tokenizer=TokenizerOptions(kind))


@pytest.mark.parametrize("kind", [ReviewData, ReviewTextData, CharacterData, PairData, MaskedReviewData])
@pytest.mark.parametrize("path", [[1], 7, {"text": ["Good."]}], ids=str)
def test_data_in_place_of_the_name_of_a_file_is_refused_with_a_remedy(kind: Any, path: Any) -> None:
    message = rf"{kind.__name__}: path must be the name of a file or folder, not a {type(path).__name__}; give the rows"
    with pytest.raises(TypeError, match=message):
        kind(path=path)
