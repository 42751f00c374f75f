"""Damaged files of data, words and vectors are read, or give a one-line error that names the file."""

import csv
import gzip
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from faults.damage import answered, try_damages
from faults.encoders import encoder
from faults.trials import Trials, drawn
from firstlight.data import ReviewData, sources
from firstlight.data.batches import Rows
from firstlight.data.labels import alike
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.data.sources import find_source
from firstlight.data.store import SPLITS, number_of, overlaps
from firstlight.data.target_encoding import NgramTargetEncoding
from firstlight.errors import UserError
from firstlight.files.lines import read_text
from firstlight.files.rows import read_rows, write_rows
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.text.vectors import read_vectors

DAMAGES = 200  # trials for each format
ENCODED = 60  # trials for each task, which are read and encoded
OVERLAPS = 40  # divisions of rows into splits that share texts
ENDINGS = ("csv", "tsv", "jsonl", "parquet", "txt", "json")


@pytest.mark.faults("damaged bytes: files of data")
@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_of_a_damaged_file_are_read_or_refused(ending, trials, small_data, tmp_path) -> None:
    path = tmp_path / f"data.{ending}"
    rows = [
        row.values for row in islice(read_rows(small_data / "amazon_reviews" / "test.jsonl", ["text", "label"]), 40)
    ]
    write(path, rows)

    def use() -> None:
        answered(lambda: list(read_rows(path)))
        answered(lambda: list(read_rows(path, ["text"])))
        if ending == "txt":
            answered(lambda: "".join(read_text(path)))

    try_damages(trials, path, use, DAMAGES, f"rows of {ending}", "value")


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".txt":
        path.write_text("".join(" ".join(row["text"].split()) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        write_rows(path, rows)


@pytest.mark.faults("damaged bytes: files of data")
@pytest.mark.parametrize("kind", ["reviews", "pairs", "names", "text", "plays"])
def test_damaged_data_is_encoded_or_refused(kind: str, trials: Trials, small_data: Path, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl" if kind in ("reviews", "pairs") else tmp_path / "data.txt"
    play = next((small_data / "shakespeare").glob("*"), None) if kind == "plays" else None
    source, size = {
        "reviews": (small_data / "amazon_reviews" / "validation.jsonl", 30_000),
        "pairs": (small_data / "multi30k" / "validation.jsonl", 10_000),
        "plays": (play or small_data / "names" / "names.txt", 400_000),
    }.get(kind, (small_data / "names" / "names.txt", 5_000))
    first_bytes(source, size, file)
    encoded = encoder(kind, file, tmp_path / "cache")
    try_damages(trials, file, lambda: answered(encoded), ENCODED, f"encoding of {kind}", "value")


@pytest.mark.faults("damaged bytes: files of data")
def test_a_damaged_sample_of_the_package_gives_its_own_rows_or_is_refused(trials, tmp_path, monkeypatch) -> None:
    shutil.copytree(sources.SAMPLES / "entailment", tmp_path / "entailment")
    monkeypatch.setattr(sources, "SAMPLES", tmp_path)
    source = find_source(ReviewOptions(source=SourceKind.sample), sample="entailment")
    rows = [row.values for row in source.rows("test", [])]

    def use() -> None:
        found = answered(lambda: list(source.rows("test", [])))
        if found is not None:  # a file that is written twice has its rows twice
            assert [row.values for row in found] == rows * max(len(found) // len(rows), 1)

    try_damages(trials, source.files["test"], use, ENCODED, "a sample")


def first_bytes(source: Path, size: int, target: Path) -> None:
    """Copy the first lines of a file, at most `size` bytes."""
    content = source.read_bytes()
    target.write_bytes(content if len(content) <= size else content[:size].rpartition(b"\n")[0] + b"\n")


def letters(word: str) -> str:
    """Return the word with letters in place of its digits."""
    return word.translate(str.maketrans("0123456789", "abcdefghij"))


@pytest.mark.faults("damaged bytes: word vectors")
@pytest.mark.parametrize("ending", ["vec", "txt"])
def test_damaged_vectors_are_read_or_refused(ending: str, trials: Trials, tmp_path: Path) -> None:
    path = tmp_path / f"vectors.{ending}"
    words = [letters(f"w{index}") for index in range(200)]
    values = np.random.default_rng(0).normal(size=(len(words), 7)).round(4)
    header = f"{len(words)} 7\n" if ending == "vec" else ""
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, values.tolist(), strict=True))
    path.write_text(header + "".join(lines), encoding="utf-8")

    def use() -> None:
        found = answered(lambda: read_vectors(path, words, 7))
        for vector in (found or {}).values():
            assert vector.shape == (7,)
            assert np.isfinite(vector).all()

    try_damages(trials, path, use, DAMAGES, f"vectors {ending}")


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


@pytest.mark.faults("overlapping splits and training rows")
def test_overlapping_splits_are_counted_and_removed(trials: Trials, small_data: Path) -> None:
    rows_of_file = read_rows(small_data / "amazon_reviews" / "train.jsonl", ["text"])
    texts = [row.values["text"] for row in islice(rows_of_file, 60)]
    names = ("training", "validation", "test")
    for number in drawn(range(10_000), "overlapping splits", OVERLAPS):
        with trials.one(f"division {number}"):
            random = np.random.default_rng(number)
            rows = [texts[i].upper() if i % 2 else f" {texts[i]} " for i in random.integers(0, 60, 80)]
            rows[0], splits = "a text that is nowhere else", random.integers(0, 3, 80)
            splits[:3] = 0, 1, 2
            before = splits.copy()
            own = {split: {rows[i] for i in np.flatnonzero(before == split)} for split in range(3)}
            sentence = overlaps(map(number_of, rows), splits, remove=False)
            for split, other in ((2, 1), (2, 0), (1, 0)):
                both = sum(rows[i] in own[other] for i in np.flatnonzero(before == split))
                part = f"{both} of {(before == split).sum()} {names[split]} rows are also {names[other]} rows"
                assert (part in sentence) == (both > 0), (part, sentence)
            assert overlaps(map(number_of, rows), splits, remove=True) == ""
            assert overlaps(map(number_of, rows), splits, remove=False) == ""
            assert (splits[before == 2] == 2).all()


@pytest.mark.faults("overlapping splits and training rows")
def test_the_target_encoding_of_a_row_does_not_depend_on_its_class(trials, small_data, tmp_path) -> None:
    rows_of_file = read_rows(small_data / "amazon_reviews" / "train.jsonl", ["text", "label"])
    rows = [row.values for row in islice(rows_of_file, 80)]
    for split in SPLITS:
        write_rows(tmp_path / f"{split}.jsonl", rows)
    data = ReviewData(path=str(tmp_path), labels="stars", target_encoding=True, cache_dir=str(tmp_path / "cache"))
    data.ensure_setup()
    table, every = data.table, np.arange(80)

    def features(row: int, star: int, *, is_own: bool) -> torch.Tensor:
        """Return the features of a training row after all rows were counted, this one with a certain class."""
        table.targets[row] = star
        table.target_encoding = NgramTargetEncoding(data.tokenizer.vocab_size, 1000, 5, 5.0)
        counted = table(data.lookup()[every])
        table.target_encoding.count(lambda: [counted[:3]])
        table.target_encoding.scale.fill_(1.0)
        return table(Rows(data.lookup().lengths, 2**31, are_counted=is_own)[np.array([row])]).features

    for row in drawn(range(80), "target encoding of a row", 20):
        with trials.one(f"row {row}"):
            low, high = (features(row, star, is_own=True) for star in (0, 4))
            assert torch.allclose(low, high, atol=1e-4)
            assert (features(row, 0, is_own=False) - features(row, 4, is_own=False)).abs().max() > 0.1


@pytest.mark.faults("odd labels")
def test_labels_that_look_the_same_are_named_and_others_are_not(trials: Trials) -> None:
    changes: dict[str, Callable[[str], str]] = {
        "upper case": str.upper,
        "a zero-width space": lambda label: label + "\u200b",
        "a decomposed accent": lambda label: label.replace("\u00e9", "e\u0301"),
        "two spaces": lambda label: label.replace(" ", "  "),
        "another digit": lambda label: label + "0" if "." in label else label,
    }
    words = ["pos", "neg", "caf\u00e9 au lait", "very good", "x", "stra\u00dfe", "0.5", "class a"]
    cases = [(word, name) for word in words for name in changes if changes[name](word) != word]
    for word, name in drawn(cases, "labels that look the same"):
        with trials.one(f"{word!r} with {name}"):
            others = [each for each in words if each != word]
            assert alike([*others, word]) is None
            assert ascii(changes[name](word)) in str(alike([*others, word, changes[name](word)]))


@pytest.mark.faults("bombs and sparse files")
def test_bombs_and_sparse_files_are_refused_in_bounded_memory(trials: Trials, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(100_000_000))
    unpacked = gzip.compress(bytes(50_000_000), 1)
    for name in ("bomb.gz", "bomb.csv"):
        (tmp_path / name).write_bytes(unpacked)
    for name in ("bomb.zip", "bomb.jsonl", "bomb.parquet", "best.ckpt"):
        (tmp_path / name).write_bytes(packed.getvalue())
    for name in ("sparse.csv", "sparse.txt", "sparse.jsonl", "sparse.parquet"):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, 2**31)
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), pa.array(["x" * 20_000_000]))
    parquet.write_table(pa.table({"text": repeated}), tmp_path / "repeated.parquet", compression="zstd")
    for path in sorted({*tmp_path.iterdir()} - {tmp_path / "best.ckpt"}):
        with trials.one(f"rows of {path.name}", memory=2**30), pytest.raises(UserError):
            list(read_rows(path))
    with trials.one("a checkpoint", seconds=5, memory=2**28), pytest.raises(UserError, match="larger than the file"):
        read_checkpoint(tmp_path / "best.ckpt")
    for path in map(Path, ("/proc/self/mem", "/proc/self/maps", "/proc/cpuinfo")):
        if path.exists():
            with trials.one(str(path)), pytest.raises(UserError, match="not a regular file"):
                find_source(ReviewOptions(path=str(path)))
