"""Verdicts on groups and the finding of a board, with known differences over seeds and texts."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from firstlight.lab.reports.boards import Board, boards
from firstlight.lab.reports.findings import judged
from firstlight.lab.reports.significance import Difference, Estimate, mcnemar, seeds_to_decide
from firstlight.lab.reports.verdicts import (
    Comparison,
    Verdict,
    by_unit,
    compare,
    difference_text,
    verdicts,
)
from firstlight.runs.predictions import Predictions
from firstlight.runs.summary import Run
from run_folders import a_row

METRIC = "val/accuracy"


def a_run(value: float, *, seed: int = 1, metric: str = METRIC, **keys: Any) -> Run:
    return a_row(value=value, keys={"seed": seed} | keys, optimized_metric=metric, parameters=1000)


def group(values: list[float], **keys: Any) -> list[Run]:
    return [a_run(value, seed=seed, **keys) for seed, value in enumerate(values, start=1)]


def nothing(run: Run) -> None:
    return None


def texts(hits: dict[str, float], count: int = 400) -> Callable[[Run], Predictions]:
    """Return the predictions of runs whose model is right in a share of the texts; the same ones are hard for all."""
    hardness = np.random.default_rng(3).permutation(count) / count

    def load(run: Run) -> Predictions:
        correct = (hardness < hits[str(run.keys["model"])]).astype(np.int64)
        ones = np.ones(count, dtype=np.int64)
        losses = np.where(correct, 0.1, 2.0).astype(np.float32)
        return Predictions(np.arange(count), losses, ones, correct, "k", targets=ones, predicted=correct)

    return load


def board_of(runs: list[Run], load: Any = nothing, falls: bool = False, reference: int | None = None) -> Board:
    (board,) = boards(runs, lambda _: falls)
    return judged(board, load, reference)


BETTER = [0.84, 0.85, 0.86, 0.85]
WORSE = [0.81, 0.83, 0.83, 0.82]


def test_a_difference_that_seeds_and_texts_show_is_decided() -> None:
    runs = [*group(BETTER, model="small"), *group(WORSE)]
    board = board_of(runs, texts({"small": 0.85, "tiny": 0.82}))
    verdict = board.verdicts[1]
    assert (board.reference, verdict.word, verdict.why) == (0, "worse", "")
    assert verdict.value == pytest.approx(-0.0275)
    assert board.finding == "stars: small is better than tiny by 2.7 ± 1.6 points."
    assert board_of(runs, texts({"small": 0.85, "tiny": 0.82}), reference=1).verdicts[0].word == "better"  # type: ignore[union-attr]


def test_without_saved_predictions_the_seeds_alone_decide_and_the_verdict_says_so() -> None:
    verdict = board_of([*group(BETTER, model="small"), *group(WORSE)]).verdicts[1]
    assert (verdict.word, verdict.why) == ("worse", "by seeds only")


def test_texts_that_do_not_show_a_difference_leave_it_undecided() -> None:
    board = board_of([*group(BETTER, model="small"), *group(WORSE)], texts({"small": 0.85, "tiny": 0.846}))
    verdict = board.verdicts[1]
    assert (verdict.word, verdict.more_seeds) == ("undecided", None)
    assert verdict.why == "more seeds will not help: the validation split is too small"


def test_seeds_that_do_not_show_a_difference_say_how_many_more_would() -> None:
    runs = [*group([0.84, 0.80, 0.86], model="small"), *group([0.81, 0.82, 0.81])]
    verdict = board_of(runs, texts({"small": 0.9, "tiny": 0.8})).verdicts[1]
    needed = seeds_to_decide(0.02, float(np.std([0.03, -0.02, 0.05], ddof=1)))
    assert needed == 28
    assert (verdict.word, verdict.more_seeds) == ("undecided", needed - 3)
    assert verdict.why == "about 25 more seeds would decide"


def test_one_seed_decides_nothing_even_if_the_two_runs_differ() -> None:
    runs = [a_run(0.9, model="small"), a_run(0.8)]
    load = texts({"small": 0.9, "tiny": 0.8})
    board = board_of(runs, load)
    assert board.verdicts[1].why == "these two runs differ, but two seeds of each are required"  # type: ignore[union-attr]
    assert "no clear effect of model (small against tiny: 10 points, these two runs differ" in board.finding
    found = compare(by_unit(runs[:1]), by_unit(runs[1:]), METRIC, load)
    assert found.over_texts.p == mcnemar(load(runs[0]).correct, load(runs[1]).correct)
    assert board_of(runs).verdicts[1].why == "two seeds of each are required"  # type: ignore[union-attr]


def test_a_lucky_seed_is_not_the_reference() -> None:
    runs = [a_run(0.99, model="lucky"), *group(BETTER, model="small"), *group(WORSE)]
    board = board_of(runs)
    assert [each.keys["model"] for each in board.groups] == ["lucky", "small", "tiny"]
    assert board.reference == 1
    assert [verdict.word for verdict in board.verdicts if verdict] == ["undecided", "worse"]
    assert board.finding.startswith("stars: small is better than tiny by 2.7 ± ")


def test_a_baseline_that_is_best_does_not_hide_what_was_swept() -> None:
    keys = {"task": "stars", "model": "tfidf", "seed": 1}
    counted = Run("b", "finished", keys=keys, is_baseline=True, optimized_metric=METRIC, metrics={METRIC: 0.95})
    finding = board_of([*group(BETTER, model="small"), *group(WORSE), counted]).finding
    assert finding.startswith("stars: small is better than tiny by 2.7 ± ")
    assert finding.endswith("the best group with several seeds is worse than the baseline tfidf by 10.0 ± 1.3 points.")


def test_other_texts_or_other_metrics_cannot_be_paired() -> None:
    runs = [*group(BETTER, model="small"), *group(WORSE)]
    load = texts({"small": 0.85, "tiny": 0.82})

    def other(run: Run) -> Predictions:
        found = load(run)
        return Predictions(found.rows, found.losses, found.tokens, found.correct, str(run.keys["model"]))

    one, two = by_unit(runs[:4]), by_unit(runs[4:])
    assert compare(one, two, METRIC, load).over_texts is not None
    assert compare(one, two, METRIC, other).over_texts is None
    named = [a_run(value, seed=seed, metric="val/macro_f1") for seed, value in enumerate(WORSE)]
    assert compare(by_unit(named), by_unit(named), "val/macro_f1", load).over_texts is None


def test_different_seeds_are_independent_samples() -> None:
    found = compare(
        by_unit(group(BETTER)), by_unit([a_run(v, seed=9 + s) for s, v in enumerate(WORSE)]), METRIC, nothing
    )
    assert found.over_seeds.p == pytest.approx(stats.ttest_ind(BETTER, WORSE, equal_var=False).pvalue)
    three = compare(by_unit(group(BETTER)), by_unit(group(WORSE[:3])), METRIC, nothing)
    assert three.seeds == 3  # the fourth seed has no partner


def test_many_comparisons_are_corrected() -> None:
    one = compare(by_unit(group(BETTER)), by_unit(group([0.82, 0.85, 0.84, 0.82])), METRIC, nothing)
    (alone,) = verdicts([one], falls=False)
    among = verdicts([one] * 3, falls=False)[0]
    assert alone.p == pytest.approx(one.p)
    assert among.p == pytest.approx(3 * one.p)


def test_each_key_is_compared_over_all_runs_that_differ_only_in_it() -> None:
    runs = []
    for model, base in (("small", 0.85), ("tiny", 0.82)):
        for dropout, change in ((0.1, 0.0), (0.2, 0.0005)):
            noise = (0.004, -0.003, 0.001) if dropout == 0.1 else (-0.002, 0.003, -0.001)
            values = [base + change + each for each in noise]
            runs += group(values, model=model, dropout=dropout)
    board = board_of(runs)
    assert board.finding.startswith(
        "stars: small is better than tiny by 3.0 ± 0.0 points; no clear effect of dropout (0.1 against 0.2: 0.0"
    )


def test_many_values_of_a_key_are_named_with_the_smallest_difference() -> None:
    noise = (0.004, -0.003, 0.001, -0.001, 0.002)
    runs = []
    for rate, mean in ((0.001, 0.70), (0.002, 0.75), (0.004, 0.80), (0.008, 0.7995), (0.016, 0.6)):
        turn = round(rate * 1000) % 5
        runs += group([mean + each for each in (*noise[turn:], *noise[:turn])], **{"optimizer.lr": rate})
    finding = board_of(runs).finding
    assert re.fullmatch(
        r"stars: lr 0\.004 \(val/accuracy 0\.8006 ± 0\.0034\) is better than 0\.002, 0\.001 and 0\.016 by 5\.0 ± 0\.\d "
        r"points or more; against 0\.008, it is undecided "
        r"\(0\.\d ± 0\.\d points, about \d+ more seeds would decide\)\.",
        finding,
    ), finding


@pytest.mark.parametrize("accuracy", [0.95, 0.5])
def test_the_finding_has_the_interval_of_the_table_for_a_baseline(accuracy: float) -> None:
    """The table has more comparisons than the finding, so Holm's method widens its intervals more."""
    runs = [replace(a_run(accuracy, model="tfidf", dropout=None), is_baseline=True)]
    for place, model in enumerate(("small", "tiny")):
        for dropout in (0.1, 0.2, 0.3):
            runs += group([each - 0.01 * place - dropout / 100 for each in BETTER], model=model, dropout=dropout)
    board = board_of(runs)
    place = 1 if accuracy > 0.9 else 6
    verdict = board.verdicts[place]
    size = difference_text(verdict.value, verdict.half_width, METRIC)
    assert board.finding.endswith(f" than the baseline tfidf by {size}.")


