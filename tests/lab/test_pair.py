"""The comparison of two runs: settings, results, and the predictions that changed."""

import re
from typing import Any

import numpy as np
import pytest

from firstlight.lab.reports.pair import Pair, pair
from firstlight.lab.reports.pair_page import pair_page
from firstlight.lab.reports.significance import mcnemar
from firstlight.lab.reports.tables import Table
from firstlight.runs.predictions import Predictions
from firstlight.runs.summary import Confusion, Curve, Run

METRIC = "val/accuracy"
CLASSES = ["bad", "good"]


def a_run(name: str, value: float, **changes: Any) -> Run:
    keys = {"task": "stars", "model": name, "seed": 1}
    curve = {METRIC: Curve([4, 9], [0.5, 1.0], [value / 2, value]), "train/loss": Curve([1], [0.1], [2.0])}
    given = {"metrics": {METRIC: value, "val/loss": 1 - value}, "parameters": 1009, "curves": curve} | changes
    return Run(f"logs/{name}", "finished", keys=keys, optimized_metric=METRIC, **given)


def of_classes(predicted: list[int], targets: list[int], key: str = "k") -> Predictions:
    guesses, truth = np.array(predicted), np.array(targets)
    hits = (guesses == truth).astype(np.int64)
    losses = np.where(hits, 0.25, 2.0).astype(np.float32)
    return Predictions(np.arange(len(truth)) * 3, losses, np.ones_like(truth), hits, key, truth, guesses)


# 40 texts: A is right in 24, B in 34; B gains 12 bad texts and loses 2 good ones.
TARGETS = [0] * 20 + [1] * 20
OF_A = [1] * 14 + [0] * 6 + [0] * 2 + [1] * 18
OF_B = [1] * 2 + [0] * 18 + [0] * 4 + [1] * 16
SETTINGS: tuple[dict[str, Any], dict[str, Any]] = (
    {"model.dim": 32, "optimizer.lr": 0.001}, {"model.dim": 64, "optimizer.lr": 0.001}
)  # fmt: skip


def compared(predictions: Any = None, **changes: Any) -> Pair:
    runs = (a_run("small", 0.6, **changes), a_run("large", 0.85, parameters=2003, **changes))
    given = predictions or (of_classes(OF_A, TARGETS), of_classes(OF_B, TARGETS))
    return pair(runs, SETTINGS, given, CLASSES, lambda metric: metric.endswith("loss"))


def table(found: Pair, title: str) -> Table:
    (wanted,) = (each for each in found.tables if each.title == title)
    return wanted


def test_the_first_sentence_says_which_run_is_better_and_whether_the_texts_show_it() -> None:
    found = compared()
    p = mcnemar(np.equal(OF_B, TARGETS), np.equal(OF_A, TARGETS)).p
    first, second, third = found.sentences
    assert first.startswith("B is better than A by 25.0 ± ")
    assert first.endswith(
        f"points: val/accuracy is 0.85 against 0.6; another split would probably show it too (p = {p:.2g})."
    )
    assert second.startswith("Two runs cannot tell settings from seeds")
    assert third == (
        "14 of 40 predictions changed. B gains most in the class bad: +12 texts; B loses most in the class good: "
        "−2 texts."
    )


def test_a_difference_that_the_texts_do_not_show_is_said() -> None:
    close = (of_classes(OF_A, TARGETS), of_classes([*OF_A[:-1], 0], TARGETS))
    assert "on another split the order may be reversed (p = 1)" in compared(close).sentences[0]


def test_the_settings_that_differ_are_listed_and_no_others() -> None:
    assert table(compared(), "Settings that differ").rows == [["model", "small", "large"], ["model.dim", "32", "64"]]


def test_the_results_have_their_differences() -> None:
    rows = {row[0]: row[1:] for row in table(compared(), "Results").rows}
    assert rows[METRIC] == ["0.6", "0.85", "+0.25"]
    assert rows["val/loss"] == ["0.4", "0.15", "−0.25"]
    assert rows["parameters"] == ["1009", "2003", "+994"]


def test_the_curves_share_their_steps() -> None:
    assert table(compared(), f"{METRIC} over steps").rows == [["4", "0.3", "0.425"], ["9", "0.6", "0.85"]]


def test_the_predictions_that_changed_are_counted() -> None:
    assert table(compared(), "Predictions of the validation texts").rows == [
        ["both right", "22"],
        ["only A right", "2"],
        ["only B right", "12"],
        ["both wrong, the same class", "4"],
        ["both wrong, another class", "0"],
    ]


def test_each_class_has_its_change_and_a_corrected_test() -> None:
    assert table(compared(), "Right predictions of each true class").rows == [
        ["bad", "20", "30.0%", "90.0%", "+60.0 points", "better"],
        ["good", "20", "90.0%", "80.0%", "−10.0 points", "undecided"],
    ]
    assert table(compared(), "Mistakes that changed most").rows == [
        ["bad", "good", "14", "2", "−12"],
        ["good", "bad", "2", "4", "+2"],
    ]


def test_the_texts_that_changed_most_are_named_by_their_rows() -> None:
    rows = table(compared(), "Texts whose loss changed most").rows
    assert rows[0] == ["6", "bad", "good", "bad", "2.00", "0.25"]
    assert ["69", "good", "good", "bad", "0.25", "2.00"] in rows


def test_the_pieces_of_a_text_are_compared_by_their_losses() -> None:
    def of_tokens(losses: list[float], correct: list[int]) -> Predictions:
        tokens = np.array([10, 10, 5])
        return Predictions(np.arange(3), np.array(losses, dtype=np.float32), tokens, np.array(correct), "k")

    found = compared((of_tokens([20, 30, 10], [4, 3, 2]), of_tokens([15, 35, 5], [5, 3, 3])))
    assert found.sentences[-1] == (
        "B has the lower loss in 2 of 3 validation texts, or pieces of a text, and predicts 2 of 25 tokens more "
        "correctly than A."
    )
    assert table(found, "Texts whose loss changed most").rows[0] == ["2", "5", "2.000", "1.000"]


def test_without_predictions_the_confusion_matrices_show_the_classes() -> None:
    confusion = Confusion(CLASSES, [[6, 14], [2, 18]])
    found = compared((None, of_classes(OF_B, TARGETS)), confusion=confusion)
    assert found.sentences[-1].startswith("A has no predictions/validation.npz, which runs of this version write")
    assert table(found, "Right predictions of each true class").rows[0] == [
        "bad",
        "20",
        "30.0%",
        "30.0%",
        "+0.0 points",
    ]
    other = compared((of_classes(OF_A, TARGETS), of_classes(OF_B, TARGETS, key="other")))
    assert "other texts or other tokens" in other.sentences[-1]


def test_runs_that_cannot_be_ranked_together_say_so_first() -> None:
    runs = (a_run("small", 0.6), a_run("large", 0.85, apart={"model.causal": "sees its target"}))
    found = pair(runs, SETTINGS, (None, None), [], lambda _: False)
    assert found.sentences[0] == "The numbers cannot be compared: B: sees its target."


@pytest.mark.parametrize("text", ["</script><b>x</b>"])
def test_the_page_has_the_sentences_the_tables_and_the_curves_as_text(text: str) -> None:
    found = compared()
    found.tables.append(Table(text, (text,), [[text]]))
    html = pair_page(found)
    assert "<b>x</b>" not in html
    assert "B is better than A by 25.0" in html
    assert '"metric":"val/accuracy"' in html
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=\"?(https?:)?//", html)
    assert len(html.encode()) < 2_000_000
