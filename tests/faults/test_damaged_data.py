"""Damaged files of data, words and vectors are read, or give a one-line error that names the file."""

import csv
import json
import shutil
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faults.damage import Damage, answered, damaged, damages
from faults.trials import Trials
from firstlight.data import sources
from firstlight.data.corpus import encode_text
from firstlight.data.encoding import encode
from firstlight.data.options import CharacterOptions, Labels, PairOptions, Preparation, ReviewOptions, SourceKind
from firstlight.data.parallel import find_pairs
from firstlight.data.sentence_pairs import encode_pairs
from firstlight.data.sources import find_source
from firstlight.data.text_sources import find_text
from firstlight.files.rows import read_rows, read_text, write_rows
from firstlight.text.tokenizers import load_word_list
from firstlight.text.vectors import read_vectors

DAMAGES = 200  # trials for each format
ENCODED = 60  # trials for each task, which are read and encoded
ENDINGS = ("csv", "tsv", "jsonl", "parquet", "txt", "json")


@pytest.mark.faults("damaged bytes: files of data")
@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_of_a_damaged_file_are_read_or_refused(
    ending: str, trials: Trials, small_data: Path, tmp_path: Path
) -> None:
    path = tmp_path / f"data.{ending}"
    rows = [
        row.values for row in islice(read_rows(small_data / "amazon_reviews" / "test.jsonl", ["text", "label"]), 40)
    ]
    write(path, rows)

    def check(damage: Damage) -> None:
        with damaged(path, damage):
            answered(lambda: list(read_rows(path)))
            answered(lambda: list(read_rows(path, ["text"])))
            if ending == "txt":
                answered(lambda: "".join(read_text(path)))

    trials.examples(damages("value"), check, DAMAGES, f"rows of {ending}")


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".txt":
        path.write_text("".join(" ".join(row["text"].split()) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        write_rows(path, rows)


@pytest.mark.faults("damaged bytes: files of data")
@pytest.mark.parametrize("kind", ["reviews", "pairs", "names", "text", "plays"])
def test_damaged_data_is_encoded_or_refused(kind: str, trials: Trials, small_data: Path, tmp_path: Path) -> None:
    cache = {"cache_dir": str(tmp_path / "cache")}
    file = tmp_path / "data.jsonl" if kind in ("reviews", "pairs") else tmp_path / "data.txt"
    encoded: Callable[[], Any]
    if kind == "reviews":
        first_bytes(small_data / "amazon_reviews" / "validation.jsonl", 30_000, file)
        options = ReviewOptions(path=str(file), labels=Labels.stars, **cache)
        encoded = lambda: encode(find_source(options), options)  # noqa: E731
    elif kind == "pairs":
        first_bytes(small_data / "multi30k" / "validation.jsonl", 10_000, file)
        pair_options = PairOptions(path=str(file), **cache)
        encoded = lambda: encode_pairs(find_pairs(pair_options), pair_options)  # noqa: E731
    else:
        preparation = {"names": Preparation.lines, "text": Preparation.text, "plays": Preparation.plays}[kind]
        source = next((small_data / "shakespeare").glob("*"), None) if kind == "plays" else None
        first_bytes(source or small_data / "names" / "names.txt", 400_000 if kind == "plays" else 5_000, file)
        text_options = CharacterOptions(path=str(file), preparation=preparation, **cache)
        encoded = lambda: encode_text(find_text(text_options), text_options)  # noqa: E731

    def check(damage: Damage) -> None:
        with damaged(file, damage):
            answered(encoded)

    trials.examples(damages("value"), check, ENCODED, f"encoding of {kind}")


@pytest.mark.faults("damaged bytes: files of data")
def test_a_damaged_sample_of_the_package_gives_its_own_rows_or_is_refused(
    trials: Trials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sources.SAMPLES / "entailment", tmp_path / "entailment")
    monkeypatch.setattr(sources, "SAMPLES", tmp_path)
    source = find_source(ReviewOptions(source=SourceKind.sample), sample="entailment")
    rows = [row.values for row in source.rows("test", [])]

    def check(damage: Damage) -> None:
        with damaged(source.files["test"], damage):
            found = answered(lambda: list(source.rows("test", [])))
            if found is not None:  # a file that is written twice has its rows twice
                assert [row.values for row in found] == rows * max(len(found) // len(rows), 1)

    trials.examples(damages(), check, ENCODED, "a sample")


def first_bytes(source: Path, size: int, target: Path) -> None:
    """Copy the first lines of a file, at most `size` bytes."""
    content = source.read_bytes()
    target.write_bytes(content if len(content) <= size else content[:size].rpartition(b"\n")[0] + b"\n")


@pytest.mark.faults("damaged bytes: word lists and vectors")
def test_a_damaged_word_list_is_read_or_refused(trials: Trials, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.txt"
    words = [f"word{index}" for index in range(300)]
    path.write_text("\n".join(["[PAD]", "[UNK]", *map(letters, words)]) + "\n", encoding="utf-8")

    def check(damage: Damage) -> None:
        with damaged(path, damage):
            tokenizer = answered(partial(load_word_list, path))
            if tokenizer is not None:
                tokenizer.encode("some words of a text")

    trials.examples(damages(), check, DAMAGES, "word list")


def letters(word: str) -> str:
    """Return the word with letters in place of its digits."""
    return word.translate(str.maketrans("0123456789", "abcdefghij"))


@pytest.mark.faults("damaged bytes: word lists and vectors")
@pytest.mark.parametrize("ending", ["vec", "txt"])
def test_damaged_vectors_are_read_or_refused(ending: str, trials: Trials, tmp_path: Path) -> None:
    path = tmp_path / f"vectors.{ending}"
    words = [letters(f"w{index}") for index in range(200)]
    values = np.random.default_rng(0).normal(size=(len(words), 7)).round(4)
    header = f"{len(words)} 7\n" if ending == "vec" else ""
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, values.tolist(), strict=True))
    path.write_text(header + "".join(lines), encoding="utf-8")

    def check(damage: Damage) -> None:
        with damaged(path, damage):
            found = answered(lambda: read_vectors(path, words, 7))
            for vector in (found or {}).values():
                assert vector.shape == (7,)
                assert np.isfinite(vector).all()

    trials.examples(damages(), check, DAMAGES, f"vectors {ending}")


@pytest.mark.faults("damaged bytes: files of data")
def test_wide_and_long_files_are_read_in_time(trials: Trials, tmp_path: Path) -> None:
    wide = [f"c{index}" for index in range(100_000)]
    files: dict[str, Callable[[Any], Any]] = {
        "wide.csv": lambda file: csv.writer(file).writerows([wide, wide]),
        "wide-with-one-twice.csv": lambda file: csv.writer(file).writerows([[*wide, "c7"], wide]),
        "wide.jsonl": lambda file: file.write(json.dumps(dict.fromkeys(wide, 1)) + "\n"),
        "quote.csv": lambda file: file.write('text,label\n"' + "a,b\n" * 500_000),
        "long.csv": lambda file: file.write("text,label\n" + "x" * 20_000_000 + ",1\n"),
        "deep.jsonl": lambda file: file.write("[" * 1_000_000 + "\n"),
        "digits.jsonl": lambda file: file.write('{"text": ' + "1" * 1_000_000 + "}\n"),
        "returns.csv": lambda file: file.write("text,label\r" * 10_000),
        "blank.csv": lambda file: file.write("\n" * 500_000),
    }
    for name, fill in files.items():
        path = tmp_path / name
        with path.open("w", newline="") as file:
            fill(file)
        for columns in ([], ["text"], ["nothing like it"]):
            with trials.one(f"{name}, columns {columns}", seconds=15):
                answered(lambda path=path, columns=columns: sum(1 for _ in read_rows(path, columns)))
