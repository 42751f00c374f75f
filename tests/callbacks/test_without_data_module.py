"""The callbacks with a plain Trainer that has loaders and no data module."""

from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from torch.utils.data import DataLoader, TensorDataset

from firstlight.callbacks import (
    Accuracy,
    BitsPerCharacter,
    ConfusionMatrix,
    LastPosition,
    Perplexity,
    TextSamples,
    Throughput,
    TokenAccuracy,
    Translations,
)
from firstlight.data.options import Labels
from firstlight.errors import UserError
from firstlight.lit import Classification, Generation

SIZES = {"dim": 8, "num_heads": 2, "num_layers": 1}


def measured(bench: Any, module: Any, *callbacks: Callback, **source: Any) -> dict[str, float]:
    (found,) = bench.trainer(*callbacks).validate(module, verbose=False, **source)
    return found


@pytest.mark.parametrize("labels", [pytest.param(Labels.binary, marks=pytest.mark.slow), Labels.stars])  # more metrics
def test_a_classifier_is_measured_on_loaders_as_on_its_data_module(bench: Any, tmp_path: Any, labels: Labels) -> None:
    data = bench.data(labels=labels)
    module = Classification.for_data(data, **SIZES)
    found = {}
    for name, source in {"data": {"datamodule": data}, "loaders": {"dataloaders": data.val_dataloader()}}.items():
        matrix = ConfusionMatrix(str(tmp_path / name))
        found[name] = measured(bench, module, Accuracy(), matrix, **source)
        assert matrix.class_names == data.class_names
    assert found["loaders"] == found["data"]
    assert ("val/mean_absolute_error" in found["data"]) == (labels is Labels.stars)
    pictured = [(tmp_path / name / "validation.csv").read_text() for name in found]
    assert pictured[0] == pictured[1]


def test_a_classifier_of_tensors_is_measured_and_its_classes_are_numbered(bench: Any, tmp_path: Any) -> None:
    data = bench.data()
    module = Classification(Classification.for_data(data, **SIZES).network)
    token_ids, targets = torch.randint(2, 100, (30, 11)), torch.arange(30) % 5
    loader = DataLoader(TensorDataset(token_ids, targets), batch_size=10)
    matrix, speed = ConfusionMatrix(str(tmp_path)), Throughput()
    trainer = bench.trainer(Accuracy(), matrix, speed, limit_train_batches=3)
    trainer.fit(module, loader, loader)
    module.eval()
    predicted = module(token_ids, token_ids != 0).argmax(dim=1)
    assert float(trainer.callback_metrics["val/accuracy"]) == pytest.approx((predicted == targets).float().mean())
    assert matrix.class_names == ["0", "1", "2", "3", "4"]
    assert (speed.examples, speed.tokens) == (30, 330)
    assert [step for step, _ in bench.memory.curve("train/accuracy")] == [0, 1, 2]


def test_a_generator_is_measured_on_loaders_as_on_its_data_module(writer_bench: Any) -> None:
    data = writer_bench.data()
    module = Generation.for_data(data, **SIZES)
    callbacks = [Perplexity, BitsPerCharacter, TokenAccuracy, LastPosition]
    found = [
        measured(writer_bench, module, *(callback() for callback in callbacks), **source)
        for source in ({"datamodule": data}, {"dataloaders": data.val_dataloader()})
    ]
    assert found[0] == found[1]
    assert {"val/perplexity", "val/bits_per_character", "val/accuracy", "val/last_position_loss"} <= set(found[0])


def test_a_generator_of_tensors_is_measured(writer_bench: Any) -> None:
    module = Generation.for_data(writer_bench.data(), **SIZES)
    batch = next(iter(writer_bench.data().val_dataloader()))
    loader = DataLoader(TensorDataset(*batch), batch_size=3)
    trainer = writer_bench.trainer(Perplexity(), TokenAccuracy(), Throughput(), limit_train_batches=2)
    trainer.fit(module, loader, loader)
    assert {"val/perplexity", "val/accuracy", "train/accuracy"} <= set(trainer.callback_metrics)


@pytest.mark.parametrize("callback", [TextSamples, Translations])
def test_a_callback_that_needs_the_data_module_says_so_before_the_training(writer_bench, tmp_path, callback) -> None:
    data = writer_bench.data()
    trainer = writer_bench.trainer(callback(str(tmp_path)))
    with pytest.raises(UserError, match=f"{callback.__name__} requires a data module .*; pass datamodule=data"):
        trainer.fit(Generation.for_data(data, **SIZES), data.train_dataloader())
    assert trainer.global_step == 0


def test_the_accuracy_of_classes_is_refused_for_a_generator(writer_bench: Any, tmp_path: Any) -> None:
    data = writer_bench.data()
    for callback in (Accuracy(), ConfusionMatrix(str(tmp_path))):
        with pytest.raises(UserError, match="require data with classes, such as ReviewData, not CharacterData"):
            writer_bench.trainer(callback).fit(Generation.for_data(data, **SIZES), datamodule=data)
