"""Equal rows in several splits are counted, and removed if the user asks for it."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.data import CharacterData, PairData, ReviewData, ReviewTextData
from firstlight.data.store import SPLITS, number_of, overlaps
from firstlight.errors import UserError
from firstlight.files.rows import write_rows

WORDS = [f"{a}{b}" for a in ("am", "bir", "ced", "dai", "el", "fer") for b in ("ber", "ch", "sy")]


def text(number: int) -> str:
    return f"{WORDS[number % 18]} {WORDS[number // 18]} and {WORDS[(number * 5) % 18]}"


def test_rows_in_several_splits_are_counted() -> None:
    rows = ["a  b", "c", "d", "e", "A b", "x", "C", "é", "a B", "E\u0301", "y"]
    splits = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    sentence = overlaps(map(number_of, rows), splits, remove=False)
    assert "2 of 3 test rows are also validation rows" in sentence
    assert "1 of 3 test rows are also training rows" in sentence
    assert "2 of 4 validation rows are also training rows" in sentence
    assert splits.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]


def test_rows_are_removed_from_the_earlier_split_and_the_test_is_kept() -> None:
    rows = ["a  b", "c", "d", "c", "A b", "x", "C", "x", "a B", "y", "y"]
    splits = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    assert overlaps(map(number_of, rows), splits, remove=True) == ""
    assert splits.tolist() == [-1, -1, 0, -1, -1, 1, 1, 1, 2, 2, 2]
    assert overlaps(map(number_of, rows), splits, remove=False) == ""


def test_all_texts_of_a_row_must_be_equal() -> None:
    splits = np.array([0, 2])
    assert overlaps(map(number_of, [("a", "b"), ("a", "c")]), splits, remove=False) == ""
    assert overlaps(map(number_of, [("a", "b"), ("A", "b")]), splits, remove=False).startswith("1 of 1 test rows")


def splits_of(folder: Path, names: tuple[str, str]) -> None:
    """Write splits of which 7 of 20 test rows and 3 of 20 validation rows are also training rows."""
    numbers = {"train": range(100), "validation": range(97, 117), "test": [*range(7), *range(117, 130)]}
    for split, chosen in numbers.items():
        values = [(text(number), text(number + 1) if names[1] == "de" else number % 5) for number in chosen]
        write_rows(folder / f"{split}.jsonl", [dict(zip(names, row, strict=True)) for row in values])


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("kind", [ReviewData, ReviewTextData, PairData])
def test_each_kind_of_data_warns_and_removes(kind: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    splits_of(tmp_path, ("en", "de") if kind is PairData else ("text", "label"))
    labels = {"labels": "stars"} if kind is ReviewData else {}
    options = {"path": str(tmp_path), "cache_dir": str(tmp_path / "cache"), "tokenizer": "word", **labels}
    for _ in range(2):  # the second time from the cache
        caplog.clear()
        data = kind(**options)
        data.ensure_setup()
        (line,) = warnings_of(caplog)
        assert line == (
            f"{tmp_path}: 7 of 20 test rows are also training rows; 3 of 20 validation rows are also training rows; "
            "set data.deduplicate=true to remove them from the earlier split"
        )
    caplog.clear()
    data = kind(**options, deduplicate=True)
    data.ensure_setup()
    assert not warnings_of(caplog)
    encoded = data.corpus if kind is ReviewTextData else data.encoded
    assert [len(encoded.rows_of(split)) for split in SPLITS] == [90, 20, 20]


def test_documents_of_a_text_are_counted_and_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "names.txt").write_text("".join(f"{text(number % 60)}\n" for number in range(240)))
    options = {"path": str(tmp_path / "names.txt"), "preparation": "lines", "cache_dir": str(tmp_path / "cache")}
    data = CharacterData(**options, validation_fraction=0.1)
    data.setup()
    assert "24 of 24 validation rows are also training rows" in caplog.text
    caplog.clear()
    data = CharacterData(**options, validation_fraction=0.1, deduplicate=True)
    data.setup()
    assert not warnings_of(caplog)
    documents = {split: {data.corpus.ids[row].tobytes() for row in data.corpus.rows_of(split)} for split in SPLITS}
    assert not documents["train"] & documents["validation"]
    assert len(documents["train"] | documents["validation"]) == 60


def test_data_that_deduplication_empties_is_refused(tmp_path: Path) -> None:
    rows = [{"text": text(number), "label": number % 5} for number in range(40)]
    for split in SPLITS:
        write_rows(tmp_path / f"{split}.jsonl", rows)
    data = ReviewData(path=str(tmp_path), labels="stars", cache_dir=str(tmp_path / "cache"), deduplicate=True)
    with pytest.raises(UserError, match="removes every training row; set it to false"):
        data.prepare_data()


# --- max_train_rows ---


@pytest.mark.parametrize("kind", [ReviewData, ReviewTextData, PairData])
def test_fewer_training_rows_are_drawn_once_and_the_vocabulary_is_theirs(kind: Any, tmp_path: Path) -> None:
    words = [f"word{chr(97 + n // 10)}{chr(97 + n % 10)}" for n in range(90)]  # words for every tokenizer
    rows = [{"text": f"{word} of", "en": "of", "de": word, "label": n % 2 * 4} for n, word in enumerate(words)]
    for split in SPLITS:
        write_rows(tmp_path / f"{split}.jsonl", rows)
    options = {"tokenizer": {"kind": "word", "min_document_frequency": 1}, "context_length": 16, "max_train_rows": 7}

    def opened(**others: int) -> Any:
        data = kind(path=str(tmp_path), cache_dir=str(tmp_path / "cache"), **options | others)
        data.ensure_setup()
        return data

    data = opened()
    kept = data._documents["train"] if kind is ReviewTextData else data.rows("train")
    assert len(kept) == 7
    if kind is not ReviewTextData:  # a generator keeps the first texts
        assert kept.tolist() == sorted(kept) == opened(seed=2).rows("train").tolist()
        assert kept.tolist() != opened(split_seed=2).rows("train").tolist()
        assert kept[0] < 30 < 60 < kept[-1]
        assert [len(data.rows(split)) for split in ("validation", "test")] == [90, 90]
    known = {word.strip("▁Ġ ") for word in data.tokenizer.words}
    assert {word for word in known if word.startswith("word")} == {words[row] for row in kept}
