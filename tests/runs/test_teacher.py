"""Tests of `teacher=`: predictions that never saw what they score, exact resuming, and one-line mistakes."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import firstlight
from firstlight.data import ReviewData
from firstlight.errors import UserError
from firstlight.kinds.classifier import tfidf_teacher
from firstlight.kinds.classifier.teacher import lesson
from firstlight.lit.distillation_options import DistillationOptions
from firstlight.training.teacher import refuse_other_teacher
from tests_support import Scripts

TWINS = 83
TFIDF = ["teacher=tfidf", "distillation.folds=2", "distillation.weight=0.7", "distillation.temperature=2"]


def twins(folder: Path, **options: Any) -> ReviewData:
    """Return data in which each word is in two texts, one of either class."""
    with (folder / "twins.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(TWINS):
            writer.writerows([[f"word{number}", 0], [f"word{number}", 1]])
    data = ReviewData(path=str(folder / "twins.csv"), labels="classes", cache_dir=str(folder / "cache"), **options)
    data.ensure_setup()
    return data


def test_the_teacher_never_scores_what_it_was_fitted_on(tmp_path: Path) -> None:
    data = twins(tmp_path)
    rows = data.rows("train")
    words = data.encoded.ids.select(rows).ids
    shares = tfidf_teacher.probabilities(data, folds=5)
    own = shares[np.arange(len(rows)), data.targets[rows]]
    has_twin = np.array([(words == word).sum() == 2 for word in words])
    # A model that has seen both twins gives 0.5 to both. One that has seen only the other twin gives less.
    assert own[has_twin].max() < 0.52
    assert (own[has_twin] < 0.45).mean() > 0.6


def test_the_predictions_are_computed_once_and_belong_to_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, options = twins(tmp_path), DistillationOptions(folds=3)
    first = lesson(["tfidf"], data, options)
    monkeypatch.setattr(tfidf_teacher, "probabilities", None)
    again = lesson(["tfidf"], data, options)
    assert again.fingerprint == first.fingerprint
    batch = next(iter(data.train_dataloader()))
    shares = first.teacher(batch).exp()
    assert torch.equal(again.teacher(batch).exp(), shares)
    assert torch.allclose(shares.sum(dim=1), torch.ones(len(shares)))
    assert torch.isnan(first.teacher(next(iter(data.val_dataloader())))).all(), "no other split has a teacher"
    with pytest.raises(TypeError):
        lesson(["tfidf"], data, DistillationOptions(folds=2))  # computed again


def test_a_resumed_run_with_a_teacher_ends_like_a_whole_one(scripts: Scripts, tiny_training: list[str]) -> None:
    training = ["task=stars", *tiny_training, *TFIDF, "schedule=constant", "test=false"]
    whole = scripts.train(*training, "trainer.max_steps=5")
    resumed = scripts.train(*training, "trainer.max_steps=3")
    assert scripts.train(f"resume={resumed}", "trainer.max_steps=5") == resumed
    with_teacher = [weights(whole), weights(resumed)]
    assert all(torch.equal(with_teacher[0][name], weight) for name, weight in with_teacher[1].items())
    said = firstlight.load(whole).record["teacher"]
    assert said["names"] == ["tfidf"]
    assert 0.2 < said["train_accuracy"] <= 1
    card = torch.load(whole / "checkpoints/last.ckpt", weights_only=True)["firstlight"]
    assert card["teacher"] == said


def weights(run: Path) -> dict[str, torch.Tensor]:
    return torch.load(run / "checkpoints/last.ckpt", weights_only=True)["state_dict"]


def test_a_run_resumes_only_with_its_teacher() -> None:
    tfidf = {"names": ["tfidf"], "fingerprint": "a"}
    refuse_other_teacher(tfidf, tfidf | {"train_loss": 1.0})
    refuse_other_teacher(None, None)
    for now, then in ((None, tfidf), (tfidf, None), (tfidf, tfidf | {"fingerprint": "b"})):
        with pytest.raises(UserError, match=r"^teacher=(tfidf|null) is not the teacher (tfidf|null) that"):
            refuse_other_teacher(now, then)


def test_mistakes_are_one_line(scripts: Scripts, tmp_path: Path) -> None:
    for typed, message in {
        "task=stars teacher=tfdif": "teacher=tfdif",
        "task=names teacher=tfidf": "teacher=tfidf",
        "task=stars teacher=tfidf distillation.weight=2": "distillation.weight=2.0 must lie between 0 and 1",
    }.items():
        done = scripts.run("train", *typed.split(), "data.source=sample")
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    with pytest.raises(UserError, match=r"distillation\.folds=71: the class 0 has only \d+ training rows"):
        tfidf_teacher.probabilities(twins(tmp_path), folds=71)
