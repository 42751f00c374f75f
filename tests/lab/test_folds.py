"""Tests of the section of a report on cross-validation, and of its tests over texts and over folds."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from firstlight.lab.reports.all_runs import SavedPredictions, gather
from firstlight.lab.reports.boards import boards
from firstlight.lab.reports.folds import cross_validation, groups_section
from firstlight.lab.reports.significance import corrected_folds, paired_bootstrap, power_of
from firstlight.lab.reports.tables import Section
from firstlight.runs.predictions import Predictions, key_of, write_predictions
from run_folders import falls, make_baseline, make_run

FOLDS, TEXTS = 5, 101  # in each fold
SIMULATIONS = 200
DATA = {"source": "local", "fingerprint": "f", "rows": {"train": 4 * TEXTS, "test": TEXTS}}


def add(folder: Path, name: str, fold: int, hits: NDArray[np.int64] | None, **changes: object) -> None:
    """Make the run of a fold with its test predictions. hits: (texts,) 0 or 1; None: the test was not measured."""
    seed, options = changes.get("seed", 1), {"folds": FOLDS, "fold": fold, "fold_seed": changes.pop("fold_seed", 0)}
    metrics = {"val/accuracy": 0.5} | ({} if hits is None else {"test/accuracy": float(hits.mean())})
    make = make_baseline if name == "tfidf" else make_run
    overrides = [f"data.{key}={value}" for key, value in options.items()]
    given = {"model": name, "overrides": overrides, "data": DATA, "metrics": metrics} | changes
    path = make(folder, f"{name}/fold-{fold}_seed-{seed}_{options['fold_seed']}", **given)
    (path / "config.yaml").write_text(json.dumps({"data": options}))
    if hits is not None:
        rows = np.arange(TEXTS) * FOLDS + fold + options["fold_seed"]
        ones = np.ones(TEXTS, np.int64)
        losses = np.where(hits, 0.25, 2.0).astype(np.float32)
        groups = np.where(rows % 2 > 0, "odd", "even")
        predicted = Predictions(rows, losses, ones, hits, key_of(rows, ones, ones), 0 * ones, 1 - hits, groups)
        write_predictions(path / "predictions" / "test.npz", predicted)


def a_model(share: float, seed: int) -> list[NDArray[np.int64]]:
    """Return which texts of each fold a model gets right, of which a share is right."""
    random = np.random.default_rng(seed)
    return [(random.random(TEXTS) < share).astype(np.int64) for _ in range(FOLDS)]


def section(folder: Path, *others: Path) -> Section:
    return cross_validation(gather(folder, *others), SavedPredictions(folder, "test"), falls)


def test_the_folds_of_each_setting_are_pooled_and_compared_with_a_baseline_of_another_folder(tmp_path: Path) -> None:
    hits = {seed: a_model(0.9, seed) for seed in (1, 2)}
    counted = a_model(0.6, 7)
    for fold in range(FOLDS):
        for seed, each in hits.items():
            add(tmp_path / "sweep", "small", fold, each[fold], seed=seed)
        add(tmp_path / "stars" / "baseline", "tfidf", fold, counted[fold])
    found = section(tmp_path / "sweep", tmp_path / "stars" / "baseline")
    results, differences, of_groups = found.tables
    mean = [np.mean(np.concatenate(each)) for each in (hits[1] + hits[2], counted)]
    assert [row[:4] for row in results.rows] == [["small", "505", "5", "2"], ["tfidf", "505", "5", "–"]]
    assert [row[4].split(" ± ")[0] for row in results.rows] == [f"{100 * each:.2f}" for each in mean]
    assert float(results.rows[1][4].split(" ± ")[1].rstrip("%")) == pytest.approx(196 * math.sqrt(0.24 / 505), rel=0.1)
    [row] = differences.rows
    assert row[:3] == ["small", "better", "tfidf"]
    assert row[3].startswith(f"{100 * (mean[0] - mean[1]):+.2f} ± ")
    per_fold = [[np.mean(each) for each in zip(*hits.values(), strict=True)], [each.mean() for each in counted]]
    assert float(row[6]) == pytest.approx(corrected_folds(*per_fold, 1 / 4).p, rel=0.1)
    assert len(found.sentences) == 1  # the explanation
    assert [row[:2] for row in of_groups.rows] == [["even", "253"], ["odd", "252"]]
    is_odd = np.concatenate([(np.arange(TEXTS) * FOLDS + fold) % 2 > 0 for fold in range(FOLDS)])
    every = [np.mean([np.concatenate(each) for each in hits.values()], axis=0), np.concatenate(counted)]
    for row, own in zip(of_groups.rows, (~is_odd, is_odd), strict=True):
        assert [cell.split(" ± ")[0] for cell in row[2:]] == [f"{100 * each[own].mean():.2f}" for each in every]


def test_the_validation_accuracy_of_each_group_is_the_mean_of_the_seeds_with_the_same_texts(tmp_path: Path) -> None:
    rows, ones = np.arange(4), np.ones(4, np.int64)
    for seed, hits in ((1, [1, 0, 1, 1]), (2, [1, 1, 1, 1]), (3, [0, 0, 0, 0])):
        key = "other texts" if seed == 3 else "texts"
        found = (rows, 0.5 * ones.astype(np.float32), ones, np.array(hits), key, 0 * ones, ones)
        path = make_run(tmp_path, f"run-{seed}", seed=seed, metrics={"val/accuracy": 0.5})
        write_predictions(path / "predictions" / "validation.npz", Predictions(*found, np.array(["a", "a", "b", "c"])))
    make_run(tmp_path, "without", "model=large", model="large", metrics={"val/accuracy": 0.5})
    every = boards(gather(tmp_path), falls)
    [table] = groups_section(every, tmp_path).tables
    assert [row[:2] for row in table.rows] == [["a", "2"], ["b", "1"], ["c", "1"]]
    assert table.columns[2:] == ("tiny",)
    assert [row[2].split(" ± ")[0] for row in table.rows] == ["75.00", "–", "–"]
    assert not groups_section([], tmp_path).tables


def test_incomplete_folds_are_told_and_not_pooled(tmp_path: Path) -> None:
    hits = a_model(0.9, 1)
    for fold in range(FOLDS):
        add(tmp_path, "small", fold, hits[fold])
        add(tmp_path, "large", fold, hits[fold], fold_seed=1)  # texts n + 1: other folds
        add(tmp_path, "unmeasured", fold, None)
        if fold != 3:
            add(tmp_path, "tiny", fold, hits[fold])
            add(tmp_path, "small", fold, hits[fold], seed=2)
    found = section(tmp_path)
    small, tiny = (f"{name} · fold_seed 0" for name in ("small", "tiny"))
    assert [table.title for table in found.tables] == ["stars", "stars: test accuracy of each group"]
    told = "\n".join(found.sentences[1:])
    assert f"stars: {tiny} is not pooled: these of its 5 folds are not finished: 3." in told
    assert f"stars: {small}: without all folds and not used: seed 2." in told
    assert f"large · fold_seed 1 and {small} have other folds." in told
    assert "has no test/accuracy and no saved predictions of the test; train with test=true" in told


def test_a_text_in_two_folds_is_told(tmp_path: Path) -> None:
    for fold, each in enumerate(a_model(0.9, 1)):
        add(tmp_path, "small", fold, each)
    path = tmp_path / "small" / "fold-{}_seed-1_0" / "predictions" / "test.npz"
    Path(str(path).format(1)).write_bytes(Path(str(path).format(0)).read_bytes())
    assert "small is not pooled: 101 texts are in several folds." in section(tmp_path).sentences[1]


def test_metrics_without_saved_predictions_are_compared_over_the_folds(tmp_path: Path) -> None:
    for fold in range(FOLDS):
        for model, loss in {"small": 1.0, "tiny": 2.0}.items():
            metrics = {"val/loss": 1.5, "test/loss": loss + 0.01 * fold * loss}
            add(tmp_path, model, fold, None, metrics=metrics, optimized_metric="val/loss")
    results, differences = section(tmp_path).tables
    assert [row[:4] for row in results.rows] == [["small", "–", "5", "1"], ["tiny", "–", "5", "1"]]
    assert differences.rows[0][:5] == ["small", "better", "tiny", "-1.02 ± 0.029", "–"]


def simulated(difference: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the results of two models on texts and on folds, each of SIMULATIONS data sets, first minus second.

    The differences of texts are independent. Those of two folds are correlated by 1 / FOLDS, as if by the training
    texts that they share, for which the corrected test is exact.
    """
    random = np.random.default_rng(3)
    texts = random.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(SIMULATIONS, 400))
    common, own = random.normal(size=(SIMULATIONS, 1)), random.normal(size=(SIMULATIONS, FOLDS))
    folds = math.sqrt(1 / FOLDS) * common + math.sqrt(1 - 1 / FOLDS) * own
    return texts + difference * 2.8 * math.sqrt(0.2 / 400), folds + difference * 4


