import bz2
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.data import encoding
from firstlight.data.encoding import EncodedTexts, encode
from firstlight.data.options import Labels, ReviewOptions, SourceKind, Truncation
from firstlight.data.sources import Source, find_source
from firstlight.errors import UserError
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.tokenizers import train_word_tokenizer

EVERY_WORD = TokenizerOptions(min_document_frequency=1, punctuation=False)
SRC = Path(__file__).parents[2] / "src"

Rows = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the data of a test."""
    path = tmp_path / "data"
    path.mkdir()
    return path


@pytest.fixture
def write(folder: Path) -> Callable[..., None]:
    """Write the rows of each split as JSONL."""

    def write_splits(**splits: Rows) -> None:
        for split, rows in splits.items():
            (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    return write_splits


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


def cached(folder: Path) -> list[Path]:
    """Return the folders in the cache, complete or not."""
    return sorted((folder.parent / "cache" / "encoded").glob("*"))


def texts_of(encoded: EncodedTexts, split: str) -> list[str]:
    words = encoded.tokenizer.words
    return [" ".join(words[token] for token in encoded.ids[row]) for row in encoded.rows_of(split)]


# --- encoding ---


def test_all_rows_are_encoded_split_after_split_in_their_order(write, folder):
    write(test=rows(3, "test"), train=rows(7, "train"), validation=rows(2, "valid"))
    encoded = encode_folder(folder)
    assert encoded.splits.tolist() == [0] * 7 + [1] * 2 + [2] * 3
    assert encoded.labels.tolist() == [0, 1, 2, 3, 4, 0, 1, 0, 1, 0, 1, 2]
    assert texts_of(encoded, "train") == [f"shared train{number}" for number in range(7)]
    assert texts_of(encoded, "test") == ["shared [UNK]"] * 3
    assert encoded.rows_of("validation").tolist() == [7, 8]
    assert encoded.label_names == ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]


def test_the_columns_may_have_other_names(write, folder):
    write(train=[{"id": 1, "body": "good tea", "score": 5}, {"id": 2, "body": "bad tea", "score": 1}])
    encoded = encode_folder(folder, text_column="body", label_column="score", lowest_label=1)
    assert texts_of(encoded, "train") == ["good tea", "bad tea"]
    assert encoded.labels.tolist() == [4, 0]


@pytest.mark.parametrize("values", [["sad", "glad", "mad"], [30, 10, 20], ["30", "10", "20"]])
def test_classes_are_learned_from_words_and_from_numbers(write, folder, values):
    write(train=[{"text": "some text", "label": value} for value in values * 5])
    encoded = encode_folder(folder, labels=Labels.classes)
    assert encoded.label_names == sorted(map(str, values))
    assert [encoded.label_names[label] for label in encoded.labels] == list(map(str, values)) * 5


def test_an_empty_text_is_encoded_as_nothing(write, folder):
    write(train=[{"text": "", "label": 0}, {"text": "tea", "label": 1}, {"text": "!", "label": 1}])
    assert encode_folder(folder).ids.lengths.tolist() == [0, 1, 0]


def test_the_text_column_is_not_proposed_for_the_labels(write, folder):
    write(train=[{"body text": "tea", "mood": 4}])
    with pytest.raises(UserError, match=r"are body text, mood; .* one of them, as in data.label_column=mood$"):
        encode_folder(folder, text_column="body text")


def test_a_single_row_is_too_few_for_classes(write, folder):
    write(train=[{"text": "tea", "label": "good"}])
    with pytest.raises(UserError, match=r"has only 1 training row; add rows, of 2 or more classes$"):
        encode_folder(folder, labels=Labels.classes)


@pytest.mark.parametrize(
    ("row", "remedy"),
    [
        (
            {"text": "tea", "stars": 4},
            "the column 'label' does not exist; the columns are text, stars; set data.label_column=stars",
        ),
        (
            {"text": "tea", "x": 4},
            "the column 'label' does not exist; the columns are text, x; set data.label_column to one of them, "
            "as in data.label_column=x",
        ),
        (
            {"text": "tea", "stars, 1 to 5": 4},
            "columns are text, stars, 1 to 5; set data.label_column to one of them, as in "
            "\"data.label_column='stars, 1 to 5'\"",
        ),
        ({"text": "tea", "Labels": 4, "stars": 4}, "set data.label_column=Labels"),
        (
            {"text": "tea", "my mood": 4},
            "the columns are text, my mood; set data.label_column to one of them, as in "
            "\"data.label_column='my mood'\"",
        ),
        ({"id": 1, "Body": "tea", "label": 4}, "; the columns are id, Body, label; set data.text_column=Body"),
    ],
)
def test_a_missing_column_is_answered_with_the_option_to_set(write, folder, row, remedy):
    write(train=[row])
    with pytest.raises(UserError, match=f"train.jsonl:1: .*{remedy}$"):
        encode_folder(folder)


# --- the vocabulary ---


def test_the_words_of_validation_and_test_are_not_in_the_vocabulary(write, folder):
    write(train=rows(5, "train"), validation=rows(5, "valid"), test=rows(5, "test"))
    words = encode_folder(folder).tokenizer.words
    assert words == ["[PAD]", "[UNK]", "shared", *(f"train{number}" for number in range(5))]


def test_rows_taken_out_of_training_are_not_in_the_vocabulary(write, folder):
    write(train=rows(53))
    encoded = encode_folder(folder, validation_fraction=0.2, test_fraction=0.2)
    of_training = texts_of(encoded, "train")
    assert sorted(encoded.tokenizer.words[3:]) == sorted(text.removeprefix("shared ") for text in of_training)
    assert set(texts_of(encoded, "validation") + texts_of(encoded, "test")) == {"shared [UNK]"}


def test_a_given_tokenizer_is_used_as_it_is(write, folder):
    tokenizer, _ = train_word_tokenizer(["shared cup"])
    write(test=rows(3))
    encoded = encode_folder(folder, tokenizer_given=tokenizer)
    assert encoded.tokenizer.words == tokenizer.words
    assert texts_of(encoded, "test") == ["shared [UNK]"] * 3


def test_a_word_list_is_the_vocabulary(write, folder, tmp_path):
    (tmp_path / "words.txt").write_text("cup\nshared\n")
    write(train=rows(3))
    options = TokenizerOptions(word_list=str(tmp_path / "words.txt"))
    assert encode_folder(folder, tokenizer=options).tokenizer.words == ["[PAD]", "[UNK]", "cup", "shared"]


def test_subwords_are_trained_on_the_training_rows(write, folder):
    write(train=rows(5, "lower") + rows(5, "lowest"), test=rows(1, "zyx"))
    encoded = encode_folder(folder, tokenizer=TokenizerOptions(kind=TokenizerKind.subword, max_size=61))
    assert encoded.tokenizer.kind == "subword"
    assert "z" not in encoded.tokenizer.words


# --- splits that the source does not have ---


def test_validation_and_test_are_a_share_of_every_class(write, folder):
    write(
        train=[
            {"text": "tea", "label": label} for label, count in enumerate((100, 50, 30, 20, 10)) for _ in range(count)
        ]
    )
    encoded = encode_folder(folder, validation_fraction=0.2, test_fraction=0.1)
    counts = {split: np.bincount(encoded.labels[encoded.rows_of(split)]).tolist() for split in encoding.SPLITS}
    assert counts["validation"] == [20, 10, 6, 4, 2]
    assert counts["test"] == [10, 5, 3, 2, 1]
    assert np.sum(list(counts.values()), axis=0).tolist() == [100, 50, 30, 20, 10]


def test_the_seed_of_the_split_decides_which_rows_are_taken(write, folder):
    write(train=rows(101))
    taken = [encode_folder(folder, split_seed=seed).rows_of("validation").tolist() for seed in (3, 3, 4)]
    assert taken[0] == taken[1] != taken[2]


def test_the_test_rows_stay_the_same_whatever_validation_takes(write, folder):
    write(train=rows(101))
    taken = [encode_folder(folder, validation_fraction=share).rows_of("test").tolist() for share in (0.1, 0.3)]
    assert taken[0] == taken[1]


def test_every_row_is_in_one_split(write, folder):
    write(train=rows(101))
    encoded = encode_folder(folder, validation_fraction=0.49, test_fraction=0.49)
    assert [len(encoded.rows_of(split)) for split in encoding.SPLITS] == [1, 50, 50]


def test_only_a_split_that_is_missing_is_taken_out_of_training(write, folder):
    write(train=rows(50), validation=rows(7))
    encoded = encode_folder(folder)
    assert encoded.rows_of("validation").tolist() == list(range(50, 57))
    assert len(encoded.rows_of("test")) == 5
    assert set(encoded.rows_of("test")) < set(range(50))


def test_a_file_to_be_tested_on_stays_whole(write, folder):
    write(test=rows(11))
    encoded = encode_folder(folder, tokenizer_given=train_word_tokenizer(["shared"])[0])
    assert len(encoded.rows_of("test")) == 11


# --- the cache ---


def test_what_is_in_the_cache_is_not_read_again(write, folder):
    write(train=rows(23))
    source, options = source_and_options(folder)
    first = encode(source, options)
    (folder / "train.jsonl").unlink()
    again = encode(source, options)
    assert np.array_equal(again.ids.ids, first.ids.ids)
    assert np.array_equal(again.ids.offsets, first.ids.offsets)
    assert np.array_equal(again.labels, first.labels)
    assert np.array_equal(again.splits, first.splits)
    assert again.tokenizer.words == first.tokenizer.words
    assert again.label_names == first.label_names


@pytest.mark.parametrize(
    "change",
    [
        {"text_column": "title"},
        {"label_column": "stars"},
        {"labels": Labels.classes},
        {"lowest_label": -1},
        {"validation_fraction": 0.2},
        {"test_fraction": 0.2},
        {"split_seed": 1},
        {"tokenizer": TokenizerOptions(min_document_frequency=2)},
        {"tokenizer": TokenizerOptions(min_document_frequency=1, max_size=11)},
        {"tokenizer": TokenizerOptions(kind=TokenizerKind.subword, max_size=101)},
        {"tokenizer_given": train_word_tokenizer(["shared word"])[0]},
        {"label_names": ["1 star", "2 stars", "3 stars", "4 stars"]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_changes_the_encoding_is_encoded_anew(write, folder, change):
    write(train=[{"title": row["text"], "stars": row["label"], **row} for row in rows(23, labels=4)])
    encode_folder(folder)
    encode_folder(folder, **change)
    assert len(cached(folder)) == 2


def test_another_byte_in_the_source_is_encoded_anew(write, folder):
    write(train=rows(23))
    encode_folder(folder)
    write(train=rows(23, "ward"))
    assert "ward1" in encode_folder(folder).tokenizer.words


def test_another_word_in_the_word_list_is_encoded_anew(write, folder, tmp_path):
    write(train=rows(3))
    options = TokenizerOptions(word_list=str(tmp_path / "words.txt"))
    for words in ("cup\n", "mug\n"):
        (tmp_path / "words.txt").write_text(words)
        assert encode_folder(folder, tokenizer=options).tokenizer.words[2:] == words.split()


def test_another_version_of_the_encoding_is_encoded_anew(write, folder, monkeypatch):
    write(train=rows(3))
    encode_folder(folder)
    monkeypatch.setattr(encoding, "VERSION", 1009)
    encode_folder(folder)
    assert len(cached(folder)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"labels": Labels.binary},
        {"context_length": 7},
        {"truncation": Truncation.tail},
        {"batch_size": 7},
        {"seed": 7},
        {"bucket_by_length": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_does_not_change_the_encoding_shares_it(write, folder, change):
    write(train=rows(23))
    encode_folder(folder, labels=Labels.stars)
    encode_folder(folder, **({"labels": Labels.stars} | change))
    assert len(cached(folder)) == 1


def test_the_ids_stay_on_disk(write, folder):
    write(train=rows(23))
    assert isinstance(encode_folder(folder).ids.ids, np.memmap)


# --- the cache after errors ---


def test_a_mistake_in_the_data_leaves_nothing(write, folder):
    write(train=[*rows(7), {"text": "tea", "label": 7}])
    with pytest.raises(UserError, match="label 7"):
        encode_folder(folder)
    assert cached(folder) == []


ENCODE_BETWEEN_TWO_LINES = """
import sys
from firstlight.data import encoding
from firstlight.data.options import ReviewOptions
from firstlight.data.sources import find_source

