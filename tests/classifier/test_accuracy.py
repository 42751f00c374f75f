import pytest
from lightning.pytorch import Callback
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error

from firstlight.classifier.metrics import Accuracy
from firstlight.data.options import Labels


def expected(judged, stage: str, labels: Labels) -> dict[str, float]:
    targets, predictions = judged.targets[stage], judged.predictions[stage]
    values = {
        f"{stage}/accuracy": accuracy_score(targets, predictions),
        f"{stage}/macro_f1": f1_score(targets, predictions, average="macro"),
    }
    if labels is Labels.stars:
        values[f"{stage}/mean_absolute_error"] = mean_absolute_error(targets, predictions)
    return values


@pytest.mark.parametrize("stage", ["val", "test"])
@pytest.mark.parametrize("labels", Labels)
def test_metrics_are_scikit_learns_on_the_same_predictions(bench, judged, labels: Labels, stage: str) -> None:
    data = bench.data(labels=labels)
    trainer = bench.trainer(Accuracy(), judged)
    (measured,) = (trainer.validate if stage == "val" else trainer.test)(
        bench.module(data), datamodule=data, verbose=False
    )
    assert len(judged.targets[stage]) == len(data.rows("validation" if stage == "val" else "test"))
    assert measured.pop(f"{stage}/loss") > 0
    assert measured == pytest.approx(expected(judged, stage, labels), abs=1e-6)


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


class Shares(Callback):
    """Callback that stores the share of correct rows of each training batch."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        logits = outputs["logits"]
        predicted = logits.argmax(dim=1) if logits.shape[1] > 1 else (logits.squeeze(1) > 0).int()
        self.seen.append((predicted == batch.targets).float().mean().item())


def test_training_accuracy_of_one_logit_counts_the_sign(bench) -> None:
    shares = Shares()
    bench.fit(Accuracy(), shares, data=bench.data(labels=Labels.binary))
    assert [value for _, value in bench.memory.curve("train/accuracy")] == pytest.approx(shares.seen)


def test_with_accumulation_every_batch_counts(bench) -> None:
    """Two steps have three batches each. The last step of an epoch has fewer."""
    shares = Shares()
    bench.fit(Accuracy(), shares, log_every_n_steps=2, limit_train_batches=11, accumulate_grad_batches=3)
    logged = [value for _, value in bench.memory.curve("train/accuracy")]
    assert logged == pytest.approx([sum(shares.seen[:6]) / 6, sum(shares.seen[6:]) / 5])


def test_what_was_counted_goes_into_the_checkpoint(bench) -> None:
    first, second = Accuracy(), Accuracy()
    bench.fit(first, log_every_n_steps=4)  # two steps are not yet logged
    state = first.state_dict()
    assert state["count"] == 2 * 20
    second.load_state_dict(state)
    assert second.take_mean() == pytest.approx(state["total"] / 40)