def test_groups_that_differ_in_several_keys_have_no_effect_of_a_key() -> None:
    assert board_of(
        [a_run(0.7, model="small", **{"optimizer.lr": 0.1}), a_run(0.6, **{"optimizer.lr": 0.2})]
    ).finding == (
        "stars: the best group is small · lr 0.1, with val/accuracy 0.7 (one seed). Single keys are not "
        "compared, because no two groups differ in only one key."
    )


def test_two_baselines_are_compared_over_the_texts_alone() -> None:
    runs = [replace(a_run(value, model=model), is_baseline=True) for model, value in (("small", 0.85), ("tiny", 0.75))]
    one, two = by_unit(runs[:1]), by_unit(runs[1:])
    (shown,) = verdicts([compare(one, two, METRIC, texts({"small": 0.85, "tiny": 0.75}))], falls=False)
    assert (shown.word, shown.value) == ("better", pytest.approx(0.1))
    (unknown,) = verdicts([compare(one, two, METRIC, nothing)], falls=False)
    assert (unknown.word, unknown.why) == ("undecided", "both have no saved predictions of the same texts")


@pytest.mark.parametrize("name", ["loss", "perplexity", "bits_per_character"])
def test_the_interval_over_the_texts_has_the_unit_of_the_metric(name: str) -> None:
    per_token = {"small": 3.9, "tiny": 4.0}

    def load(run: Run) -> Predictions:
        spread = np.random.default_rng(0 if run.keys["model"] == "small" else 1).normal(scale=0.2, size=300)
        losses = (per_token[str(run.keys["model"])] + spread - spread.mean()).astype(np.float32) * 10
        return Predictions(np.arange(300), losses, np.full(300, 10), np.zeros(300, dtype=np.int64), "k")

    def of(loss: float) -> float:
        return {"loss": loss, "perplexity": np.exp(loss), "bits_per_character": loss / np.log(2) / 4}[name]

    one, two = (
        replace(a_run(0, model=model), metrics={"val/loss": loss, f"val/{name}": of(loss)})
        for model, loss in per_token.items()
    )
    found = compare(by_unit([one]), by_unit([two]), f"val/{name}", load).over_texts
    assert found.estimate.value == pytest.approx(of(3.9) - of(4.0), rel=1e-3)
    in_nats = compare(by_unit([one]), by_unit([two]), "val/loss", load).over_texts
    slope = (of(4.0) - of(3.9)) / 0.1
    assert found.estimate.half_width == pytest.approx(slope * in_nats.estimate.half_width, rel=0.01)