def rates(difference: float) -> tuple[float, float]:
    """Return the shares of the data sets in which the tests over texts and over folds find a difference."""
    texts, folds = simulated(difference)
    strata = np.repeat(np.arange(FOLDS), 80)
    over_texts = [paired_bootstrap(each, 0 * each, strata=strata, block=4, draws=200).p < 0.05 for each in texts]
    over_folds = [corrected_folds(each, 0 * each, 1 / (FOLDS - 1)).p < 0.05 for each in folds]
    return float(np.mean(over_texts)), float(np.mean(over_folds))


def test_the_tests_find_no_difference_in_95_of_100_data_sets_without_one() -> None:
    for rate in rates(0):
        assert 0.02 <= rate <= 0.09  # 5% of 200, within 2.6 standard errors


def test_the_tests_find_a_planted_difference_with_their_power() -> None:
    over_texts, over_folds = rates(1)
    assert over_texts == pytest.approx(0.8, abs=0.08)  # 2.8 standard errors: a power of 80%
    error = math.sqrt((1 / FOLDS + 1 / (FOLDS - 1)) * (1 - 1 / FOLDS))  # of the mean of the folds
    assert over_folds == pytest.approx(power_of(FOLDS, 4 / error / math.sqrt(FOLDS)), abs=0.08)
