"""The metrics with a LightningModule of the user, whose steps return tensors or dicts with other keys."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

from firstlight.callbacks import Accuracy, ConfusionMatrix, LastPosition, Perplexity, TokenAccuracy, TorchMetric
from firstlight.errors import UserError
from stand_ins import trainer_of

CLASSES, LENGTH, IGNORED = 3, 5, -100

Returns = Callable[[Tensor, Tensor, Tensor], Any]  # of logits, targets and the mean loss


class Own(LightningModule):
    """A module without firstlight. Its inputs are numbers, (batch, 7) or (batch, length, 7)."""

    def __init__(self, returns: Returns, training: Returns = lambda logits, targets, loss: loss) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.returns, self.of_training = nn.Linear(7, CLASSES), returns, training

    def parts(self, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        inputs, targets = batch.values() if isinstance(batch, dict) else batch
        logits = self.layer(inputs)
        return logits, targets, F.cross_entropy(logits.flatten(0, -2), targets.flatten())

    def training_step(self, batch: Any) -> Any:
        return self.of_training(*self.parts(batch))

    def validation_step(self, batch: Any) -> Any:
        return self.returns(*self.parts(batch))

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)


def trainer(*callbacks: Callback) -> Trainer:
    return trainer_of(*callbacks, log_every_n_steps=1)


def texts() -> TensorDataset:
    """20 inputs with a class each."""
    return TensorDataset(torch.randn(20, 7, generator=torch.manual_seed(2)), torch.arange(20) % CLASSES)


def windows() -> TensorDataset:
    """20 windows with a target at each position, some of which are padding."""
    targets = torch.arange(20 * LENGTH).view(20, LENGTH) % CLASSES
    targets[13:, 2:] = IGNORED
    return TensorDataset(torch.randn(20, LENGTH, 7, generator=torch.manual_seed(2)), targets)


def as_tensor(logits: Tensor, targets: Tensor, loss: Tensor) -> Tensor:
    return logits


def as_dict(logits: Tensor, targets: Tensor, loss: Tensor) -> dict[str, Tensor]:
    return {"loss": loss, "logits": logits}


def with_targets(logits: Tensor, targets: Tensor, loss: Tensor) -> dict[str, Tensor]:
    return {"loss": loss, "logits": logits, "targets": targets}


def only_loss(logits: Tensor, targets: Tensor, loss: Tensor) -> Tensor:
    return loss


def nothing(logits: Tensor, targets: Tensor, loss: Tensor) -> None:
    return None


def named(rows: list[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """A batch that is a dict."""
    inputs, labels = zip(*rows, strict=True)
    return {"inputs": torch.stack(inputs), "labels": torch.stack(labels)}


@pytest.mark.parametrize(
    ("callback", "data", "returns", "training", "collate"),
    [
        (Accuracy, texts(), as_tensor, with_targets, None),
        (Accuracy, texts(), as_dict, with_targets, None),
        (Accuracy, texts(), with_targets, with_targets, named),
        (TokenAccuracy, windows(), as_tensor, as_dict, None),
    ],
)
def test_the_accuracy_of_a_module_of_the_user_is_that_of_its_logits(callback, data, returns, training, collate) -> None:
    module, loader = Own(returns, training), DataLoader(data, batch_size=6, collate_fn=collate)
    fitted = trainer(callback(), TorchMetric(MulticlassAccuracy(CLASSES, average="micro"), "own"))
    fitted.fit(module, loader, loader)
    inputs, targets = data.tensors
    is_real = targets != IGNORED
    expected = (module.layer(inputs).argmax(dim=-1) == targets)[is_real].float().mean()
    for name in ("val/accuracy", "val/own"):
        assert float(fitted.callback_metrics[name]) == pytest.approx(float(expected))
    assert {"train/accuracy", "train/own"} <= set(fitted.callback_metrics)


def test_the_confusion_matrix_of_a_module_of_the_user_counts_each_text(tmp_path: Path) -> None:
    matrix = ConfusionMatrix(str(tmp_path), most_printed=0)
    trainer(matrix).validate(Own(with_targets), DataLoader(texts(), batch_size=6, collate_fn=named), verbose=False)
    assert sum(int(line.split(",")[2]) for line in (tmp_path / "validation.csv").read_text().splitlines()[1:]) == 20


@pytest.mark.parametrize("returns", [only_loss, as_tensor, as_dict])
def test_the_perplexity_of_a_module_of_the_user_is_that_of_its_targets_without_padding(returns) -> None:
    data = windows()
    module, loader = Own(returns), DataLoader(data, batch_size=6)
    fitted = trainer(Perplexity())
    fitted.fit(module, loader, loader)
    inputs, targets = data.tensors
    logits = module.layer(inputs)
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten()).exp().item()
    assert float(fitted.callback_metrics["val/perplexity"]) == pytest.approx(expected, rel=1e-5)
    assert "train/perplexity" in fitted.callback_metrics


@pytest.mark.parametrize(
    ("callback", "returns", "collate", "message"),
    [
        (Accuracy, only_loss, None, r"Accuracy requires `probabilities`, but validation_step returns a tensor of "),
        (Accuracy, nothing, None, r"Accuracy requires .* returns NoneType; return the logits, \(batch, classes\), or "),
        (Accuracy, as_dict, named, r"requires `targets`, but .* a dict with loss, logits; return also {'targets': ta"),
        (Perplexity, nothing, None, r"Perplexity requires `loss`, but .*; return the mean loss of the batch"),
        (TokenAccuracy, only_loss, None, r"TokenAccuracy requires `predicted`, but .* tensor of shape \(\); return "),
    ],
)
def test_a_step_that_returns_too_little_is_answered_with_what_to_return(callback, returns, collate, message):
    data = texts() if callback is Accuracy else windows()
    loader = DataLoader(data, batch_size=6, collate_fn=collate)
    with pytest.raises(UserError, match=message) as caught:
        trainer(callback()).validate(Own(returns), loader, verbose=False)
    assert "\n" not in str(caught.value)


def test_a_training_step_without_logits_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    loader = DataLoader(texts(), batch_size=6)
    fitted = trainer(Accuracy())
    with caplog.at_level(logging.WARNING, logger="firstlight"):
        fitted.fit(Own(as_tensor), loader, loader)
    assert "val/accuracy" in fitted.callback_metrics
    assert "train/accuracy" not in fitted.callback_metrics
    assert [each for each in caplog.messages if "Accuracy logs nothing in training" in each] == [
        "Accuracy logs nothing in training; let training_step return {'loss': loss, 'logits': logits}"
    ]


def test_the_last_position_asks_for_the_loss_of_each_target() -> None:
    module = Own(only_loss)
    module.network = nn.Identity()  # whose length of the context it reads
    module.network.context_length = LENGTH
    with pytest.raises(UserError, match=r"LastPosition requires `token_losses`, but .*{'token_losses': losses}"):
        trainer(LastPosition()).validate(module, DataLoader(windows(), batch_size=6), verbose=False)
