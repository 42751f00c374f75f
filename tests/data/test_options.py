import pytest

from firstlight.data.options import CharacterOptions, Preparation, ReviewOptions, SourceKind
from firstlight.text.options import TokenizerKind, TokenizerOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "data.batch_size=0 must be at least 1"),
        ({"evaluation_batch_size": 0}, "data.evaluation_batch_size=0 must be at least 1"),
        ({"context_length": 0}, "data.context_length=0 must be at least 1"),
        ({"num_workers": -1}, "data.num_workers=-1 must be at least 0"),
        ({"max_train_rows": 0}, "data.max_train_rows=0 must be at least 1"),
        ({"validation_fraction": 0.0}, "data.validation_fraction=0.0 must lie between 0 and 0.5"),
        ({"validation_fraction": 0.5}, "data.validation_fraction=0.5 must lie between 0 and 0.5"),
        ({"test_fraction": -0.1}, "data.test_fraction=-0.1 must be at least 0 and below 0.5"),
        ({"test_fraction": 0.5}, "data.test_fraction=0.5 must be at least 0 and below 0.5"),
        ({"separator": ""}, "data.separator= must be one character"),
        ({"separator": ".."}, r"data.separator=.. must be one character"),
        (
            {"preparation": Preparation.lines, "tokenizer": TokenizerOptions(TokenizerKind.char, unknown_symbol=".")},
            r"data.separator=\. is tokenizer.unknown_symbol too; change one of them",
        ),
        (
            {"separator": "¶", "tokenizer": TokenizerOptions(TokenizerKind.subword)},
            "data.separator=¶ is several bytes to tokenizer=subword; take ASCII",
        ),
        (
            {"tokenizer": TokenizerOptions(TokenizerKind.subword, max_size=255)},
            "tokenizer.max_size=255 cannot hold the 256 bytes; set it to 256 or more",
        ),
        ({"tokenizer": TokenizerOptions(kind=TokenizerKind.word)}, "tokenizer=word loses the text; use tokenizer=char"),
        ({"source": SourceKind.sample}, "data.source=sample reads nothing, so data.path=mine.txt must be removed"),
        ({"path": None}, "data.path is not set; name a text file, as in data.path=my_novel.txt"),
    ],
)
def test_options_that_make_no_text_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        CharacterOptions(**({"path": "mine.txt"} | options))


def test_a_text_has_a_path_or_a_name_or_is_a_sample():
    for options in ({"path": "mine.txt"}, {"name": "mine"}, {"source": SourceKind.sample}):
        assert CharacterOptions(**options).tokenizer.kind is TokenizerKind.char


def test_reviews_are_not_read_by_characters():
    with pytest.raises(ValueError, match=r"tokenizer=char is for generators; use tokenizer=word or tokenizer=subword"):
        ReviewOptions(tokenizer=TokenizerOptions(kind=TokenizerKind.char))