def save_when_told(encoded, folder, save=encoding._save):
    save(encoded, folder)
    print("written", flush=True)
    sys.stdin.readline()

encoding._save = save_when_told
options = ReviewOptions(path=sys.argv[1], cache_dir=sys.argv[2])
print(len(encoding.encode(find_source(options), options).labels))
"""


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start a process that encodes the folder and waits just before the end."""
    started: list[subprocess.Popen[str]] = []

    def start_process() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", ENCODE_BETWEEN_TWO_LINES, str(folder), str(folder.parent / "cache")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"},
        )
        started.append(process)
        return process

    yield start_process
    for process in started:
        process.kill()
        process.communicate()


def test_two_processes_may_encode_the_same_at_once(write, folder, start):
    write(train=rows(23))
    processes = [start(), start()]
    for process in processes:
        assert process.stdout.readline() == "written\n"
    assert len(cached(folder)) == 2  # both have written it completely, under their own names
    for process in processes:
        assert process.communicate("continue\n")[0] == "23\n"
        assert process.returncode == 0
    [complete] = cached(folder)
    assert not complete.name.startswith(".")


def test_a_killed_process_leaves_nothing_that_is_taken_for_complete(write, folder, start):
    write(train=rows(23))
    process = start()
    assert process.stdout.readline() == "written\n"
    process.kill()
    process.wait()
    [left] = cached(folder)
    (left / "content" / "ids.npy").write_bytes(b"broken")
    assert len(encode_folder(folder, tokenizer=TokenizerOptions()).labels) == 23
    [complete] = cached(folder)
    assert complete != left


