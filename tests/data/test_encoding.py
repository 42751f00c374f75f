import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.data import encoding
from firstlight.data.encoding import EncodedTexts, encode
from firstlight.data.options import Labels, ReviewOptions
from firstlight.data.sources import Source, find_source
from firstlight.errors import UserError
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.tokenizers import train_word_tokenizer
from split_folders import Rows, cached

EVERY_WORD = TokenizerOptions(min_document_frequency=1, punctuation=False)


def rows(count: int, word: str = "word", labels: int = 5) -> Rows:
    """Return rows of one common word and one unique word."""
    return [{"text": f"shared {word}{number}", "label": number % labels} for number in range(count)]


def encode_folder(folder: Path, **options: Any) -> EncodedTexts:
    """Return the encoded folder of a test, with a cache next to it."""
    given = {name: options.pop(name) for name in ("tokenizer_given", "label_names") if name in options}
    source, options = source_and_options(folder, **options)
    return encode(source, options, given.get("tokenizer_given"), given.get("label_names"))


def source_and_options(folder: Path, **options: Any) -> tuple[Source, ReviewOptions]:
    defaults = {"path": str(folder), "cache_dir": str(folder.parent / "cache"), "tokenizer": EVERY_WORD}
    reviews = ReviewOptions(**(defaults | options))
    return find_source(reviews), reviews


def texts_of(encoded: EncodedTexts, split: str) -> list[str]:
    words = encoded.tokenizer.words
    return [" ".join(words[token] for token in encoded.ids[row]) for row in encoded.rows_of(split)]


# --- encoding ---


def test_all_rows_are_encoded_split_after_split_in_their_order(write, folder):
    """The vocabulary has the words of the training rows only."""
    write(test=rows(3, "test"), train=rows(7, "train"), validation=rows(2, "valid"))
    encoded = encode_folder(folder)
    assert encoded.splits.tolist() == [0] * 7 + [1] * 2 + [2] * 3
    assert encoded.labels.tolist() == [0, 1, 2, 3, 4, 0, 1, 0, 1, 0, 1, 2]
    assert texts_of(encoded, "train") == [f"shared train{number}" for number in range(7)]
    assert texts_of(encoded, "test") == ["shared [UNK]"] * 3
    assert encoded.rows_of("validation").tolist() == [7, 8]
    assert encoded.label_names == ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]


@pytest.mark.parametrize("values", [["sad", "glad", "mad"], [30, 10, 20], ["30", "10", "20"]])
def test_classes_are_learned_from_words_and_from_numbers(write, folder, values):
    write(train=[{"text": "some text", "label": value} for value in values * 5])
    encoded = encode_folder(folder, labels=Labels.classes)
    assert encoded.label_names == sorted(map(str, values))
    assert [encoded.label_names[label] for label in encoded.labels] == list(map(str, values)) * 5


@pytest.mark.parametrize(("present", "missing"), [("text", "label_column"), ("label", "text_column")])
def test_a_missing_column_is_answered_with_the_option_to_set(write, folder, present, missing):
    write(train=[{"id": 1, present: "tea"}])
    with pytest.raises(UserError, match=f"jsonl:1: .* the columns are id, {present}; set data.{missing}$"):
        encode_folder(folder)


# --- the vocabulary ---


def test_rows_taken_out_of_training_are_not_in_the_vocabulary(write, folder):
    write(train=rows(53))
    encoded = encode_folder(folder, validation_fraction=0.2, test_fraction=0.2)
    of_training = texts_of(encoded, "train")
    assert sorted(encoded.tokenizer.words[3:]) == sorted(text.removeprefix("shared ") for text in of_training)
    assert set(texts_of(encoded, "validation") + texts_of(encoded, "test")) == {"shared [UNK]"}


def test_a_given_tokenizer_is_used_as_it_is_and_a_file_to_be_tested_on_stays_whole(write, folder):
    tokenizer = train_word_tokenizer(["shared cup"])
    write(test=rows(3))
    encoded = encode_folder(folder, tokenizer_given=tokenizer)
    assert encoded.tokenizer.words == tokenizer.words
    assert texts_of(encoded, "test") == ["shared [UNK]"] * 3


# --- splits that the source does not have ---


