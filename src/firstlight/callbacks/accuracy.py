"""Accuracy, macro F1 and, for classes in an order, the mean absolute error."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torchmetrics import MeanAbsoluteError, Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

from firstlight.callbacks.publish import data_of
from firstlight.lit.running_mean import RunningMean, is_logging_step, log_training

STAGES = ("val", "test")


class Accuracy(Callback):
    """Logs `accuracy` and `macro_f1` of val and test, for ordered classes `mean_absolute_error`; `train/accuracy`."""

    def __init__(self) -> None:
        self.metrics: dict[str, MetricCollection] = {}
        self.training = RunningMean()

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        data = data_of(trainer)
        metrics: dict[str, Metric | MetricCollection] = {
            "accuracy": MulticlassAccuracy(data.num_classes, average="micro"),
            "macro_f1": MulticlassF1Score(data.num_classes, average="macro"),
        }
        if data.has_ordered_classes:
            metrics["mean_absolute_error"] = MeanAbsoluteError()
        collection = MetricCollection(metrics).to(trainer.strategy.root_device)
        self.metrics = {stage: collection.clone(prefix=f"{stage}/") for stage in STAGES}

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        logits = outputs["logits"]
        predicted = logits.argmax(dim=1) if logits.shape[1] > 1 else logits.squeeze(1) > 0
        self.training.add((predicted == batch.targets).sum(), len(batch.targets))
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, {"train/accuracy": self.training.take()})

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self._update("val", outputs)

    def on_test_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self._update("test", outputs)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("val", pl_module)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log("test", pl_module)

    def state_dict(self) -> dict[str, Any]:
        return self.training.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.training.load_state_dict(state_dict)

    def _update(self, stage: str, outputs: Any) -> None:
        self.metrics[stage].update(outputs["probabilities"].argmax(dim=1), outputs["targets"])

    def _log(self, stage: str, pl_module: LightningModule) -> None:
        values = self.metrics[stage].compute()
        self.metrics[stage].reset()
        for name, value in values.items():
            pl_module.log(name, value, prog_bar=name.endswith("/accuracy"), sync_dist=True)  # equal everywhere
