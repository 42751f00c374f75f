"""What a training that does not learn says, and that one which learns says nothing."""

import logging
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback

from firstlight.callbacks import LearningChecks
from firstlight.callbacks.learning_checks import NonFiniteGuard
from firstlight.data import CharacterData, ReviewData
from firstlight.errors import RunError
from firstlight.lit import Classification, Generation, cosine
from stand_ins import trainer_of


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(1)


WORDS = ["lamp", "book", "cable", "chair", "desk", "phone"]


def data_of(folder: Path, *, is_noise: bool = False, rows: int = 64, batch_size: int = 16) -> ReviewData:
    """Reviews whose first word is their class, or whose classes are random."""
    draw = torch.Generator().manual_seed(0)
    lines = []
    for i in range(rows):
        label = int(torch.randint(2, (1,), generator=draw)) if is_noise else i % 2
        word = WORDS[i % len(WORDS)]
        lines.append(f"{word if is_noise else ('good', 'bad')[label]} {word} number {i},{label}")
    for split in ("train", "validation"):
        (folder / f"{split}.csv").write_text(
            "text,label\n" + "\n".join(lines if split == "train" else lines[::-1]) + "\n"
        )
    return ReviewData(
        path=str(folder), labels="classes", context_length=8, cache_dir=str(folder / "cache"), batch_size=batch_size
    )


def warnings_of(
    caplog: pytest.LogCaptureFixture, data: Any, module: Any, *, epochs: int = 10
) -> tuple[LearningChecks, list[str]]:
    checks = LearningChecks()
    with caplog.at_level(logging.WARNING, logger="firstlight"):
        trainer_of(checks, max_epochs=epochs, log_every_n_steps=1, num_sanity_val_steps=2).fit(module, datamodule=data)
    return checks, checks.said


def test_a_training_that_learns_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = data_of(tmp_path)
    module = Classification.for_data(data, dim=16, num_heads=2, lr=1e-2)
    checks, said = warnings_of(caplog, data, module)
    assert said == []
    assert checks.chance == pytest.approx(math.log(2), abs=1e-3)
    assert checks._counts.total() == 64  # the targets of one validation, without those of the sanity check


def test_a_rate_of_nothing_stays_at_chance_and_a_long_warm_up_is_named(tmp_path, caplog) -> None:
    data = data_of(tmp_path, batch_size=64)
    sgd = partial(torch.optim.SGD, lr=1e-9)
    module = Classification.for_data(
        data, dim=16, num_heads=2, dropout=0.0, optimizer=sgd, schedule=partial(cosine, warmup_steps=6)
    )
    _, said = warnings_of(caplog, data, module, epochs=30)
    assert said == ["warm-up", "chance", "training loss"]
    text = caplog.text
    assert "the warm-up is 6 of 30 steps; shorten it with schedule.warmup_steps=3" in text
    assert text.count("never better than always answering the most frequent class (50% of 64 targets); check the") == 1
    assert text.count("docs/learning.md") == 3


def test_random_classes_are_said_to_be_at_chance_and_not_to_be_memorized(tmp_path, caplog) -> None:
    data = data_of(tmp_path, is_noise=True)
    (tmp_path / "validation.csv").write_text(
        (tmp_path / "validation.csv").read_text().translate(str.maketrans("01", "10"))
    )
    module = Classification.for_data(data, dim=32, num_heads=2, lr=1e-2, dropout=0.0)
    _, said = warnings_of(caplog, data, module, epochs=20)
    assert "chance" in said
    assert "memorizing" not in said
    assert caplog.text.count("check the labels") == 1


def test_memorizing_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = data_of(tmp_path)
    lines = (tmp_path / "validation.csv").read_text().splitlines()
    wrong = [line.translate(str.maketrans("01", "10")) if i % 4 == 1 else line for i, line in enumerate(lines)]
    (tmp_path / "validation.csv").write_text("\n".join(wrong) + "\n")
    module = Classification.for_data(data, dim=32, num_heads=2, lr=1e-2, dropout=0.0)
    _, said = warnings_of(caplog, data, module, epochs=20)
    assert said == ["memorizing"]
    assert caplog.text.count("memorizes its training data") == 1


def test_the_chance_of_a_generator_is_the_entropy_of_its_tokens(tmp_path, caplog) -> None:
    (tmp_path / "novel.txt").write_text("abab" * 300)
    data = CharacterData(path=str(tmp_path / "novel.txt"), context_length=8, cache_dir=str(tmp_path / "cache"))
    checks, said = warnings_of(caplog, data, Generation.for_data(data, dim=8, num_heads=2, lr=1e-2), epochs=6)
    assert checks.chance == pytest.approx(math.log(2), abs=1e-2)
    assert said == []


def test_a_resumed_run_repeats_nothing() -> None:
    first, second = LearningChecks(), LearningChecks()
    first.first_loss, first.best, first.accuracy, first.said = 0.7, (0.5, 0.4), 0.8, ["chance"]
    second.load_state_dict(first.state_dict())
    assert (second.first_loss, second.best, second.accuracy, second.said) == (0.7, (0.5, 0.4), 0.8, ["chance"])


# --- a loss that is no number ---


class SpoiltLoss(Callback):
    """Callback that makes the logits of one batch NaN or infinite, and stores the weights before it."""

    def __init__(self, batch: int, value: float) -> None:
        self.batch, self.value = batch, value
        self.before: dict[str, torch.Tensor] = {}

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if batch_idx == self.batch:
            self.before = {name: weight.clone() for name, weight in pl_module.state_dict().items()}
            pl_module.network.register_forward_hook(lambda _, inputs, logits: logits * 0 + self.value)


@pytest.mark.parametrize(("value", "accumulate"), [(float("nan"), 1), (float("inf"), 2)])
def test_a_loss_that_is_no_number_ends_the_run_before_the_weights_change(bench, value: float, accumulate: int) -> None:
    spoilt = SpoiltLoss(4, value)
    data = bench.data()
    module = bench.module(data)
    with pytest.raises(RunError, match=rf"^the loss is nan at step {4 // accumulate}; lower optimizer\.lr, or set"):
        bench.fit(NonFiniteGuard(), spoilt, data=data, module=module, accumulate_grad_batches=accumulate)
    assert all(torch.equal(module.state_dict()[name], spoilt.before[name]) for name in spoilt.before)


def test_an_infinite_loss_is_named(bench, monkeypatch) -> None:
    data = bench.data()
    module = bench.module(data)
    step = module.training_step
    monkeypatch.setattr(module, "training_step", lambda batch: step(batch) | {"loss": step(batch)["loss"] * 1e39})
    with pytest.raises(RunError, match=r"^the loss is inf at step 0"):
        bench.fit(NonFiniteGuard(), data=data, module=module)