# --- errors ---


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "tea", "label": 7}, "label 7 is outside 0 to 4"),
        ({"text": "tea", "label": -1}, "label -1 is outside 0 to 4"),
        ({"text": "tea", "label": None}, "the label in column label is missing"),
        ({"text": "tea", "label": "good"}, "label good is not a whole number of stars"),
        ({"text": 7, "label": 1}, "column text holds 7, not a text"),
        ({"text": None, "label": 1}, "column text holds None, not a text"),
        ({"text": ["tea"], "label": 1}, r"column text holds \['tea'\], not a text"),
        ({"text": "tea"}, "the column 'label' does not exist; the columns are text"),
    ],
)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_bad_row_is_refused_with_its_file_and_line(write, folder, split, row, message):
    write(train=rows(5), validation=rows(5))
    with (folder / f"{split}.jsonl").open("a") as file:
        file.write(f"\n{json.dumps(row)}\n")
    with pytest.raises(UserError, match=f"{folder}/{split}.jsonl:7: {message}"):
        encode_folder(folder)


def test_a_bad_row_of_csv_is_named_by_the_line_on_which_it_begins(folder):
    (folder / "train.csv").write_text('text,label\n"two\nlines",1\ntea,7\n')
    with pytest.raises(UserError, match=f"{folder}/train.csv:4: label 7 is outside"):
        encode_folder(folder)


