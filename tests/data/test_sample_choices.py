"""The generated stories with four endings: correct labels, and no information in the endings without the story."""

import math
from collections import Counter, defaultdict

import pytest

from firstlight.data.samples import choices
from firstlight.data.samples.grammar import load

PARTS = choices.splits(seed=0)
NUM_COUNTED = 1200  # training rows that naive Bayes counts
FACTS: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {fact: load("choices")[fact] for fact in choices.FACTS}


def named(text: str, part: str) -> list[str]:
    """Return the class of each fact in a text. part: context or ending."""
    return [
        name
        for classes in FACTS.values()
        for name, forms in classes.items()
        if any(words in text for words in forms[part])
    ]


def test_every_split_has_the_size_that_it_says_and_equally_many_of_each_label() -> None:
    for name, rows in PARTS.items():
        counts = Counter(row["label"] for row in rows)
        assert counts == dict.fromkeys(range(4), choices.SPLITS[name] // 4)


def test_only_the_ending_of_the_label_agrees_with_both_facts_of_the_story() -> None:
    for row in PARTS["test"][:200]:
        facts = named(str(row["context"]), "context")
        endings = [named(str(row[column]), "ending") for column in choices.ENDINGS]
        assert [ending == facts for ending in endings] == [number == row["label"] for number in range(4)], row
        shared = sorted(len(set(ending) & set(facts)) for ending in endings)
        assert shared == [0, 1, 1, 2], row


def test_the_words_of_an_ending_predict_the_label_no_better_than_chance() -> None:
    """Predict with naive Bayes on the words of each ending, and on how many endings share them."""

    def features(row: choices.Row, number: int) -> set[str]:
        endings = [str(row[column]).rstrip(".").split() for column in choices.ENDINGS]
        return {f"{word} {sum(word in words for words in endings)}" for word in endings[number]}

    counts: defaultdict[bool, Counter[str]] = defaultdict(Counter)
    for row in PARTS["train"][:NUM_COUNTED]:
        for number in range(4):
            counts[number == row["label"]].update(features(row, number))

    def score(row: choices.Row, number: int) -> float:
        found = features(row, number)
        return sum(math.log((counts[True][each] + 1) / (counts[False][each] / 3 + 1)) for each in found)

    rows = PARTS["test"] + PARTS["validation"]
    hits = sum(max(range(4), key=lambda number: score(row, number)) == row["label"] for row in rows)
    assert abs(hits / len(rows) - 1 / 4) < 4 * math.sqrt(3 / 16 / len(rows))


def test_no_story_occurs_twice_within_or_across_splits() -> None:
    stories = [row["context"] for rows in PARTS.values() for row in rows]
    assert len(set(stories)) == len(stories)


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "SPLITS", {"train": 32, "validation": 8, "test": 8})
    first, again, others = (choices.splits(seed) for seed in (3, 3, 4))
    assert first == again
    assert first != others
