import pytest
from lightning.pytorch import Callback

from firstlight.lit.losses import classification_loss
from firstlight.lit.running_mean import TrainingLoss


class TrueLosses(Callback):
    """Callback that computes the loss of every batch again from its logits."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.values.append(classification_loss(outputs["logits"], batch.targets).item())


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# --- the mean ---


# --- the callback ---


def test_the_mean_goes_on_into_the_next_epoch(bench) -> None:
    losses = TrueLosses()
    bench.fit(TrainingLoss(), losses, log_every_n_steps=4, limit_train_batches=3, max_epochs=3)
    assert bench.memory.curve("train/loss") == [
        (3, pytest.approx(mean(losses.values[:4]))),
        (7, pytest.approx(mean(losses.values[4:8]))),
    ]


def test_with_accumulation_the_loss_is_that_of_a_batch_and_none_is_left_out(bench) -> None:
    losses = TrueLosses()
    bench.fit(TrainingLoss(), losses, log_every_n_steps=2, limit_train_batches=11, accumulate_grad_batches=3)
    assert bench.memory.curve("train/loss") == [
        (1, pytest.approx(mean(losses.values[:6]))),
        (3, pytest.approx(mean(losses.values[6:]))),
    ]


def test_without_logging_steps_nothing_is_logged(bench) -> None:
    bench.fit(TrainingLoss(), log_every_n_steps=0)
    assert bench.memory.curve("train/loss") == []


def test_what_was_summed_goes_into_the_checkpoint(bench, at, tmp_path) -> None:
    """A run that is resumed between two logged lines logs the same next line as an uninterrupted run."""
    path = tmp_path / "at-3.ckpt"
    bench.fit(
        TrainingLoss(), at("on_train_batch_end", 3, lambda trainer: trainer.save_checkpoint(path)), log_every_n_steps=4
    )
    (line,) = bench.memory.curve("train/loss")
    bench.memory.lines.clear()
    bench.fit(TrainingLoss(), log_every_n_steps=4, ckpt_path=path)
    assert bench.memory.curve("train/loss") == [line]
