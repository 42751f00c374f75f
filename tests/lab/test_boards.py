"""Tests of groups of runs: mean and deviation over seeds, and the ranking by validation within each task."""

import math
import statistics
from dataclasses import replace
from typing import Any

import pytest

from firstlight.lab.reports.boards import boards, common_metric, not_counted, reason, short_name, spread_of, swept_keys
from firstlight.lab.reports.tables import headers, rows_of
from firstlight.runs.summary import Run, shown
from run_folders import a_row, falls

METRIC = "val/accuracy"


def a_run(value: float = 0.5, *, seed: int = 1, task: str = "stars", **changes: Any) -> Run:
    keys = {"task": task, "seed": seed} | changes.pop("keys", {})
    return a_row(changes.pop("folder", ""), value, keys=keys, **changes)


def test_a_group_is_what_is_equal_but_for_the_seed() -> None:
    values = [0.31, 0.37, 0.47]
    runs = [a_run(value, seed=seed) for seed, value in enumerate(values)]
    runs += [a_run(0.41, seed=seed, keys={"dropout": 0.2}) for seed in (1, 2)]
    (board,) = boards(runs, falls)
    assert board.keys == ("dropout",)
    first, second = board.groups
    assert (first.keys, first.rank, first.seeds) == ({"dropout": 0.2}, 1, 2)
    assert (first.spreads[METRIC].mean, first.spreads[METRIC].deviation) == (pytest.approx(0.41), pytest.approx(0))
    assert (second.keys, second.rank, second.seeds) == ({"dropout": 0.1}, 2, 3)
    assert second.spreads[METRIC].mean == pytest.approx(statistics.mean(values))
    assert second.spreads[METRIC].deviation == pytest.approx(statistics.stdev(values))
    half = 4.302653 * statistics.stdev(values) / math.sqrt(3)  # the quantile of Student's t
    assert second.spreads[METRIC].half_width == pytest.approx(half)
    assert second.best is runs[2]
    (alone,) = boards(runs[:1], falls)[0].groups
    assert (alone.spreads[METRIC].mean, alone.spreads[METRIC].deviation) == (0.31, None)


@pytest.mark.parametrize(("metric", "best"), [("val/loss", 0.3), (METRIC, 0.7)])
def test_a_loss_is_best_when_low_and_an_accuracy_when_high(metric: str, best: float) -> None:
    runs = [
        a_run(metrics={metric: value}, optimized_metric=metric, keys={"dropout": value}, seed=seed)
        for value in (0.5, 0.3, 0.7)
        for seed in (1, 2)
    ]
    (board,) = boards(runs, falls)
    assert board.falls == (metric == "val/loss")
    assert [group.rank for group in board.groups] == [1, 2, 3]
    assert board.groups[0].keys == {"dropout": best}
    best_of_all = boards([*runs[::2], a_run(metrics={metric: 0.5}, seed=9, optimized_metric=metric)], falls)[0]
    assert best_of_all.runs[0].metrics[metric] == best


@pytest.mark.parametrize(
    ("others", "where"), [(["sample"], True), (["local"], False), (["sample", "hub"], False), ([], False)]
)
def test_a_run_that_ended_before_its_data_was_known_stands_with_those_of_its_task(others, where) -> None:
    early = a_run(metrics={}, source=None, status="failed", why="it broke", seed=7)
    elsewhere = a_run(task="names", source="sample" if where is False else "hub")
    found = boards([*(a_run(source=source) for source in others), early, elsewhere], falls)
    (board,) = (board for board in found if early in board.runs)
    assert (board.task, board.is_sample) == ("stars", where)


def test_a_run_that_repeats_another_adds_no_seed() -> None:
    runs = [a_run(0.2, seed=1), a_run(0.4, seed=1, folder="again"), a_run(0.5, seed=2)]
    spread = spread_of(runs, METRIC)
    assert spread.mean == pytest.approx(0.4)
    assert spread.deviation == pytest.approx(statistics.stdev([0.3, 0.5]))
    assert boards(runs, falls)[0].groups[0].seeds == 2


DAMAGED = {
    "the loss is nan": a_run(9.0, seed=5, status="failed", why="the loss is nan"),
    "it has no val/accuracy": a_run(seed=5, metrics={"val/loss": 9.0}),
    "val/accuracy is nan": a_run(math.nan, seed=5),
}


@pytest.mark.parametrize("why", DAMAGED)
def test_what_does_not_count_is_in_no_mean_and_has_a_reason(why: str) -> None:
    (board,) = boards([a_run(0.4), a_run(0.6, seed=2), DAMAGED[why]], falls)
    (group,) = board.groups
    assert group.spreads[METRIC].mean == pytest.approx(0.5)
    assert (group.seeds, group.counted[0].metrics[METRIC], group.others) == (2, 0.6, (DAMAGED[why],))
    assert list(not_counted([board], board.runs)) == [(DAMAGED[why], why)]
    assert reason(DAMAGED[why], METRIC) == why


def test_another_metric_may_rank_and_a_task_without_it_has_no_ranks() -> None:
    runs = [
        a_run(metrics={METRIC: 0.1, "val/loss": 1.0}),
        a_run(metrics={METRIC: 0.9, "val/loss": 2.0}, keys={"model": "small"}),
        a_run(task="names", metrics={"val/perplexity": 3.0}),
    ]
    names, stars = boards(runs, falls, metric="val/loss")
    assert [group.keys["model"] for group in stars.groups] == ["tiny", "small"]
    assert [group.rank for group in names.groups] == [None]
    assert names.groups[0].others == (runs[2],)


