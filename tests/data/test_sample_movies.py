"""The generated film reviews: short, negative or positive, and never with 3 stars."""

from collections import Counter
from unittest.mock import patch

import pytest

from firstlight.data.samples import movies, reviews


@pytest.fixture(scope="module")
def all_reviews() -> dict[str, list[reviews.Review]]:
    """The reviews from which the film reviews are selected."""
    return reviews.splits(seed=0)


@pytest.fixture(scope="module")
def parts(all_reviews: dict[str, list[reviews.Review]]) -> dict[str, list[reviews.Review]]:
    with patch.object(reviews, "splits", {0: all_reviews}.__getitem__):  # use the generated reviews again
        return movies.splits(seed=0)


@pytest.fixture(scope="module")
def stars_of(all_reviews: dict[str, list[reviews.Review]]) -> dict[str, dict[str, int]]:
    """The labels of all reviews, by split and text."""
    return {name: {str(row["text"]): int(row["label"]) for row in rows} for name, rows in all_reviews.items()}


def test_every_split_has_the_size_that_it_says(parts):
    assert {name: len(rows) for name, rows in parts.items()} == movies.SPLITS


def test_the_labels_are_negative_and_positive_and_about_equal(parts):
    for name, rows in parts.items():
        counts = Counter(row["label"] for row in rows)
        assert counts.keys() == {0, 1}
        assert min(counts.values()) > 0.4 * len(rows), name


def test_no_verdict_is_of_three_stars_and_all_others_have_their_side(parts, stars_of):
    for name, rows in parts.items():
        for row in rows:
            stars = stars_of[name][row["text"]] + 1
            assert stars != 3
            assert row["label"] == {1: 0, 2: 0, 4: 1, 5: 1}[stars]
        assert {stars_of[name][row["text"]] + 1 for row in rows} == {1, 2, 4, 5}


def test_verdicts_are_the_shorter_half_of_the_reviews(parts, stars_of):
    for name, rows in parts.items():
        all_lengths = sorted(len(text.split()) for text in stars_of[name])
        median = all_lengths[len(all_lengths) // 2]
        lengths = [len(row["text"].split()) for row in rows]
        assert max(lengths) == median
        assert min(lengths) == all_lengths[0]


def test_no_text_occurs_twice_within_or_across_splits(parts):
    texts = [row["text"] for rows in parts.values() for row in rows]
    assert len(set(texts)) == len(texts)


def test_the_same_seed_gives_the_same_verdicts_and_another_seed_others(monkeypatch):
    monkeypatch.setattr(reviews, "SPLITS", {"train": 331, "validation": 101, "test": 101})
    first, again, others = (movies.splits(seed) for seed in (3, 3, 4))
    assert first == again
    texts, other_texts = ({row["text"] for rows in each.values() for row in rows} for each in (first, others))
    assert len(texts) > 100
    assert texts.isdisjoint(other_texts)


def test_verdicts_that_change_with_the_reviews_change_their_version_too(parts):
    """The cache identifies a sample by its version."""
    assert movies.VERSION.startswith(f"{reviews.VERSION}.")
