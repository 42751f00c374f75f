"""Callbacks that do the same in validation and in test, the outputs of a step that they read, and any other metric."""

import logging
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from firstlight.data.tables import IGNORED
from firstlight.errors import UserError
from firstlight.lit.losses import probabilities, token_losses
from firstlight.lit.running_mean import is_logging_step, log_training

log = logging.getLogger(__name__)

SPLITS = {"val": "validation", "test": "test"}  # by the names of Lightning's stages
TO_RETURN = {
    "probabilities": "the logits, (batch, classes), or {'logits': logits}",
    "predicted": "the logits, (batch, length, classes), or {'logits': logits}",
    "token_losses": "the logits, (batch, length, classes), or {'token_losses': losses}",
    "loss": "the mean loss of the batch as a scalar tensor, or {'loss': loss}",
    "targets": "also {'targets': targets}, or let the batch be a pair of tensors, inputs and targets",
}


class StepOutputs(dict[str, Any]):
    """The outputs of a step of any LightningModule by their names.

    A scalar tensor is the `loss`, and another tensor the `logits`, (batch, …, classes). What a step does not return is
    computed: `probabilities`, (batch, classes), `predicted` and `token_losses`, both (batch, …), from the logits, and
    `targets` and `num_targets` from the batch.

    Raises UserError for any other missing name, with what the step must return.
    """

    def __init__(self, callback: Callback, step: str, outputs: Any, batch: Any) -> None:
        named = {"logits" if outputs.ndim else "loss": outputs} if isinstance(outputs, Tensor) else outputs
        super().__init__(named if isinstance(named, dict) else {})
        self.callback, self.step, self.outputs, self.batch = callback, step, outputs, batch

    def __missing__(self, name: str) -> Any:
        num_dimensions = self["logits"].ndim if "logits" in self else 0
        is_pair = isinstance(self.batch, tuple | list) and len(self.batch) == 2
        match name:
            case "probabilities" if num_dimensions == 2:
                return probabilities(self["logits"])
            case "predicted" if num_dimensions > 1:
                return self["logits"].argmax(dim=-1)
            case "token_losses" if num_dimensions > 1:
                return token_losses(self["logits"], self["targets"])
            case "targets" | "num_targets" if hasattr(self.batch, name):
                return getattr(self.batch, name)
            case "targets" if is_pair and isinstance(self.batch[1], Tensor):
                return self.batch[1]
            case "num_targets":
                return (self["targets"] != IGNORED).sum()
        returned = f"a tensor of shape {tuple(self.outputs.shape)}" if isinstance(self.outputs, Tensor) else None
        returned = returned or (f"a dict with {', '.join(self)}" if self else type(self.outputs).__name__)
        problem = f"{type(self.callback).__name__} requires `{name}`, but {self.step} returns {returned}"
        raise UserError(f"{problem}; return {TO_RETURN[name]}, or remove the callback")


def training_outputs(
    callback: Callback, trainer: Trainer, outputs: Any, batch: Any, batch_idx: int
) -> StepOutputs | None:
    """Return the outputs of a training step, or None if they have no `logits`; the first step then warns of that."""
    found = StepOutputs(callback, "training_step", outputs, batch)
    if "logits" in found or "predicted" in found:
        return found
    if batch_idx == 0 and trainer.current_epoch == 0:
        remedy = "let training_step return {'loss': loss, 'logits': logits}"
        log.warning("%s logs nothing in training; %s", type(callback).__name__, remedy)
    return None


class EvaluationCallback(Callback):
    """Base class of callbacks that do the same in validation and in test.

    Subclasses override some of the three methods. Their argument `stage` is `val` or `test`.
    """

    def begin_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Do what comes before the first batch."""

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        """Read a batch and the outputs of its step, which are `StepOutputs`."""

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Do what comes after the last batch. Metrics can be logged."""

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.begin_evaluation(trainer, pl_module, "val")

    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.begin_evaluation(trainer, pl_module, "test")

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self.add_batch(trainer, pl_module, "val", StepOutputs(self, "validation_step", outputs, batch), batch)

    def on_test_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self.add_batch(trainer, pl_module, "test", StepOutputs(self, "test_step", outputs, batch), batch)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.end_evaluation(trainer, pl_module, "val")

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.end_evaluation(trainer, pl_module, "test")


