"""The evaluation of the training split after each epoch, which leaves the training as it is."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
import torch
from lightning.pytorch import Callback, Trainer, seed_everything

from callback_fixtures import Memory
from firstlight.callbacks import Accuracy, ReseedEveryStep, TrainingEvaluation
from firstlight.data import CharacterData, ReviewData
from firstlight.data.batches import TrainingBatches
from firstlight.errors import UserError
from firstlight.lab.explore.training import curve_of
from firstlight.lit import Classification, Generation, Training

WORDS = ["awful", "weak", "fine", "good", "great"]
OWN = ("train/eval_loss", "train/eval_accuracy")


class Watch(Callback):
    """Log the next random number at the end of every step, and save a checkpoint after the first epoch."""

    def __init__(self, lines: Memory, folder: Path) -> None:
        self.lines, self.folder = lines, folder

    def on_validation_end(self, trainer: Trainer, *_: Any) -> None:
        if trainer.current_epoch == 0 and not trainer.sanity_checking:
            trainer.save_checkpoint(self.folder / "first_epoch.ckpt")

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        with torch.random.fork_rng():
            self.lines.log_metrics({"random": float(torch.rand(()))}, trainer.global_step)


def reviews(folder: Path) -> ReviewData:
    rows = [f"a {WORDS[i % 5]} thing number {i % 3},{(i + i % 2) % 5}" for i in range(40)]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]))
    options = {"labels": "stars", "context_length": 7, "batch_size": 7}
    encoded = {"target_encoding": True, "target_encoding_pairs": 11}
    return ReviewData(path=str(folder / "reviews.csv"), cache_dir=str(folder), **options, **encoded)


QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


def fit(folder: Path, *callbacks: Callback, **options: Any) -> tuple[Training, Memory]:
    seed_everything(1, verbose=False)
    data = reviews(folder)
    module = Classification.for_data(data, dim=8, num_heads=2, dropout=0.5, lr=0.01)
    lines = Memory()
    callbacks = [ReseedEveryStep(1), Accuracy(), *callbacks, Watch(lines, folder)]
    trainer = Trainer(max_epochs=2, accelerator="cpu", callbacks=callbacks, logger=lines, log_every_n_steps=3, **QUIET)
    trainer.fit(module, datamodule=data, **options)
    return module, lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def runs(folder: Path) -> Callable[[bool], tuple[Training, Memory]]:
    made = {evaluated: fit(folder, *([TrainingEvaluation()] if evaluated else [])) for evaluated in (False, True)}
    return made.__getitem__


def test_it_logs_the_loss_and_accuracy_of_the_complete_split_without_dropout(runs, tmp_path: Path) -> None:
    module, lines = runs(True)
    data = reviews(tmp_path)
    data.setup("fit")
    rows = data.rows("train")
    every_row = TrainingBatches(rows, len(rows), 1)
    batch = next(iter(data.training_loader(data.training_lookup(), every_row)))
    with torch.no_grad():
        outputs, count = module.eval().measure(batch)
    assert count == len(data.rows("train"))
    step, loss = lines.curve("train/eval_loss")[-1]
    assert loss == pytest.approx(float(outputs["loss"]), abs=1e-5)
    accuracy = (outputs["probabilities"].argmax(dim=1) == batch.targets).float().mean()
    assert lines.curve("train/eval_accuracy")[-1] == (step, pytest.approx(float(accuracy)))


def test_it_logs_after_each_epoch_and_the_validation_before_the_first_step(runs) -> None:
    _, lines = runs(True)
    validated = [step for step, _ in lines.curve("val/loss")]
    assert [step for step, _ in lines.curve("train/eval_loss")] == validated[1:]
    assert validated[0] == 0
    assert len(validated) == 3
    assert lines.curve("val/loss")[0][1] == pytest.approx(torch.log(torch.tensor(5.0)), abs=0.5)
    assert 0 <= lines.curve("val/accuracy")[0][1] <= 1


def test_the_training_stays_the_same_to_the_last_bit(runs) -> None:
    (module, lines), (plain, plain_lines) = runs(True), runs(False)
    for own, other in zip(module.parameters(), plain.parameters(), strict=True):
        assert torch.equal(own, other)
    kept = [line for line in lines.lines if not set(OWN) & line[1].keys()]
    assert kept[1:] == plain_lines.lines  # the first is the validation before the first step


def test_a_resumed_training_logs_the_same(runs, folder: Path, tmp_path: Path) -> None:
    module, lines = runs(True)
    resumed, resumed_lines = fit(tmp_path, TrainingEvaluation(), ckpt_path=str(folder / "first_epoch.ckpt"))
    for own, other in zip(module.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(own, other)
    for name in (*OWN, "val/loss"):
        assert resumed_lines.curve(name) == lines.curve(name)[-1:]


def test_it_measures_generators_and_a_last_step_within_an_epoch(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("abcbdbeb" * 60)
    data = CharacterData(path=str(tmp_path / "text.txt"), context_length=5, cache_dir=str(tmp_path))
    module = Generation.for_data(data, dim=8, num_heads=2)
    lines = Memory()
    trainer = Trainer(max_steps=2, accelerator="cpu", callbacks=[TrainingEvaluation()], logger=lines, **QUIET)
    trainer.fit(module, datamodule=data)
    module.eval()
    with torch.no_grad():
        measured = [module.measure(batch) for batch in data.split_loader("train")]
    loss = sum(float(outputs["loss"]) * weight for outputs, weight in measured) / sum(weight for _, weight in measured)
    assert lines.curve("train/eval_loss") == [(1, pytest.approx(loss, abs=1e-5))]


def test_it_needs_a_data_module(tmp_path: Path) -> None:
    data = reviews(tmp_path)
    module = Classification.for_data(data, dim=8, num_heads=2)
    trainer = Trainer(accelerator="cpu", callbacks=[TrainingEvaluation()], logger=False, enable_checkpointing=False)
    with pytest.raises(UserError, match="TrainingEvaluation requires a data module of firstlight"):
        trainer.fit(module, train_dataloaders=data.train_dataloader())


def test_curves_show_the_evaluation_in_place_of_the_means_over_steps() -> None:
    history = pandas.DataFrame({"step": [4, 9], "train/loss": [3.0, 2.0], "train/eval_loss": [math.nan, 1.5]})
    drawn = curve_of(history, "train", "loss")
    assert (drawn.steps.tolist(), drawn.values.tolist()) == ([9], [1.5])
    assert curve_of(history, "train", "accuracy") is None