def test_the_reason_for_undecided_uses_the_same_correction_as_the_verdict() -> None:
    clear = [Comparison(-0.1, Difference(Estimate(-0.1, -0.11, -0.09, 4), 1e-6), None, 0.01, 4) for _ in range(9)]
    close = Comparison(
        0.01,
        Difference(Estimate(0.01, -0.001, 0.021, 4), 0.06),
        Difference(Estimate(0.01, 0.002, 0.018, 900), 0.01),
        0.007,
        4,
    )
    last = verdicts([*clear, close], falls=False)[-1]
    assert (last.word, last.p) == ("undecided", pytest.approx(0.06))
    needed = seeds_to_decide(0.01, 0.007, 0.05)
    assert needed is not None
    assert last.why == f"about {needed - 4} more seeds would decide"


def test_a_comparison_without_a_test_is_not_counted_as_one() -> None:
    pair = compare(by_unit(group(BETTER, model="small")), by_unit(group(WORSE)), METRIC, nothing)
    alone = compare(by_unit([a_run(0.9)]), by_unit([a_run(0.8)]), METRIC, nothing)
    first, *others = verdicts([pair, *[alone] * 25], falls=False)
    assert first.p == pytest.approx(pair.p)
    assert {(each.p, each.word) for each in others} == {(1.0, "undecided")}