class MetricCallback(EvaluationCallback):
    """Base class of callbacks that log a metric of torchmetrics for each validation and each test.

    Attributes:
        metrics: The metric of each stage, `val` and `test`. Empty as long as the number of classes is not known.
    """

    metrics: dict[str, Any]

    def new_metric(self, trainer: Trainer, pl_module: Any, outputs: Any = None) -> Metric | MetricCollection | None:
        """Return a new metric, or None if it depends on the outputs of the first batch, which follow then."""
        raise NotImplementedError

    def add(self, metric: Any, outputs: Any, batch: Any) -> None:
        """Add a batch to the metric."""
        raise NotImplementedError

    def named(self, value: Any) -> dict[str, Tensor]:
        """Return the numbers to log of the metric's value, by their names without `val/` or `test/`."""
        raise NotImplementedError

    def finish(self, trainer: Trainer, pl_module: Any, stage: str, value: Any) -> None:
        """Log the value of the metric over all processes."""
        for name, number in self.named(value).items():
            pl_module.log(f"{stage}/{name}", number, sync_dist=True)  # all processes agree

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._begin(self.new_metric(trainer, pl_module), trainer)

    def _begin(self, metric: Metric | MetricCollection | None, trainer: Trainer) -> None:
        device = trainer.strategy.root_device
        self.metrics = {} if metric is None else {stage: metric.clone().to(device) for stage in SPLITS}

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        if not self.metrics:
            self._begin(self.new_metric(trainer, pl_module, outputs), trainer)
        self.add(self.metrics[stage], outputs, batch)

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        metric = self.metrics[stage]
        if getattr(metric, "update_called", True) or trainer.world_size > 1:  # each process takes part in the sum
            self.finish(trainer, pl_module, stage, metric.compute())
            metric.reset()


class TorchMetric(MetricCallback):
    """Log a metric of torchmetrics in training, validation and test.

    In validation and test it logs `val/<name>` and `test/<name>` of the complete split. In training it logs
    `train/<name>` of single batches. A metric that `callbacks.<name>._target_` names is logged in this way.

    Args:
        metric: The metric. Of a classifier, its `update` is called with the probabilities, (n, classes), and the true
            classes, (n,). Of other networks, it is called with the predicted tokens and the true ones, both (n,),
            without padding.
        name: The name without `val/`.

    Raises:
        UserError: If the value of the metric is not one number, or if a step does not return what it reads: of a
            classifier what `Accuracy` reads, of another network what `TokenAccuracy` reads.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import TorchMetric
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> from torchmetrics.classification import MulticlassCohenKappa
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> kappa = TorchMetric(MulticlassCohenKappa(num_classes=2), "kappa")
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[kappa], log_every_n_steps=1)
        >>> trainer.fit(module, datamodule=data)
        >>> {"train/kappa", "val/kappa"} <= set(trainer.callback_metrics)
        True
    """

    def __init__(self, metric: Metric | MetricCollection, name: str) -> None:
        self.metric, self.name = metric, name

    def new_metric(self, trainer: Trainer, pl_module: Any, outputs: Any = None) -> Metric | MetricCollection:
        return self.metric

    def add(self, metric: Any, outputs: Any, batch: Any) -> None:
        is_of_tokens = "token_loss" in outputs or "predicted" in outputs
        if "probabilities" in outputs or not (is_of_tokens or ("logits" in outputs and outputs["logits"].ndim > 2)):
            metric.update(outputs["probabilities"], outputs["targets"])
        else:
            is_real = outputs["targets"] != IGNORED
            metric.update(outputs["predicted"][is_real], outputs["targets"][is_real])

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        found = training_outputs(self, trainer, outputs, batch, batch_idx)
        if found is None or not is_logging_step(trainer, batch_idx):
            return
        metric = self.metric.clone().to(found["loss"].device)
        self.add(metric, found, batch)
        values = {f"train/{name}": number for name, number in self.named(metric.compute()).items()}
        log_training(trainer, pl_module, values)

    def named(self, value: Any) -> dict[str, Tensor]:
        values: dict[str, Tensor] = value if isinstance(value, dict) else {self.name: value}
        for name, number in values.items():
            if number.numel() != 1:
                problem = f"the value of {name} must be one number, not a tensor of shape {tuple(number.shape)}"
                raise UserError(f"callbacks.{self.name}: {problem}; average it")
        return values
