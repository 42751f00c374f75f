"""The effects of the keys of a sweep: the same with every grouping, from all pairs, with the stated error rates."""

import itertools

import numpy as np
import pytest

from firstlight.lab.reports.boards import boards
from firstlight.lab.reports.findings import Effect, effects_of, judged
from firstlight.lab.reports.significance import paired_seeds
from firstlight.runs.summary import Run, Value
from run_folders import a_row

METRIC = "val/loss"
SWEEPS = 200
SEEDS = (1, 2, 3)


def a_run(loss: float, tokens: int = 1000, **keys: Value) -> Run:
    return a_row(value=loss, keys={"task": "names"} | keys, optimized_metric=METRIC, tokens=tokens)


def sweep(seed: int, effect: float, *, noise: float = 0.02, interaction: float = 0.0) -> list[Run]:
    """Return dropout 0 and 0.3 with context 8 and 32 and three seeds: twelve runs, as in a factorial sweep."""
    draw = np.random.default_rng(seed)
    of_seed = dict(zip(SEEDS, draw.normal(0, 0.1, len(SEEDS)), strict=True))  # common to all settings
    runs = []
    for dropout, context, number in itertools.product((0.0, 0.3), (8, 32), SEEDS):
        loss = 2 + of_seed[number] + draw.normal(0, noise)
        loss += (dropout > 0) * (effect + interaction * (context == 32)) - 0.05 * (context == 32)
        runs.append(a_run(loss, dropout=dropout, context_length=context, seed=number))
    return runs


def effect_of(runs: list[Run], key: str, group_by: list[str] | None = None) -> Effect:
    (board,) = boards(runs, lambda _: True, METRIC, group_by)
    return next(effect for effect in effects_of(board, lambda _: None)[0] if effect.key == key)


def rate(words: list[str], word: str) -> float:
    return words.count(word) / len(words)


def test_a_planted_effect_is_found_and_none_is_not() -> None:
    planted = [effect_of(sweep(seed, 0.05), "dropout").verdict.word for seed in range(SWEEPS)]
    nothing = [effect_of(sweep(seed, 0.0), "dropout").verdict.word for seed in range(SWEEPS)]
    assert rate(planted, "better") > 0.7  # two effects are corrected together
    assert rate(planted, "worse") == 0
    assert 1 - rate(nothing, "undecided") <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / SWEEPS)
    single = [_without_the_pairs(sweep(seed, 0.05)) for seed in range(SWEEPS)]
    assert rate(planted, "better") > 2 * np.mean(single)  # with the means of the cells, few of them are found


def _without_the_pairs(runs: list[Run]) -> bool:
    """Return whether the effect is found if the two contexts of each seed are only averaged."""
    losses: dict[tuple[Value, Value], list[float]] = {}
    for run in runs:
        losses.setdefault((run.keys["dropout"], run.keys["seed"]), []).append(run.metrics[METRIC])
    means = [[float(np.mean(losses[dropout, seed])) for seed in SEEDS] for dropout in (0.0, 0.3)]
    return paired_seeds(*means).p < 0.025


def test_an_interaction_does_not_hide_the_effect_of_a_key() -> None:
    words = [effect_of(sweep(seed, 0.05, interaction=0.1), "dropout").verdict.word for seed in range(50)]
    assert rate(words, "better") > 0.9


def test_a_verdict_does_not_depend_on_the_grouping() -> None:
    runs = sweep(3, 0.06)
    (whole,) = boards(runs, lambda _: True, METRIC)
    (grouped,) = boards(runs, lambda _: True, METRIC, ["dropout"])
    one, two = judged(whole, lambda _: None), judged(grouped, lambda _: None)
    assert one.finding == two.finding
    assert "dropout 0 is better than 0.3 by" in one.finding
    (verdict,) = [each for each in two.verdicts if each is not None]
    effect = effect_of(runs, "dropout").verdict
    assert (verdict.word, verdict.value, verdict.half_width) == ("worse", -effect.value, effect.half_width)
    simple = [each for each in one.verdicts if each is not None and each.word == "worse"]
    assert len(simple) <= 3
    assert effect.word == "better"  # at least as decided as the comparisons of single groups


def test_a_decided_interval_excludes_zero() -> None:
    for seed in range(60):
        for effect in (effect_of(sweep(seed, 0.02), key) for key in ("dropout", "context_length")):
            verdict = effect.verdict
            assert verdict.half_width is not None
            assert (abs(verdict.value) > verdict.half_width) == (verdict.word != "undecided")


def test_unequal_work_is_said() -> None:
    runs = []
    for context, seed in itertools.product((8, 32), SEEDS):
        loss = 2 - 0.1 * (context == 32) + 0.01 * seed + 0.001 * (seed == 1) * (context == 8)
        runs.append(a_run(loss, tokens=1000 * context, context_length=context, seed=seed))
    (board,) = boards(runs, lambda _: True, METRIC)
    found = judged(board, lambda _: None).finding
    assert found.endswith("in val/loss, with 4 times the tokens.")


def test_blocks_are_not_part_of_the_noise() -> None:
    one, two = [1.0, 1.1, 1.2, 5.0, 5.1, 5.3], [0.9, 1.01, 1.12, 4.0, 4.11, 4.28]
    found = paired_seeds(one, two, [0, 0, 0, 1, 1, 1])
    assert found.estimate.value == pytest.approx(np.mean(np.subtract(one, two)))
    assert found.freedom == 4
    assert found.p < 1e-4 < paired_seeds(one, two).p
