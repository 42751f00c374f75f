"""The samples: files of the package that do not change, with balanced labels and no text twice."""

import functools
import hashlib
from collections import Counter
from typing import Any

import pytest

from firstlight.data import sources
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.data.sources import GENERATED, SAMPLES, find_source
from firstlight.errors import UserError
from firstlight.files.lines import read_text
from firstlight.translator.corpus import find_pairs
from firstlight.translator.options import PairOptions

PINNED = {
    "generated sample 1": "ae89f7d7597d70f7",
    "generated movies 1.1": "26258e7049ebdc87",
    "generated entailment 2": "110246ac58767b78",
    "generated choices 1": "8f2d7ae2770a1846",
    "generated similarity 1": "25f8ee6716f0d86f",
    "generated pairs 3": "d4924ffcb4ac4cf8",
    "generated names 1": "309676c1700f7c7e",
    "generated plays 1": "0b88b92e7827ec57",
}
TEXT = {"reviews": "text", "movies": "text", "entailment": "premise", "choices": "context", "similarity": "first"}
TEXT |= {"pairs": "en"}
SIZES = {"reviews": (20_000, 2_000), "similarity": (4_000, 500), "pairs": (12_000, 1_000)}  # training, the others
NUM_CLASSES = {"reviews": 5, "entailment": 3, "choices": 4, "similarity": 2}


@functools.cache
def rows_of(name: str) -> dict[str, list[dict[str, Any]]]:
    source = find_source(ReviewOptions(source=SourceKind.sample), sample=name)
    return {split: [row.values for row in source.rows(split, [])] for split in source.splits}


@pytest.mark.parametrize("name", GENERATED)
def test_a_file_that_changes_requires_another_number_so_that_no_cache_is_reused(name: str) -> None:
    files = sorted(SAMPLES.glob(f"{name}/*")) or [SAMPLES / f"{name}.txt.bz2"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    assert digest == PINNED[GENERATED[name]], "increase its version, then pin this digest"


def test_the_samples_have_at_most_one_and_a_half_megabytes() -> None:
    assert sum(file.stat().st_size for file in SAMPLES.rglob("*.bz2")) < 1_500_000


@pytest.mark.parametrize("name", TEXT)
def test_no_text_occurs_twice_and_the_labels_are_balanced(name: str) -> None:
    parts = rows_of(name)
    train, rest = SIZES.get(name, (6_000, 600))
    assert {split: len(rows) for split, rows in parts.items()} == {"train": train, "validation": rest, "test": rest}
    texts = [row[TEXT[name]] for rows in parts.values() for row in rows]
    assert len(set(texts)) == len(texts)
    for rows in parts.values():
        counts = Counter(row["label"] for row in rows if name != "pairs")
        if name in NUM_CLASSES:
            assert list(counts.values()) == [len(rows) // NUM_CLASSES[name]] * NUM_CLASSES[name]
        elif name == "movies":
            assert counts.keys() == {0, 1}
            assert min(counts.values()) > 0.4 * len(rows)


def test_the_names_are_distinct_and_the_plays_have_1_2_million_characters() -> None:
    names = [line.removesuffix("\n") for line in read_text(SAMPLES / "names.txt.bz2")]
    assert len(set(names)) == len(names) == 20_000
    assert all(name.isascii() and name.isalpha() and name.islower() for name in names)
    assert 1_150_000 < sum(map(len, read_text(SAMPLES / "plays.txt.bz2"))) < 1_320_000


def test_a_movie_is_a_review_of_the_same_split_with_its_side() -> None:
    """A network that was trained on the training reviews has seen no movie of the test split."""
    reviews, movies = rows_of("reviews"), rows_of("movies")
    for split, rows in movies.items():
        stars = {row["text"]: row["label"] + 1 for row in reviews[split]}
        assert {(stars[row["text"]], row["label"]) for row in rows} == {(1, 0), (2, 0), (4, 1), (5, 1)}


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "changed"])
def test_a_damaged_file_of_the_package_is_one_line(damage, tmp_path, monkeypatch) -> None:
    (tmp_path / "pairs").mkdir()
    monkeypatch.setattr(sources, "SAMPLES", tmp_path)
    content = (SAMPLES / "pairs" / "train.jsonl.bz2").read_bytes()
    changed = content[:5_000] + bytes([content[5_000] ^ 1]) + content[5_001:]
    file = tmp_path / "pairs" / "train.jsonl.bz2"
    if damage != "missing":
        file.write_bytes({"empty": b"", "cut": content[:-5_000], "changed": changed}[damage])
    source = find_pairs(PairOptions(source=SourceKind.sample))
    with pytest.raises(UserError, match=f"^{file}:"):
        list(source.rows("train", ["en", "de"]))
