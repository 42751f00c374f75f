from typing import Any

import pytest

from firstlight.data import CharacterData, PairData, ReviewData, ReviewTextData
from firstlight.data.corpus_options import CharacterOptions, Preparation
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.masked.data import MaskedReviewData
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.translator.data_options import PairOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "data.batch_size=0 must be at least 1"),
        ({"evaluation_batch_size": 0}, "data.evaluation_batch_size=0 must be at least 1"),
        ({"context_length": 0}, "data.context_length=0 must be at least 1"),
        ({"max_train_rows": 0}, "data.max_train_rows=0 must be at least 1"),
        ({"validation_fraction": 0.0}, "data.validation_fraction=0.0 must lie between 0 and 0.5"),
        ({"validation_fraction": 0.5}, "data.validation_fraction=0.5 must lie between 0 and 0.5"),
        ({"test_fraction": -0.1}, "data.test_fraction=-0.1 must be at least 0 and below 0.5"),
        ({"test_fraction": 0.5}, "data.test_fraction=0.5 must be at least 0 and below 0.5"),
        ({"separator": ""}, "data.separator= must be one character"),
        ({"separator": ".."}, r"data.separator=.. must be one character"),
        (
            {"preparation": Preparation.lines, "tokenizer": TokenizerOptions(TokenizerKind.char, unknown_symbol=".")},
            r"data.separator=\. equals tokenizer.unknown_symbol; change one of them",
        ),
        (
            {"separator": "¶", "tokenizer": TokenizerOptions(TokenizerKind.subword)},
            "data.separator=¶ must be ASCII for tokenizer=subword; change one of them",
        ),
        (
            {"tokenizer": TokenizerOptions(TokenizerKind.subword, max_size=255)},
            "tokenizer.max_size=255 is too small for 256 bytes; set it to 256 or more",
        ),
        (
            {"separator": "¶", "tokenizer": TokenizerOptions(TokenizerKind.word)},
            "data.separator=¶ must be ASCII for tokenizer=word; change one of them",
        ),
        (
            {"tokenizer": TokenizerOptions(TokenizerKind.word, max_size=255)},
            "tokenizer.max_size=255 is too small for 256 bytes; set it to 256 or more",
        ),
        (
            {"tokenizer": TokenizerOptions(TokenizerKind.word, punctuation=False)},
            "tokenizer.punctuation=false removes marks, but a generator keeps the text; set it to true",
        ),
        (
            {"tokenizer": TokenizerOptions(TokenizerKind.word, word_list="words.txt")},
            "tokenizer.word_list has simplified words, but a generator keeps the text; remove it",
        ),
        (
            {"source": SourceKind.sample},
            "data.path=mine.txt: data.source=sample does not read a file; remove data.path",
        ),
        ({"path": None}, "data.path is not set; set it to a text file, as in data.path=my_novel.txt"),
    ],
)
def test_options_that_make_no_text_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        CharacterOptions(**({"path": "mine.txt"} | options))


def test_a_text_has_a_path_or_a_name_or_is_a_sample():
    for options in ({"path": "mine.txt"}, {"name": "mine"}, {"source": SourceKind.sample}):
        assert CharacterOptions(**options).tokenizer.kind is TokenizerKind.char


def test_reviews_are_not_read_by_characters():
    message = r"tokenizer=char requires a generator; use tokenizer=word or tokenizer=subword"
    with pytest.raises(ValueError, match=message):
        ReviewOptions(tokenizer=TokenizerOptions(kind=TokenizerKind.char))


PIECES = TokenizerKind.subword


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_tokens": 0}, "data.batch_tokens=0 must be at least 1"),
        ({"evaluation_batch_size": 0}, "data.evaluation_batch_size=0 must be at least 1"),
        ({"context_length": 0}, "data.context_length=0 must be at least 1"),
        ({"max_train_rows": 0}, "data.max_train_rows=0 must be at least 1"),
        ({"validation_fraction": 0.0}, "data.validation_fraction=0.0 must lie between 0 and 0.5"),
        ({"validation_fraction": 0.5}, "data.validation_fraction=0.5 must lie between 0 and 0.5"),
        ({"test_fraction": 0.0}, "data.test_fraction=0.0 must lie between 0 and 0.5"),
        ({"test_fraction": 0.5}, "data.test_fraction=0.5 must lie between 0 and 0.5"),
        ({"target_column": "en"}, "data.source_column and data.target_column are both en; change one"),
        (
            {"tokenizer": TokenizerOptions(TokenizerKind.char)},
            "tokenizer=char makes sentences too long; use tokenizer=subword or word for translation",
        ),
        (
            {"tokenizer": TokenizerOptions(word_list="words.txt")},
            "tokenizer.word_list has lower-case words, but translation keeps case; remove it",
        ),
        (
            {"tokenizer": TokenizerOptions(PIECES, max_size=259)},
            "tokenizer.max_size=259 is too small for 256 bytes and 4 marks; set it to 260 or more",
        ),
        ({"source": SourceKind.sample}, "data.path=mine: data.source=sample does not read a file; remove data.path"),
    ],
)
def test_options_that_make_no_pairs_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PairOptions(**({"path": "mine"} | options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"path": "mine", "source": SourceKind.hub},
        {"source": SourceKind.sample},
        {"batch_tokens": 1, "max_train_rows": 1, "context_length": 1},
        {"tokenizer": TokenizerOptions(PIECES, max_size=260)},
        {"tokenizer": TokenizerOptions(TokenizerKind.word, max_size=3)},
        {"tokenizer": TokenizerOptions(TokenizerKind.word, max_size=None)},
    ],
)
def test_options_that_make_pairs_are_taken(options):
    assert PairOptions(**options).source_column == "en"


@pytest.mark.parametrize("kind", [ReviewData, ReviewTextData, CharacterData, PairData, MaskedReviewData])
@pytest.mark.parametrize("path", [[1], 7, {"text": ["Good."]}], ids=str)
def test_data_in_place_of_the_name_of_a_file_is_refused_with_a_remedy(kind: Any, path: Any) -> None:
    message = (
        rf"{kind.__name__}: path must be the name of a file or folder, not a {type(path).__name__}; write it to a file"
    )
    with pytest.raises(TypeError, match=message):
        kind(path=path)
