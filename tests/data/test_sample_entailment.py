"""The generated premises and hypotheses: correct labels, and no information in one sentence only."""

import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from firstlight.data import ReviewData
from firstlight.data.samples import entailment
from firstlight.data.samples.grammar import load
from firstlight.errors import UserError

PARTS = entailment.splits(seed=0)
FACETS: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {
    name: load("entailment")[name] for name in entailment.FACETS
}


def facts(premise: str) -> dict[str, str]:
    """Return the class of each facet that a premise names."""
    text = premise[0].lower() + premise[1:].rstrip(".")
    return {
        facet: name
        for facet, classes in FACETS.items()
        for name, forms in classes.items()
        if any(re.search(rf"(^|\s){re.escape(words)}($|,|\s)", text) for words in forms["premise"])
    }


def claim(hypothesis: str) -> tuple[str, str]:
    """Return the facet and the class that a hypothesis states."""
    text = hypothesis.rstrip(".").removeprefix("The person ").removeprefix("is ").removeprefix("does this ")
    for facet, classes in FACETS.items():
        for name, forms in classes.items():
            if text in {form.removeprefix("is ") for form in forms["hypothesis"]}:
                return facet, name
    raise AssertionError(hypothesis)


def test_every_split_has_the_size_that_it_says_and_equally_many_of_each_label() -> None:
    for name, rows in PARTS.items():
        counts = Counter(row["label"] for row in rows)
        assert counts == dict.fromkeys(entailment.LABELS, entailment.SPLITS[name] // 3)


def test_every_label_is_true() -> None:
    for row in PARTS["test"][:300]:
        named, (facet, stated) = facts(row["premise"]), claim(row["hypothesis"])
        assert len(named) == 2, row
        if facet not in named:
            assert row["label"] == "neutral", row
        else:
            assert row["label"] == ("entailment" if named[facet] == stated else "contradiction"), row


def chance_interval(count: int) -> float:
    """Return four standard errors of an accuracy of a third."""
    return 4 * math.sqrt(2 / 9 / count)


@pytest.mark.parametrize("column", ["premise", "hypothesis"])
def test_the_words_of_one_sentence_predict_the_label_no_better_than_chance(column: str) -> None:
    """Predict with naive Bayes on words and, since a bias may be in a whole sentence, on the sentence."""

    def features(row: dict[str, Any]) -> set[str]:
        return {row[column], *row[column].lower().rstrip(".").split()}

    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in PARTS["train"]:
        counts[row["label"]].update(features(row))
    size = len(PARTS["train"]) // 3

    def score(label: str, row: dict[str, Any]) -> float:
        return sum(math.log((counts[label][each] + 1) / (size + 2)) for each in features(row))

    rows = PARTS["test"] + PARTS["validation"]
    hits = sum(max(entailment.LABELS, key=lambda label: score(label, row)) == row["label"] for row in rows)
    assert abs(hits / len(rows) - 1 / 3) < chance_interval(len(rows))


def test_no_premise_occurs_twice_within_or_across_splits() -> None:
    premises = [row["premise"] for rows in PARTS.values() for row in rows]
    assert len(set(premises)) == len(premises)


def test_the_same_seed_gives_the_same_pairs_and_another_seed_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entailment, "SPLITS", {"train": 33, "validation": 9, "test": 9})
    first, again, others = (entailment.splits(seed) for seed in (3, 3, 4))
    assert first == again
    assert first != others


def test_a_column_that_the_sample_does_not_have_is_one_line(tmp_path: Path) -> None:
    columns = ["premise", "conclusion"]
    data = ReviewData(
        source="sample", sample="entailment", text_column=columns, labels="classes", cache_dir=str(tmp_path)
    )
    with pytest.raises(UserError) as error:
        data.prepare_data()
    assert str(error.value) == (
        "sample train:1: the column 'conclusion' does not exist; the columns are premise, hypothesis, label; "
        "set data.text_column to two of them, as in 'data.text_column=[premise,hypothesis]'"
    )