def test_a_bad_row_of_the_sample_is_named_by_its_number(tmp_path):
    file = tmp_path / "train.jsonl.bz2"
    file.write_bytes(bz2.compress(b'{"text": "tea", "label": 1}\n{"text": "tea", "label": 7}\n'))
    source, options = source_and_options(tmp_path / "data", path=None, source=SourceKind.sample)
    with pytest.raises(UserError, match="sample train:2: label 7 is outside"):
        encode(dataclasses.replace(source, files={"train": file}), options)


def test_a_class_that_only_validation_has_is_refused_with_its_line(write, folder):
    write(
        train=[{"text": "tea", "label": label} for label in ("sad", "glad")],
        validation=[{"text": "tea", "label": label} for label in ("glad", "mad")],
    )
    message = f"{folder}/validation.jsonl:2: label mad is not a class of the training data: glad, sad"
    with pytest.raises(UserError, match=message):
        encode_folder(folder, labels=Labels.classes)


def test_a_class_that_the_trained_network_does_not_know_is_refused(write, folder):
    write(test=[{"text": "tea", "label": label} for label in ("glad", "mad")])
    tokenizer, _ = train_word_tokenizer(["tea"])
    with pytest.raises(UserError, match=r"test.jsonl:2: label mad is not a class of the training data: glad, sad"):
        encode_folder(folder, labels=Labels.classes, tokenizer_given=tokenizer, label_names=["glad", "sad"])


def test_a_folder_without_training_rows_cannot_be_trained_on(write, folder):
    write(test=rows(5), validation=rows(5))
    with pytest.raises(UserError, match=f"{folder} has no train split; add a file such as train.jsonl"):
        encode_folder(folder)


def test_texts_without_words_are_refused(write, folder):
    write(train=[{"text": "!", "label": 0}, {"text": "?", "label": 1}])
    with pytest.raises(UserError, match=r"the training texts have no words"):
        encode_folder(folder)
