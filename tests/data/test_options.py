from typing import Any

import pytest

from firstlight.data import CharacterData, PairData, ReviewData, ReviewTextData
from firstlight.data.corpus_options import CharacterOptions, Preparation
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.masked.data import MaskedReviewData
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.translator.options import PairOptions

CHARACTERS, PIECES = TokenizerKind.char, TokenizerKind.subword


@pytest.mark.parametrize("kind", [CharacterOptions, PairOptions, ReviewOptions])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluation_batch_size": 0}, "data.evaluation_batch_size=0 must be at least 1"),
        ({"context_length": 0}, "data.context_length=0 must be at least 1"),
        ({"max_train_rows": 0}, "data.max_train_rows=0 must be at least 1"),
        ({"validation_fraction": 0.0}, "data.validation_fraction=0.0 must lie between 0 and 0.5"),
        ({"test_fraction": 0.5}, "data.test_fraction=0.5 must "),
        ({"source": SourceKind.sample}, "data.path=mine: data.source=sample does not read a file; remove data.path"),
    ],
)
def test_options_that_no_data_can_have_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**({"path": "mine"} | options))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (CharacterOptions, {"path": None}, "data.path is not set; set it to a text file, as in data.path=my_novel.txt"),
        (CharacterOptions, {"batch_size": 0}, "data.batch_size=0 must be at least 1"),
        (PairOptions, {"batch_tokens": 0}, "data.batch_tokens=0 must be at least 1"),
        (CharacterOptions, {"separator": ""}, "data.separator= must be one character"),
        (PairOptions, {"target_column": "en"}, "data.source_column and data.target_column are both en; change one"),
        (ReviewOptions, {"class_names": ["bad", "good"]}, "data.class_names requires data.labels=classes, not binary"),
    ],
)
def test_options_that_make_no_data_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**({"path": "mine"} | options))


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
