"""Metrics of torchmetrics that a user adds: of training, validation and test."""

from typing import Any

import pytest
import torch
from sklearn.metrics import cohen_kappa_score, log_loss
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassCohenKappa, MulticlassF1Score

from callback_fixtures import Bench, Judged, syllables
from firstlight.callbacks import TokenAccuracy, TorchMetric
from firstlight.errors import UserError
from firstlight.lit import Generation


def kappa() -> TorchMetric:
    return TorchMetric(MulticlassCohenKappa(num_classes=5), "kappa")


@pytest.mark.parametrize("stage", ["val", "test"])
def test_a_metric_has_the_value_of_the_complete_split(bench: Bench, judged: Judged, stage: str) -> None:
    data = bench.data()
    trainer = bench.trainer(kappa(), judged)
    evaluate = trainer.validate if stage == "val" else trainer.test
    (metrics,) = evaluate(bench.module(data), datamodule=data, verbose=False)
    expected = cohen_kappa_score(judged.targets[stage], judged.predictions[stage])
    assert metrics[f"{stage}/kappa"] == pytest.approx(expected, abs=1e-6)


def test_a_classifier_passes_probabilities(bench: Bench) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    class Kept(MulticlassAccuracy):
        def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
            seen.append((preds, target))
            super().update(preds, target)

    trainer = bench.trainer()
    data = bench.data()
    trainer.callbacks.append(TorchMetric(Kept(num_classes=5), "kept"))
    (metrics,) = trainer.validate(bench.module(data), datamodule=data, verbose=False)
    shares, targets = (torch.cat(parts).numpy() for parts in zip(*seen, strict=True))
    assert shares.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert log_loss(targets, shares, labels=range(5)) == pytest.approx(metrics["val/loss"], rel=1e-4)


def test_training_logs_the_metric_of_single_batches(bench: Bench) -> None:
    accuracy = TorchMetric(MulticlassAccuracy(num_classes=5, average="micro"), "share")
    trainer = bench.fit(accuracy, log_every_n_steps=2, limit_val_batches=0)
    found = bench.memory.curve("train/share")
    assert [step for step, _ in found] == [1, 3, 5]
    assert all(round(20 * value, 4) % 1 == 0 for _, value in found)  # of the 20 texts of a batch
    assert "train/share" in trainer.callback_metrics


def test_a_generator_passes_predicted_and_true_tokens(tmp_path: Any, bench: Bench) -> None:
    data = syllables(tmp_path)
    module = Generation.for_data(data, dim=8, num_heads=2)
    share = TorchMetric(MulticlassAccuracy(data.tokenizer.vocab_size, average="micro"), "share")
    trainer = bench.fit(share, TokenAccuracy(), data=data, module=module)
    metrics = trainer.callback_metrics
    assert metrics["val/share"] == pytest.approx(float(metrics["val/accuracy"]), abs=1e-6)
    shares, accuracies = ([value for _, value in bench.memory.curve(f"train/{name}")] for name in ("share", "accuracy"))
    assert shares == pytest.approx(accuracies, abs=1e-6)


def test_a_collection_is_logged_by_the_names_of_its_metrics(bench: Bench) -> None:
    collection = MetricCollection({"kappa": MulticlassCohenKappa(5), "weighted_f1": MulticlassF1Score(5)})
    trainer = bench.fit(TorchMetric(collection, "both"))
    assert {"val/kappa", "val/weighted_f1", "train/kappa"} <= set(trainer.callback_metrics)


def test_a_metric_of_several_numbers_is_refused(bench: Bench) -> None:
    each = TorchMetric(MulticlassAccuracy(num_classes=5, average=None), "each")
    message = r"callbacks\.each: the value of each must be one number, not a tensor of shape \(5,\); average it"
    with pytest.raises(UserError, match=message):
        bench.fit(each)
