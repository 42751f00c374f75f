"""The pairs of contrasts.csv are what docs/data.md says, and contrasts.py scores hand-made answers right."""

import json
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from firstlight.text.normalize import words_and_marks
from tests_support import ROOT

sys.path.append(str(ROOT / "benchmarks"))

import contrasts
from result_tables.comparisons import compare, interval, value_of
from result_tables.plan import Column

PAIRS = contrasts.read_contrasts(contrasts.FILE)
BOTH = list(zip(PAIRS.texts[::2], PAIRS.texts[1::2], strict=True))
MOST_EDITS = 4  # words that are inserted, removed or replaced


def edits(first: list[str], second: list[str]) -> int:
    """Return the edit distance of two lists of words (Levenshtein 1966)."""
    costs = list(range(len(second) + 1))
    for row, word in enumerate(first, 1):
        diagonal, costs[0] = costs[0], row
        for place, other in enumerate(second, 1):
            least = min(costs[place] + 1, costs[place - 1] + 1, diagonal + (word != other))
            diagonal, costs[place] = costs[place], least
    return costs[-1]


def test_each_pair_has_both_labels_and_no_text_stands_twice() -> None:
    assert len(BOTH) >= 315
    assert (PAIRS.labels.reshape(-1, 2).sum(axis=1) == 1).all()
    assert len({" ".join(words_and_marks(text)) for text in PAIRS.texts}) == len(PAIRS.texts)
    assert all(5 <= len(text.split()) <= 40 for text in PAIRS.texts)


def test_each_category_has_products_and_films() -> None:
    counts = Counter(zip(PAIRS.categories, PAIRS.domains, strict=True))
    assert len(set(PAIRS.categories)) == 11
    assert {domain for _, domain in counts} == {"products", "films"}
    assert min(Counter(PAIRS.categories).values()) >= 20
    assert all(counts[name, "products"] == counts[name, "films"] for name in set(PAIRS.categories))


def test_the_texts_of_a_pair_differ_in_few_words_or_only_in_their_order() -> None:
    for category, (one, two) in zip(PAIRS.categories, BOTH, strict=True):
        first, second = words_and_marks(one), words_and_marks(two)
        is_reordered = Counter(first) == Counter(second)
        assert is_reordered if category == "order" else is_reordered or edits(first, second) <= MOST_EDITS, (one, two)


def model(name: str, *answers: np.ndarray) -> contrasts.Model:
    return contrasts.Model(name, np.stack([contrasts.hits_of(each, PAIRS) for each in answers]))


def test_scores_of_hand_made_answers() -> None:
    positive = np.ones(len(PAIRS.labels), np.int64)
    is_film = np.repeat(np.array(PAIRS.domains) == "films", 2)
    of_films = np.where(is_film, PAIRS.labels, 1)
    found = contrasts.report_of([model("half", of_films, positive), model("positive", positive)], PAIRS)
    half, always = found["models"]
    assert half["runs"] == 2
    assert [half["pairs"][name]["value"] for name in ("all", "films", "products")] == pytest.approx([0.25, 0.5, 0])
    assert half["texts"]["irony"]["value"] == pytest.approx(0.5 + 0.5 * 0.25)
    assert {each["value"] for each in always["texts"].values()} == {0.5}
    assert always["pairs"]["all"] | {"high": 0} == {"value": 0, "low": 0, "high": 0, "count": len(BOTH)}
    (difference,) = found["differences"]
    assert difference["pairs"]["all"]["value"] == pytest.approx(0.25)
    assert difference["pairs"]["all"]["low"] > 0
    assert difference["pairs"]["all"]["p"] < 0.001
    assert difference["pairs"]["products"]["value"] == 0
    assert difference["pairs"]["products"]["p"] == 1
    table = contrasts.tables_of(found)
    assert "| all | 330 | 62.5% [" in table
    assert table.splitlines()[-1].startswith("| positive | +12.5 [+1")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with patch.object(sys, "argv", ["contrasts.py", *arguments]):
        contrasts.run(contrasts.main)
    return capsys.readouterr().out


def test_runs_that_differ_in_the_seed_are_one_model(capsys: pytest.CaptureFixture[str]) -> None:
    def load(folder: str) -> Any:
        """Return a run that calls a text positive if it has an odd number of words, and with seed 2 always."""

        def probabilities(texts: list[str]) -> np.ndarray:
            odd = np.array([len(text.split()) % 2 or folder == "b" for text in texts], dtype=float)
            return np.stack([1 - odd, odd], axis=1)

        record = {"overrides": ["task=movies", f"seed={'ab'.index(folder) + 1}"]}
        return SimpleNamespace(class_names=["negative", "positive"], record=record, probabilities=probabilities)

    odd = np.array([len(text.split()) % 2 for text in PAIRS.texts])
    expected = ((odd == PAIRS.labels).mean() + 0.5) / 2
    with patch.object(contrasts.firstlight, "load", load):
        (found,) = json.loads(printed(capsys, "a", "b", "--json"))["models"]
    assert (found["name"], found["runs"]) == ("task=movies", 2)
    assert found["texts"]["all"]["value"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "error: name at least one run"), (["stars"], "error: stars: its classes are not negative and positive")],
)
def test_mistakes_are_answered_in_a_line(arguments, message, capsys) -> None:
    loaded = SimpleNamespace(class_names=["1", "2", "3", "4", "5"])
    with patch.object(contrasts.firstlight, "load", lambda _: loaded), pytest.raises(SystemExit, match=r"^2$"):
        printed(capsys, *arguments)
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.slow  # a fit of TF-IDF
def test_a_baseline_is_fitted_and_judges_the_texts_in_their_order(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIRSTLIGHT_DATA", str(tmp_path / "none"))
    (found,) = json.loads(printed(capsys, "--baseline", "movies --data.source sample", "--json"))["models"]
    assert found["name"] == "baseline movies --data.source sample"
    assert found["pairs"]["order"]["value"] < found["texts"]["all"]["value"] < 1


def test_a_column_of_pairs_counts_those_of_which_both_are_right() -> None:
    def record(*correct: bool) -> dict[str, Any]:
        units = {"key": "texts", "count": len(correct), "correct": np.packbits(correct).tobytes().hex()}
        return {"seed": None, "evaluations": {"other": {"metrics": {}, "units": units}}}

    column = Column("both", "other", "pairs")
    first, second = record(True, True, False, True, False, False), record(*[True] * 6)
    assert value_of(first, column) == pytest.approx(1 / 3)
    assert interval([first], column).count == 3
    assert compare([second], [first], column).benefit.value == pytest.approx(100 * 2 / 3)