def test_the_draws_of_the_bootstrap_are_enough_for_many_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstlight.lab.reports.verdicts.DRAWS", 100)  # the smallest p-value times 24 tests is 0.24
    runs = [run for place in range(25) for run in group([0.65 if place else 0.85] * 4, model=f"m{place}")]
    hits = {f"m{place}": 0.65 if place else 0.85 for place in range(25)}
    (board,) = boards(runs, lambda _: False)
    board = judged(board, texts(hits), 0, most=None)
    assert {verdict.word for verdict in board.verdicts if verdict is not None} == {"worse"}


def test_a_single_group_is_described_and_a_board_without_result_says_nothing() -> None:
    assert board_of(group(WORSE)).finding == "stars: val/accuracy is 0.8225 ± 0.015 (4 seeds, 95% interval)."
    assert board_of(group([0.5])).finding == "stars: val/accuracy is 0.5 (one seed)."
    failed = Run("f", "failed", why="no", keys={"task": "stars"})
    assert board_of([failed]).finding == ""


@pytest.mark.parametrize(
    ("value", "half", "metric", "text"),
    [
        (-0.0189, 0.0062, METRIC, "1.9 ± 0.6 points"),
        (0.12, 0.1, METRIC, "12.0 ± 10.0 points"),
        (-0.0453, 0.0121, "val/loss", "0.045 ± 0.012"),
        (0.5, None, "val/loss", "0.5"),
        (0.031, float("inf"), METRIC, "3.1 points"),
    ],
)
def test_a_difference_has_as_many_digits_as_its_interval(value, half, metric, text) -> None:
    assert difference_text(value, half, metric) == text


def test_verdicts_in_words() -> None:
    assert Verdict("worse", -0.019, 0.006, 0.01).text(METRIC) == "worse by 1.9 ± 0.6 points"
    undecided = Verdict("undecided", 0.003, 0.011, 0.4, 5, "about 5 more seeds would decide")
    assert undecided.text(METRIC) == "undecided (0.3 ± 1.1 points; about 5 more seeds would decide)"
    assert undecided.short_text(METRIC) == "undecided, +5 seeds"
    (verdict,) = (each for each in board_of([*group(WORSE), a_run(0.9, model="small")]).verdicts if each)
    assert verdict.short_text(METRIC) == "undecided, one seed"
