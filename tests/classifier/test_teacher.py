"""Tests of `teacher=`: predictions that never saw what they score, exact resuming, and one-line mistakes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

import firstlight
from firstlight.classifier import teacher
from firstlight.classifier.teacher import distillation_target
from firstlight.data import ReviewData
from firstlight.errors import UserError
from firstlight.files.row_writer import write_rows
from firstlight.kind import teachers
from firstlight.lit.distillation_options import DistillationOptions
from firstlight.masked.data import MaskedReviewData
from firstlight.masked.kind import KIND
from firstlight.training.build import refuse_other_teacher
from tests_support import Scripts

TWINS = 83
TFIDF = ["teacher=tfidf", "distillation.folds=2", "distillation.weight=0.7", "distillation.temperature=2"]


def twins(folder: Path, **options: Any) -> ReviewData:
    """Return data in which each word is in two texts, one of either class."""
    rows = [{"text": f"word{number}", "label": label} for number in range(TWINS) for label in (0, 1)]
    write_rows(folder / "twins.csv", rows)
    data = ReviewData(path=str(folder / "twins.csv"), labels="classes", cache_dir=str(folder / "cache"), **options)
    data.ensure_setup()
    return data


def test_the_teacher_never_scores_what_it_was_fitted_on(tmp_path: Path) -> None:
    data = twins(tmp_path)
    rows = data.rows("train")
    words = data.encoded.ids.select(rows).ids
    shares = teacher.tfidf_probabilities(data, folds=5)
    own = shares[np.arange(len(rows)), data.targets[rows]]
    has_twin = np.array([(words == word).sum() == 2 for word in words])
    # A model that has seen both twins gives 0.5 to both. One that has seen only the other twin gives less.
    assert own[has_twin].max() < 0.52
    assert (own[has_twin] < 0.45).mean() > 0.6


def test_a_feature_counts_by_its_ratio_in_two_classes() -> None:
    features = csr_matrix([[0.5, 0.0, 2.0], [0.25, 3.0, 0.0], [0.0, 4.0, 0.0], [1.0, 0.0, 0.0]])
    scaling = teacher.NaiveBayesScaling().fit(features, np.array([0, 1, 1, 0]))
    ratios = np.log(np.array([2, 3, 1]) / 6) - np.log(np.array([3, 1, 2]) / 6)  # texts with each feature, plus one
    assert np.allclose(scaling.transform(features).toarray(), features.toarray() * ratios)
    scaling.fit(features, np.array([0, 1, 2, 0]))
    assert np.allclose(scaling.transform(features).toarray(), features.toarray())


def test_the_predictions_are_computed_once_and_belong_to_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, options = twins(tmp_path), DistillationOptions(folds=3)
    first = distillation_target({"tfidf": []}, data, options)
    monkeypatch.setattr(teacher, "tfidf_probabilities", None)
    again = distillation_target({"tfidf": []}, data, options)
    assert again.fingerprint == first.fingerprint
    batch = next(iter(data.train_dataloader()))
    shares = first.teacher(batch).exp()
    assert torch.equal(again.teacher(batch).exp(), shares)
    assert torch.allclose(shares.sum(dim=1), torch.ones(len(shares)))
    assert torch.isnan(first.teacher(next(iter(data.val_dataloader())))).all(), "no other split has a teacher"
    with pytest.raises(TypeError):
        distillation_target({"tfidf": []}, data, DistillationOptions(folds=2))  # computed again


def test_every_training_row_is_left_out_by_one_fold(tmp_path: Path) -> None:
    whole = twins(tmp_path)
    folds = [twins(tmp_path, folds=3, left_out_fold=fold).rows("train") for fold in range(3)]
    left_out = [set(whole.rows("train")) - set(rows) for rows in folds]
    assert set.union(*left_out) == set(whole.rows("train"))
    assert sum(map(len, left_out)) == len(whole.rows("train"))
    assert max(map(len, left_out)) - min(map(len, left_out)) <= 1


def run_on(data: ReviewData, **options: Any) -> Any:
    """Return what `read_by` reads of a classifier that was trained on some data, with other options."""
    names = ("validation_fraction", "test_fraction", *teacher.ROWS_OF_A_RUN)
    own = {name: getattr(data.options, name) for name in names}
    return SimpleNamespace(
        path=Path("run"),
        class_names=list(data.class_names),
        data_fingerprint=data.source.fingerprint,
        config={"context_length": data.options.context_length, "data": own | {"truncation": "tail"} | options},
        metadata=data.reading(),
    )


def test_a_run_has_seen_its_own_training_rows(tmp_path: Path) -> None:
    data, fold = twins(tmp_path), twins(tmp_path, folds=3, left_out_fold=1)
    assert set(teacher.read_by(run_on(data), data).rows("train")) == set(data.rows("train"))
    for same in (data, fold):
        seen = teacher.read_by(run_on(data, folds=3, left_out_fold=1), same).rows("train")
        assert set(seen) == set(fold.rows("train"))


def test_runs_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    data = twins(tmp_path)
    with pytest.raises(UserError, match=r"^teacher=run: .* data\.split_seed=4 and has seen .*; set data\.split_seed=4"):
        teacher.read_by(run_on(data, split_seed=4), data)
    with pytest.raises(UserError, match=r"^teacher=run: the options of its data cannot be used: .*left_out_fold=9"):
        teacher.read_by(run_on(data, left_out_fold=9), data)
    other = run_on(data)
    other.class_names = ["bad", "good"]
    with pytest.raises(UserError, match=r"^teacher=run: the run predicts bad, good, but this data has the classes"):
        teacher.read_by(other, data)


def test_a_row_gets_the_mean_of_the_runs_that_have_not_seen_it(caplog: pytest.LogCaptureFixture) -> None:
    shares = np.array([[[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]], [[0.5, 0.5], [0.6, 0.4], [0.9, 0.1]]])
    is_seen = np.array([[False, True, True], [False, False, True]])
    found = teacher.mean_of_unseen("runs", shares, is_seen)
    assert np.allclose(found, [[0.3, 0.7], [0.6, 0.4], [0.6, 0.4]])
    assert "teacher=runs was trained on 1 of the 3 training texts" in caplog.text
    caplog.clear()
    teacher.mean_of_unseen("runs", shares[:, :2], is_seen[:, :2])
    assert not caplog.text


def test_a_classifier_teaches_by_its_own_predictions(trained: Callable[[str], Path], tmp_path: Path) -> None:
    run: Any = firstlight.load(trained("sentiment"))
    path = run.config["data"]["path"]
    data = ReviewData(path=path, labels="binary", max_train_rows=101, cache_dir=str(tmp_path))
    data.ensure_setup()
    with patch.object(teacher.log, "warning") as warning:
        taught = distillation_target({"run": [run], "tfidf": []}, data, DistillationOptions(folds=2)).teacher
    assert warning.call_args.args[1:] == ("run", "101", "101")
    batch = SimpleNamespace(rows=torch.from_numpy(data.rows("train")))
    tfidf = distillation_target({"tfidf": []}, data, DistillationOptions(folds=2)).teacher
    own = run.probabilities(data.texts("train", 101))
    expected = (torch.from_numpy(own) + tfidf(batch).exp()) / 2
    assert torch.allclose(taught(batch).exp(), expected, atol=1e-5)
    run.data_fingerprint = "that of other data"
    with patch.object(teacher.log, "warning") as warning:
        distillation_target({"run": [run]}, data, DistillationOptions())
    assert not warning.called


@pytest.mark.slow  # 1 s; tests/lit/test_distillation.py tests the teachers of every kind
def test_a_network_teaches_tokens_of_its_own_vocabulary(trained: Callable[[str], Path], tmp_path: Path) -> None:
    run = firstlight.load(trained("masked_reviews"))
    options = {name: run.config["data"][name] for name in ("path", "tokenizer")}
    data = MaskedReviewData(**options, context_length=19, cache_dir=str(tmp_path))
    data.ensure_setup()
    with patch.object(teachers.log, "warning") as warning:
        taught = teachers.distillation_target_of(KIND, {"run": [run]}, data, DistillationOptions())
    assert "predicts texts that it was trained on" in warning.call_args.args[0]
    batch = next(iter(data.train_dataloader()))
    assert torch.allclose(taught.teacher(batch), run.network(*batch.inputs).log_softmax(dim=1), atol=1e-5)
    data.options = replace(data.options, context_length=1009)
    with pytest.raises(UserError, match=r"^teacher=.*: the run reads 23 tokens, but .*context_length=1009"):
        teachers.distillation_target_of(KIND, {"run": [run]}, data, DistillationOptions())
    other = MaskedReviewData(path=options["path"], tokenizer={"max_size": 11}, cache_dir=str(tmp_path))
    other.ensure_setup()
    with pytest.raises(UserError, match=r"^teacher=.*: the run has another tokenizer than this data"):
        teachers.distillation_target_of(KIND, {"run": [run]}, other, DistillationOptions())


@pytest.mark.slow  # 1.5 s, three trainings; the other tests check that a teacher has the same predictions again
def test_a_resumed_run_with_a_teacher_ends_like_a_whole_one(scripts: Scripts, tiny_training: list[str]) -> None:
    training = ["task=stars", *tiny_training, *TFIDF, "schedule=constant", "test=false"]
    whole = scripts.train(*training, "trainer.max_steps=5")
    resumed = scripts.train(*training, "trainer.max_steps=3")
    assert scripts.train(f"resume={resumed}", "trainer.max_steps=5") == resumed
    contents = [torch.load(run / "checkpoints/last.ckpt", weights_only=True) for run in (whole, resumed)]
    one, other = (content["state_dict"] for content in contents)
    assert all(torch.equal(one[name], weight) for name, weight in other.items())
    said = firstlight.load(whole).record["teacher"]
    assert (said["names"], said["runs"]) == (["tfidf"], [])
    assert contents[0]["firstlight"]["teacher"] == said
    assert 0.2 < said["train_accuracy"] <= 1


def test_a_run_resumes_only_with_its_teacher() -> None:
    tfidf = {"names": ["tfidf"], "fingerprint": "a"}
    refuse_other_teacher(tfidf, tfidf | {"train_loss": 1.0})
    refuse_other_teacher(None, None)
    for now, then in ((None, tfidf), (tfidf, None), (tfidf, tfidf | {"fingerprint": "b"})):
        with pytest.raises(UserError, match=r"^teacher=(tfidf|null) is not the teacher (tfidf|null) that"):
            refuse_other_teacher(now, then)


def test_mistakes_are_one_line(scripts: Scripts, tmp_path: Path) -> None:
    for typed, message in {
        "task=stars teacher=tfdif": "teacher=tfdif: the run folder does not exist",
        "task=names teacher=tfidf": "teacher=tfidf does not apply to a generator; name a run",
        "task=stars data.left_out_fold=5": "data.left_out_fold=5 must be at least 0 and below data.folds=5",
        "task=stars teacher=tfidf distillation.weight=2": "distillation.weight=2.0 must lie between 0 and 1",
    }.items():
        done = scripts.run("train", *typed.split(), "data.source=sample")
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    with pytest.raises(UserError, match=r"distillation\.folds=71: the class 0 has only \d+ training rows"):
        teacher.tfidf_probabilities(twins(tmp_path), folds=71)
