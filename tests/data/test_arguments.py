"""Rows that are given to a data module in Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest

from firstlight.data import CharacterData, MaskedReviewData, PairData, ReviewData, ReviewTextData
from firstlight.errors import UserError

TEXTS = [f"it {word} after {number} weeks" for number in range(20) for word in ("broke", "works")]
LABELS = ["neg", "pos"] * 20
FRAME = pd.DataFrame({"text": TEXTS, "label": LABELS})


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def texts_of(data: Any) -> list[str]:
    """Return the texts of all rows in the order in which they are read."""
    data.ensure_setup()
    return data.source.texts(data.options.text_columns, range(len(data.encoded.splits)))


@pytest.mark.parametrize(
    "rows",
    [
        (FRAME,),
        (TEXTS, LABELS),
        (FRAME["text"], np.array(LABELS)),
        (FRAME.to_dict("list"),),
        (FRAME.to_dict("records"),),
        (datasets.Dataset.from_pandas(FRAME),),
    ],
    ids=["frame", "lists", "series", "columns", "records", "dataset"],
)
def test_rows_in_any_form_are_the_rows_of_a_file(rows: tuple[Any, ...], tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    given, read = ReviewData(*rows, labels="classes"), ReviewData(path="rows.csv", labels="classes")
    assert texts_of(given) == texts_of(read) == TEXTS
    assert given.class_names == read.class_names
    assert given.encoded.splits.tolist() == read.encoded.splits.tolist()
    assert ReviewData(*rows, labels="classes").source.fingerprint == given.source.fingerprint


def test_tables_by_split_are_the_splits() -> None:
    tables = {"train": FRAME[:30], "test": FRAME[30:]}
    of_hub = datasets.DatasetDict({name: datasets.Dataset.from_pandas(table) for name, table in tables.items()})
    for given in (tables, of_hub):
        data = ReviewData(given, labels="classes")
        assert texts_of(data) == TEXTS
        assert data.rows("test").tolist() == [*range(30, 40)]


def test_lists_have_the_columns_of_the_options_in_their_order() -> None:
    data = ReviewData(TEXTS, TEXTS[::-1], LABELS, text_column=["premise", "hypothesis"], labels="classes")
    assert texts_of(data)[0] == f"{TEXTS[0]} ||| {TEXTS[-1]}"
    data = PairData(TEXTS, TEXTS[::-1], tokenizer="word")
    data.ensure_setup()
    assert data.texts(np.array([0])) == ([TEXTS[0]], [TEXTS[-1]])
    assert texts_of(MaskedReviewData(TEXTS)) == TEXTS
    assert ReviewTextData(TEXTS).source.texts(["text"], [3]) == [TEXTS[3]]


def test_a_text_is_read_as_a_file() -> None:
    text = "to be or not to be.\n" * 50
    data = CharacterData(text, context_length=8)
    data.ensure_setup()
    assert data.complete_text() == text
    names = CharacterData(["anna", "bob"] * 20, preparation="lines", context_length=8)
    names.ensure_setup()
    assert names.complete_text() == "anna\nbob\n" * 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReviewData("rows.csv"), "the rows must be a table, or lists for text, label, not str; name a file"),
        (lambda: ReviewData(7), "not int"),
        (lambda: ReviewData(FRAME, LABELS), "not DataFrame, list"),
        (lambda: PairData(TEXTS, TEXTS, TEXTS), "lists for en, de, not list, list, list"),
        (lambda: ReviewData(FRAME, path="rows.csv"), "the rows replace path and source; leave these out"),
        (lambda: CharacterData(FRAME), "the text must be a string or a list of lines, not DataFrame"),
        (lambda: CharacterData("novel.txt"), r"novel.txt is a file; name it with path='novel.txt'"),
    ],
)
def test_something_else_than_rows_is_refused(make: Callable[[], Any], message: str) -> None:
    Path("novel.txt").write_text("a text")
    with pytest.raises(TypeError, match=message):
        make()


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^ReviewData: the columns must have .*, not text 1, label 2; correct"):
        ReviewData(["a"], ["b", "c"])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("text", None, "column text holds None, not a text"), ("label", np.nan, "the label in column label is missing")],
)
def test_a_row_is_checked_as_that_of_a_file_and_named_by_its_number(column: str, value: Any, message: str) -> None:
    frame = FRAME.copy()
    frame.loc[5, column] = value
    with pytest.raises(UserError, match=rf"^logs/cache/rows/\w+/train.jsonl:6: {message}"):
        ReviewData(frame, labels="classes").setup()


@pytest.mark.parametrize("kind", [ReviewData, ReviewTextData, CharacterData, PairData, MaskedReviewData])
@pytest.mark.parametrize("path", [[1], 7, {"text": ["Good."]}], ids=str)
def test_data_in_place_of_the_name_of_a_file_is_refused_with_a_remedy(kind: Any, path: Any) -> None:
    message = rf"{kind.__name__}: path must be the name of a file or folder, not a {type(path).__name__}; give the rows"
    with pytest.raises(TypeError, match=message):
        kind(path=path)
