"""A loss of the user in place of the cross entropy, with everything that is added to the cross entropy."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from callback_fixtures import sentences, syllables
from firstlight.data import MaskedReviewData, ReviewBatch, ReviewData
from firstlight.errors import UserError
from firstlight.lit import Classification, Generation, MaskedLanguageModeling, Translation, classification_loss
from firstlight.lit.losses import Distillation
from stand_ins import trainer_of

SIZES = {"dim": 8, "num_heads": 2, "num_layers": 1, "dropout": 0.0}
EACH = partial(cross_entropy, reduction="none")
OPTIONS = [{}, {"label_smoothing": 0.1}, {"ordinal_smoothing": 0.7}, {"label_smoothing": 0.2, "ordinal_smoothing": 0.7}]


@pytest.mark.parametrize("num_outputs", [1, 5])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("has_weights", [False, True])
def test_the_cross_entropy_as_an_own_loss_gives_the_same_loss(num_outputs, options, has_weights) -> None:
    num_classes = max(2, num_outputs)
    weights = torch.arange(1.0, num_classes + 1) if has_weights and "ordinal_smoothing" in options else None
    if has_weights and not options:
        weights = torch.arange(1.0, num_classes + 1)  # torch weighs the classes of the smoothing part differently
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(7, num_outputs, generator=generator)
    targets = torch.randint(num_classes, (7,), generator=generator)
    expected = classification_loss(logits, targets, weights, **options)
    assert_close(classification_loss(logits, targets, weights, **options, loss=EACH), expected)


@pytest.fixture(params=["classifier", "two classes", "generator", "translator", "masked"])
def make(request: pytest.FixtureRequest, reviews_folder: Path, tmp_path: Path) -> Callable[..., tuple[Any, Any]]:
    """A function from options of the module to a data module and a LightningModule, always with the same weights."""
    cache = {"cache_dir": str(tmp_path / "cache")}
    reviews = {"path": str(reviews_folder), "context_length": 11, "batch_size": 20, **cache}
    kinds: dict[str, Callable[[], tuple[Any, type]]] = {
        "classifier": lambda: (ReviewData(labels="stars", balance="weights", **reviews), Classification),
        "two classes": lambda: (ReviewData(labels="binary", **reviews), Classification),
        "masked": lambda: (MaskedReviewData(**reviews), MaskedLanguageModeling),
        "generator": lambda: (syllables(tmp_path), Generation),
        "translator": lambda: (sentences(tmp_path), Translation),
    }

    def made(**options: Any) -> tuple[Any, Any]:
        data, module = kinds[request.param]()
        torch.manual_seed(1)
        return data, module.for_data(data, **SIZES, optimizer=partial(torch.optim.SGD, lr=0.5), **options)

    return made


def trained(parts: tuple[Any, Any], teacher_of: Any = None) -> dict[str, float]:
    """Train for a few steps, and return the metrics."""
    data, module = parts
    if teacher_of is not None:
        module.distillation = Distillation(lambda batch: teacher_of(module, batch), weight=0.5, temperature=2.0)
    trainer = trainer_of(limit_train_batches=4, limit_val_batches=2)
    trainer.fit(module, datamodule=data)
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


def uniform(module: Any, batch: Any) -> torch.Tensor:
    """The log probabilities of a teacher that has learned nothing."""
    logits = module.target_logits(module.network, batch)
    return torch.zeros(len(logits), max(2, logits.shape[1])).log_softmax(dim=1)


def test_a_module_learns_from_a_teacher_with_the_own_cross_entropy_what_it_learns_without(make: Any) -> None:
    assert trained(make(loss=EACH), uniform) == pytest.approx(trained(make(), uniform), rel=1e-4)


def test_training_measures_the_own_loss_and_validation_the_cross_entropy(make: Any) -> None:
    def larger(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return cross_entropy(logits, targets, reduction="none") + 1  # the same gradient

    expected = trained(make())
    assert trained(make(loss=larger)) == pytest.approx(expected | {"train/loss": expected["train/loss"] + 1}, rel=1e-4)


@pytest.mark.parametrize("make", ["generator"], indirect=True)
def test_a_loss_that_is_already_a_mean_is_refused(make: Any) -> None:
    message = ", not torch.Size([]); use reduction='none'"
    with pytest.raises(UserError, match=re.escape(message)):
        trained(make(loss=nn.CrossEntropyLoss()))


def test_r_drop_applies_to_an_own_loss(reviews_folder: Path, tmp_path: Path) -> None:
    data = ReviewData(path=str(reviews_folder), cache_dir=str(tmp_path), labels="stars", context_length=11)
    options = {**SIZES, "dropout": 0.5, "r_drop": 3.0}
    losses = []
    for loss in (None, EACH):
        torch.manual_seed(1)
        module = Classification.for_data(data, **options, loss=loss)
        batch = ReviewBatch(*(torch.as_tensor(part) for part in next(iter(data.train_dataloader()))))
        torch.manual_seed(2)
        losses.append(module.training_step(batch)["loss"].item())
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.parametrize("make", ["classifier"], indirect=True)
def test_a_loss_must_be_a_function(make: Any) -> None:
    with pytest.raises(TypeError, match="loss='focal' must be a function"):
        make(loss="focal")
