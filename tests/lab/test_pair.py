"""The comparison of two runs: settings, results, and the predictions that changed."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from firstlight.lab.reports import pair as module
from firstlight.lab.reports.boards import boards
from firstlight.lab.reports.pair import LOOKS, decision, pair
from firstlight.lab.reports.significance import LEVEL, mcnemar, seeds_to_decide
from firstlight.lab.reports.tables import Section
from firstlight.runs.predictions import Predictions
from firstlight.runs.summary import Curve, Run
from run_folders import a_row, falls

METRIC = "val/accuracy"
CLASSES = ["bad", "good"]
# 40 texts: A is right in 24, B in 34; B gains 12 bad texts and loses 2 good ones.
TARGETS = [0] * 20 + [1] * 20
OF_A = [1] * 14 + [0] * 6 + [0] * 2 + [1] * 18
OF_B = [1] * 2 + [0] * 18 + [0] * 4 + [1] * 16


def of_classes(predicted: list[int], key: str = "k") -> Predictions:
    guesses, truth = np.array(predicted), np.array(TARGETS)
    hits = (guesses == truth).astype(np.int64)
    losses = np.where(hits, 0.25, 2.0).astype(np.float32)
    return Predictions(np.arange(len(truth)) * 3, losses, np.ones_like(truth), hits, key, truth, guesses)


def of_tokens(losses: list[float], correct: list[int]) -> Predictions:
    tokens = np.array([10, 10, 5])
    return Predictions(np.arange(3), np.array(losses, dtype=np.float32), tokens, np.array(correct), "k")


def compared(one: Any, two: Any, **changes: Any) -> Section:
    """Return the comparison of two runs with some predictions. changes: fields of the second run that differ."""

    def run(name: str, value: float, **more: Any) -> Run:
        curves = {METRIC: Curve([4, 9], [0.5, 1.0], [value / 2, value])}
        metrics = {METRIC: value, "val/loss": 1 - value}
        return a_row(name, value, keys={"model": name}, metrics=metrics, curves=curves, **more)

    runs = run("small", 0.6, parameters=1009), replace(run("large", 0.85, parameters=2003), **changes)
    settings = [{"model.dim": 32, "optimizer.lr": 0.001}, {"model.dim": 64, "optimizer.lr": 0.001}]
    predictions = {"small": one, "large": two}
    return pair(runs, settings, lambda run: predictions[run.folder], CLASSES, falls, METRIC)


def rows(found: Section, title: str) -> list[list[str]]:
    (wanted,) = (each for each in found.tables if each.title == title)
    return [list(row) for row in wanted.rows]


def test_the_first_sentence_says_which_run_is_better_and_whether_the_texts_show_it() -> None:
    first, second, third = compared(of_classes(OF_A), of_classes(OF_B)).sentences
    p = mcnemar(np.equal(OF_B, TARGETS), np.equal(OF_A, TARGETS))
    assert first.startswith("B is better than A by 25.0 ± ")
    assert first.endswith(f"points: val/accuracy is 0.85 against 0.6 (p = {p:.2g} over the texts of this split).")
    assert second.startswith("Two runs cannot tell settings from seeds")
    assert third == "14 of 40 predictions changed."
    close = compared(of_classes(OF_A), of_classes([*OF_A[:-1], 0]))
    assert close.sentences[0].startswith("It is undecided whether B is better than A, by 25.0 ± ")
    assert close.sentences[0].endswith(" (p = 1 over the texts of this split).")


def test_the_settings_and_the_results_stand_side_by_side() -> None:
    found = compared(None, None)
    assert rows(found, "Settings that differ") == [["model", "small", "large"], ["model.dim", "32", "64"]]
    results = {name: cells for name, *cells in rows(found, "Results")}
    assert results[METRIC] == ["0.6", "0.85", "+0.25"]
    assert results["val/loss"] == ["0.4", "0.15", "−0.25"]
    assert results["parameters"] == ["1009", "2003", "+994"]


def test_each_class_has_its_change_and_a_corrected_test() -> None:
    found = compared(of_classes(OF_A), of_classes(OF_B))
    assert rows(found, "Right predictions of each true class") == [
        ["bad", "20", "30.0%", "90.0%", "+60.0 points", "better"],
        ["good", "20", "90.0%", "80.0%", "−10.0 points", "undecided"],
    ]


def test_the_pieces_of_a_text_are_compared_by_their_losses() -> None:
    found = compared(of_tokens([20, 30, 10], [4, 3, 2]), of_tokens([15, 35, 5], [5, 3, 3]))
    assert found.sentences[-1] == (
        "B has the lower loss in 2 of 3 validation texts, or pieces of a text, and predicts 2 more of 25 tokens "
        "correctly than A."
    )


def test_what_cannot_be_compared_is_said() -> None:
    for other in (None, of_classes(OF_B, key="other")):
        assert compared(of_classes(OF_A), other).sentences[-1].startswith("No prediction is compared: the runs")
    found = compared(None, None, apart={"model.causal": "sees its target"})
    assert found.sentences[0] == "The numbers cannot be compared: B: sees its target."


SIMULATED, SPREAD, MOST = 200, 0.01, 40  # sweeps; deviation of a run from the mean of its seed; seeds


def seen(difference: float, *, seeds: int, number: int) -> list[str]:
    """Return what is printed of two settings with a planted difference and some seeds; number: of the simulation."""
    draw = np.random.default_rng(number)
    levels, noise = draw.normal(0, 0.1, MOST), draw.normal(0, SPREAD, (MOST, 2))
    values = 0.5 + levels[:, None] + noise + np.array([difference, 0.0])
    runs = [
        a_row("", values[seed, place], keys={"model": name, "seed": seed})
        for seed in range(seeds)
        for place, name in enumerate(("small", "tiny"))
    ]
    (board,) = boards(runs, falls)
    sides = [[run for run in runs if run.keys["model"] == name] for name in ("small", "tiny")]
    return decision(board, ("small", "tiny"), sides, lambda run: None, Path())


def test_equal_settings_are_rarely_called_different_also_after_the_seeds_that_were_proposed(monkeypatch) -> None:
    monkeypatch.setattr(module, "_commands", lambda sides, number, folder: [number])
    different = 0
    for number in range(SIMULATED):
        _, verdict, *plan = seen(0.0, seeds=3, number=number)
        if plan and (total := int(plan[-1])) <= MOST:
            _, verdict, *plan = seen(0.0, seeds=total, number=number)
        different += "undecided" not in verdict
    assert different / SIMULATED <= 0.06


def test_a_planted_difference_is_decided_with_the_number_of_seeds_that_is_printed_for_it(monkeypatch) -> None:
    monkeypatch.setattr(module, "_commands", lambda sides, number, folder: [number])
    needed = seeds_to_decide(0.015, SPREAD * 2**0.5, LEVEL / LOOKS)
    assert needed == 12
    verdicts = [seen(0.015, seeds=needed, number=number)[1] for number in range(SIMULATED)]
    assert sum("better" in each for each in verdicts) / SIMULATED >= 0.8 - 2 * (0.8 * 0.2 / SIMULATED) ** 0.5
    _, verdict, plan, total = seen(0.0, seeds=3, number=0)
    found = re.search(r"about (\d+) more seeds would decide", verdict)
    assert found
    assert (
        plan == f"To train {found[1]} more seeds, with which a difference of this size is found with a chance of 80%:"
    )
    assert int(total) == 3 + int(found[1])
