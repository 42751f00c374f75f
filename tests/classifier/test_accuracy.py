import pytest
import torch
from lightning.pytorch import Callback
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error

from firstlight.classifier.accuracy import Accuracy
from firstlight.data.options import Labels

ALL_LABELS = pytest.mark.parametrize("labels", Labels)


def names_of(labels: Labels) -> set[str]:
    ordered = {"mean_absolute_error"} if labels is Labels.stars else set()
    return {"loss", "accuracy", "macro_f1"} | ordered


def expected(judged, stage: str, labels: Labels) -> dict[str, float]:
    targets, predictions = judged.targets[stage], judged.predictions[stage]
    values = {
        f"{stage}/accuracy": accuracy_score(targets, predictions),
        f"{stage}/macro_f1": f1_score(targets, predictions, average="macro"),
    }
    if labels is Labels.stars:
        values[f"{stage}/mean_absolute_error"] = mean_absolute_error(targets, predictions)
    return values


@ALL_LABELS
def test_validation_metrics_are_scikit_learns_on_the_same_predictions(bench, judged, labels: Labels) -> None:
    data = bench.data(labels=labels)
    trainer = bench.fit(Accuracy(), judged, data=data)
    assert len(judged.targets["val"]) == len(data.rows("validation"))
    measured = {name: float(value) for name, value in trainer.callback_metrics.items() if name.startswith("val/")}
    assert set(measured) == {f"val/{name}" for name in names_of(labels)}
    del measured["val/loss"]
    assert measured == pytest.approx(expected(judged, "val", labels), abs=1e-6)


@ALL_LABELS
def test_test_metrics_are_scikit_learns_on_the_same_predictions(bench, judged, labels: Labels) -> None:
    data = bench.data(labels=labels)
    (measured,) = bench.trainer(Accuracy(), judged).test(bench.module(data), datamodule=data, verbose=False)
    assert set(measured) == {f"test/{name}" for name in names_of(labels)}
    del measured["test/loss"]
    assert measured == pytest.approx(expected(judged, "test", labels), abs=1e-6)


def test_every_validation_is_measured_by_itself(bench, judged) -> None:
    """The counts of earlier validations, and of the validation at the end, are not included."""
    seen = []

    class Each(Callback):
        def on_validation_end(self, trainer, pl_module):
            seen.append(expected(judged, "val", Labels.stars))
            judged.targets["val"], judged.predictions["val"] = [], []

    data = bench.data()
    trainer = bench.fit(Accuracy(), judged, Each(), data=data, max_epochs=3)
    trainer.validate(trainer.lightning_module, datamodule=data, verbose=False)
    measured = [value for _, value in bench.memory.curve("val/accuracy")]
    assert measured == pytest.approx([values["val/accuracy"] for values in seen])
    assert len(measured) == 4


def test_training_accuracy_is_the_mean_since_it_was_last_logged(bench) -> None:
    shares = []

    class Each(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            shares.append((outputs["logits"].argmax(dim=1) == batch.targets).float().mean().item())

    bench.fit(Accuracy(), Each(), log_every_n_steps=3, limit_train_batches=9)
    means = torch.tensor(shares).reshape(3, 3).mean(dim=1).tolist()
    assert [value for _, value in bench.memory.curve("train/accuracy")] == pytest.approx(means)


def test_training_accuracy_of_one_logit_counts_the_sign(bench) -> None:
    shares = []

    class Each(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            shares.append(((outputs["logits"].squeeze(1) > 0).int() == batch.targets).float().mean().item())

    bench.fit(Accuracy(), Each(), data=bench.data(labels=Labels.binary))
    assert [value for _, value in bench.memory.curve("train/accuracy")] == pytest.approx(shares)


def test_with_accumulation_every_batch_counts(bench) -> None:
    """Two steps have three batches each. The last step of an epoch has fewer."""
    shares = []

    class Each(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            shares.append((outputs["logits"].argmax(dim=1) == batch.targets).float().mean().item())

    bench.fit(Accuracy(), Each(), log_every_n_steps=2, limit_train_batches=11, accumulate_grad_batches=3)
    logged = [value for _, value in bench.memory.curve("train/accuracy")]
    assert logged == pytest.approx([sum(shares[:6]) / 6, sum(shares[6:]) / 5])


def test_what_was_counted_goes_into_the_checkpoint(bench) -> None:
    first, second = Accuracy(), Accuracy()
    bench.fit(first, log_every_n_steps=4)  # two steps are not yet logged
    state = first.state_dict()
    assert state["count"] == 2 * 20
    second.load_state_dict(state)
    assert second.training.take() == pytest.approx(state["total"] / 40)
