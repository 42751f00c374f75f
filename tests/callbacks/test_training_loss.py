import pytest
from lightning.pytorch import Callback

from firstlight.callbacks import Perplexity
from firstlight.lit import TrainingLoss, classification_loss


class TrueLosses(Callback):
    """Callback that computes the loss of every batch again from its logits."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.values.append(classification_loss(outputs["logits"], batch.targets).item())


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize(
    ("options", "logged"),
    [
        ({"log_every_n_steps": 4, "limit_train_batches": 3, "max_epochs": 3}, {3: slice(4), 7: slice(4, 8)}),
        (
            {"log_every_n_steps": 2, "limit_train_batches": 11, "accumulate_grad_batches": 3},
            {1: slice(6), 3: slice(6, None)},
        ),
        ({"log_every_n_steps": 0}, {}),
    ],
    ids=["into the next epoch", "with accumulation", "without logging steps"],
)
def test_the_loss_is_the_mean_of_all_batches_since_it_was_logged(bench, options, logged: dict[int, slice]) -> None:
    losses = TrueLosses()
    bench.fit(TrainingLoss(), losses, **options)
    expected = [(step, pytest.approx(mean(losses.values[part]))) for step, part in logged.items()]
    assert bench.memory.curve("train/loss") == expected


@pytest.mark.parametrize(("callback", "name"), [(TrainingLoss, "train/loss"), (Perplexity, "train/perplexity")])
def test_what_was_summed_goes_into_the_checkpoint(writer_bench, at, callback, name: str) -> None:
    """A run that is resumed between two logged lines logs the same next line as an uninterrupted run."""
    path = writer_bench.folder / "at-3.ckpt"
    save = at("on_train_batch_end", 3, lambda trainer: trainer.save_checkpoint(path))
    writer_bench.fit(callback(), save, log_every_n_steps=4)
    (line,) = writer_bench.memory.curve(name)
    writer_bench.memory.lines.clear()
    writer_bench.fit(callback(), log_every_n_steps=4, ckpt_path=path)
    assert writer_bench.memory.curve(name) == [line]