def test_validation_and_test_are_a_share_of_every_class(write, folder):
    write(train=[{"text": "tea", "label": n} for n, count in enumerate((100, 50, 30, 20, 10)) for _ in range(count)])
    encoded = encode_folder(folder, validation_fraction=0.2, test_fraction=0.1)
    counts = {split: np.bincount(encoded.labels[encoded.rows_of(split)]).tolist() for split in encoding.SPLITS}
    assert counts["validation"] == [20, 10, 6, 4, 2]
    assert counts["test"] == [10, 5, 3, 2, 1]
    assert np.sum(list(counts.values()), axis=0).tolist() == [100, 50, 30, 20, 10]


def test_the_seed_decides_the_splits_and_the_test_rows_stay_the_same_whatever_validation_takes(write, folder):
    write(train=rows(101))
    one, again, other = (encode_folder(folder, split_seed=seed).rows_of("validation").tolist() for seed in (3, 3, 4))
    assert one == again != other
    taken = [encode_folder(folder, validation_fraction=share).rows_of("test").tolist() for share in (0.1, 0.3)]
    assert taken[0] == taken[1]


def test_only_a_split_that_is_missing_is_taken_out_of_training(write, folder):
    write(train=rows(50), validation=rows(7))
    encoded = encode_folder(folder)
    assert encoded.rows_of("validation").tolist() == list(range(50, 57))
    assert len(encoded.rows_of("test")) == 5
    assert set(encoded.rows_of("test")) < set(range(50))


# --- the cache ---


def test_what_is_in_the_cache_is_not_read_again_and_the_ids_stay_on_disk(write, folder):
    write(train=rows(23))
    source, options = source_and_options(folder)
    first = encode(source, options)
    (folder / "train.jsonl").unlink()
    again = encode(source, options)
    arrays = [(each.ids.ids, each.ids.offsets, each.labels, each.splits) for each in (first, again)]
    assert all(map(np.array_equal, *arrays))
    assert isinstance(again.ids.ids, np.memmap)
    again.ids.ids[:] = 0  # the file stays as it is
    assert np.array_equal(encode(source, options).ids.ids, first.ids.ids)
    assert again.tokenizer.words == first.tokenizer.words
    assert again.label_names == first.label_names


# --- errors ---


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "tea", "label": 7}, "label 7 is outside 0 to 4"),
        ({"text": 7, "label": 1}, "column text holds 7, not a text"),
    ],
)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_bad_row_is_refused_with_its_file_and_line(write, folder, split, row, message):
    write(train=rows(5), validation=rows(5))
    with (folder / f"{split}.jsonl").open("a") as file:
        file.write(f"\n{json.dumps(row)}\n")
    with pytest.raises(UserError, match=f"{folder}/{split}.jsonl:7: {message}"):
        encode_folder(folder)
    assert cached(folder) == []


def test_a_class_that_only_validation_has_is_refused_with_its_line(write, folder):
    write(
        train=[{"text": "tea", "label": label} for label in ("sad", "glad")],
        validation=[{"text": "tea", "label": label} for label in ("glad", "mad")],
    )
    message = f"{folder}/validation.jsonl:2: label mad is not a class of the training data: glad, sad"
    with pytest.raises(UserError, match=message):
        encode_folder(folder, labels=Labels.classes)


def test_a_folder_without_training_rows_cannot_be_trained_on(write, folder):
    write(test=rows(5), validation=rows(5))
    with pytest.raises(UserError, match=f"{folder} has no train split; add a file such as train.jsonl"):
        encode_folder(folder)


# --- large sources ---


@pytest.mark.parametrize("kind", ["word", "subword"])
def test_a_large_source_has_the_ids_of_a_small_one(write, folder, monkeypatch, kind):
    """It is read several times, and encoded by several processes."""
    write(train=rows(70, "träin"), validation=rows(9), test=rows(8))
    options = {"tokenizer": TokenizerOptions(kind=TokenizerKind(kind), max_size=40), "deduplicate": True}
    small = encode_folder(folder, cache_dir=str(folder.parent / "small"), **options)
    monkeypatch.setattr(encoding, "LARGE", 0)
    monkeypatch.setattr(encoding, "ROWS_AT_ONCE", 8)
    large = encode_folder(folder, cache_dir=str(folder.parent / "large"), **options)
    assert large.tokenizer.to_json() == small.tokenizer.to_json()
    (one,), (other,) = (
        [each for each in (folder.parent / name / "encoded").iterdir() if each.is_dir()] for name in ("small", "large")
    )
    assert one.name == other.name
    assert (one / "SHA256SUMS").read_text() == (other / "SHA256SUMS").read_text()