def test_the_metric_is_the_one_that_most_runs_were_optimized_for() -> None:
    assert common_metric([a_run(), a_run(optimized_metric="val/loss"), a_run()]) == METRIC
    failed = [a_run(status="failed", why="x", optimized_metric="val/loss") for _ in range(3)]
    assert common_metric([a_run(), *failed]) == METRIC
    assert common_metric(failed) == "val/loss"
    assert common_metric([]) is None


def test_the_metrics_of_test_come_last_and_rank_nothing() -> None:
    metrics = {"test/accuracy": 0.9, "val/loss": 1.0, METRIC: 0.5, "test/loss": 2.0}
    (board,) = boards([a_run(metrics=metrics)], falls)
    assert board.metrics == (METRIC, "val/loss", "test/accuracy", "test/loss")
    assert board.metric == METRIC


def test_what_differs_is_swept_but_not_the_seed_nor_what_a_baseline_lacks() -> None:
    runs = [
        a_run(seed=1, keys={"z": 1, "b": 2, "dropout": 0.3}),
        a_run(seed=2, keys={"z": 1.0, "b": 3, "dropout": 0.3}),
        a_run(seed=3, keys={"model": "tfidf", "dropout": None, "z": None, "b": 2}, is_baseline=True),
    ]
    assert swept_keys(runs) == ["model", "b"]


def test_a_value_is_shown_as_one_would_type_it() -> None:
    values = (None, True, 0.1, 1e-05, 0.12345678, 7, "a", 2.0)
    assert [*map(shown, values)] == ["–", "true", "0.1", "1e-05", "0.12345678", "7", "a", "2"]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"flops": 5, "parameters": 7, "tokens": 11}, (5.0, "counted by the run")),
        ({"parameters": 7, "tokens": 11}, (6 * 7 * 11.0, "6 × parameters × tokens")),
        ({"parameters": 7}, None),
    ],
)
def test_compute_is_what_was_counted_or_else_estimated(known: dict[str, Any], expected: Any) -> None:
    assert a_run(**known).compute == expected


def test_the_rate_of_a_failed_run_is_no_swept_axis_but_its_group_is_named() -> None:
    typo = a_run(metrics={}, status="failed", why="the loss is nan", keys={"optimizer.lr": 1e30})
    runs = [a_run(0.1, keys={"optimizer.lr": 0.01}), a_run(0.2, keys={"model": "small", "optimizer.lr": 0.01}), typo]
    (board,) = boards(runs, falls)
    assert board.swept == board.keys == ("model",)
    keys = [group.keys for group in board.groups]
    assert keys == [{"model": "small"}, {"model": "tiny"}, {"model": "tiny", "optimizer.lr": 1e30}]


APART = {
    "sees its target": {"apart": {"model.causal": "sees its target"}},
    "data.max_train_rows=3000": {"apart": {"data.max_train_rows": "data.max_train_rows=3000"}},
    "data other": {"fingerprint": "other"},
    "data.split_seed=2": {"split": {"data.split_seed": 2}},
    "31 in validation": {"sizes": {"train": 997, "validation": 31}},
    "101 in training": {"sizes": {"train": 101, "validation": 53}},
}


@pytest.mark.parametrize("note", APART)
def test_runs_that_cannot_be_compared_are_ranked_among_themselves(note: str) -> None:
    usual = {"fingerprint": "usual", "sizes": {"train": 997, "validation": 53}, "split": {"data.split_seed": 1}}
    apart = a_run(0.99, folder="apart", **(usual | APART[note]))
    runs = [a_run(0.4, **usual), a_run(0.5, seed=2, **usual), apart, a_run(0.3, keys={"model": "old"})]
    main, other = boards(runs, falls)
    assert (main.name, other.name) == ("stars", f"stars ({note})")
    assert other.runs == [apart]
    assert [group.rank for group in main.groups] == [1, 2]  # a run without known data joins the others


def test_a_board_of_other_data_is_named_by_its_file() -> None:
    usual = [a_run(0.4, seed=seed, fingerprint="f", data_path="texts/a.csv") for seed in (1, 2)]
    other = [a_run(0.4, fingerprint=each, data_path=f"{each}/b.csv") for each in ("g", "h")]
    assert [board.name for board in boards([*usual, other[0]], falls)] == ["stars", "stars (data b.csv)"]
    names = [board.name for board in boards([*usual, *other], falls)]
    assert names == ["stars", "stars (data b.csv g)", "stars (data b.csv h)"], "a file that was changed is other data"


def test_a_group_of_a_class_is_named_by_its_section() -> None:
    keys = {"model._target_": "mine.net.GRUNet", "module.loss._target_": "mine.losses.my_loss", "optimizer.lr": 0.1}
    assert short_name(keys) == "model mine.net.GRUNet · loss mine.losses.my_loss · lr 0.1"
    assert short_name({"model": "nb-svm", "method": "nb-svm", "data.folds": 5}) == "nb-svm · folds 5"


def test_a_key_of_group_by_pools_what_it_would_set_apart_with_a_badge() -> None:
    few = a_run(0.2, keys={"data.max_train_rows": 3000, "trainer.max_steps": 30}, **APART["data.max_train_rows=3000"])
    runs = [a_run(0.4, keys={"trainer.max_steps": 300}), few]
    assert len(boards(runs, falls)) == 2
    assert len(boards(runs, falls, group_by=["model"])) == 2
    (board,) = boards(runs, falls, group_by=["data.max_train_rows"])
    assert [group.differ for group in board.groups] == [(), ()]
    same_rows = [replace(run, apart={}) for run in runs]
    (board,) = boards(same_rows, falls, group_by=["model"])
    assert board.groups[0].differ == ("data.max_train_rows", "trainer.max_steps")
    assert headers(board).index("differ in") > 0
    assert "data.max_train_rows, trainer.max_steps" in [cell.text for cell in rows_of(board)[0]]
