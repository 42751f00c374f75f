"""Accuracy, macro F1 and, for ordered classes, the mean absolute error."""

from typing import Any

from lightning.pytorch import Trainer
from torch import Tensor
from torchmetrics import MeanAbsoluteError, Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

from firstlight.callbacks.evaluation import MetricCallback, training_outputs
from firstlight.callbacks.publish import data_if_any
from firstlight.data.options import Labels
from firstlight.errors import UserError
from firstlight.lit.running_mean import MeanCallback, is_logging_step, log_training


class ClassMetric(MetricCallback):
    """Base class of callbacks that compare the predicted classes with the true ones."""

    def metric_of(self, class_names: list[str], *, are_ordered: bool) -> Metric | MetricCollection:
        """Return a metric of predicted and true classes, both (n,).

        are_ordered: whether an error of one class is smaller than an error of two, as with stars.
        """
        raise NotImplementedError

    def new_metric(self, trainer: Trainer, pl_module: Any, outputs: Any = None) -> Metric | MetricCollection | None:
        metadata = getattr(pl_module, "metadata", None) or {}
        if (data := data_if_any(trainer)) is not None:
            if not hasattr(data, "class_names"):
                problem = "Accuracy and ConfusionMatrix require data with classes, such as ReviewData"
                raise UserError(f"{problem}, not {type(data).__name__}; remove the callback")
            return self.metric_of(list(data.class_names), are_ordered=data.has_ordered_classes)
        if metadata.get("class_names"):
            labels = metadata["config"].get("data", {}).get("labels")
            return self.metric_of(list(metadata["class_names"]), are_ordered=labels == Labels.stars.name)
        if outputs is None:
            return None  # the first batch shows the number of classes
        return self.metric_of([str(i) for i in range(outputs["probabilities"].shape[1])], are_ordered=False)

    def add(self, metric: Any, outputs: Any, batch: Any) -> None:
        metric.update(outputs["probabilities"].argmax(dim=1), outputs["targets"])


class Accuracy(MeanCallback, ClassMetric):
    """Log the accuracy and the macro F1 score of a classifier.

    In validation it logs `val/accuracy`, `val/macro_f1` and, for ordered classes such as stars,
    `val/mean_absolute_error`, in classes. In test it logs the same metrics as `test/…`. In training it logs
    `train/accuracy`, the mean over the steps since the last log. It works with a data module and with plain loaders.

    It reads `probabilities`, (batch, classes), and `targets`, (batch,), of what `validation_step` and `test_step`
    return. In your own LightningModule they can also return the logits as a tensor, (batch, classes), or (batch, 1) for
    two classes, or as `logits` of a dict. If they return no `targets`, the batch is a pair of tensors, inputs and
    targets. `train/accuracy` requires a `training_step` that returns `{"loss": loss, "logits": logits}`.

    Raises:
        UserError: If a step does not return what it reads, or if the data has no classes.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import Accuracy
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[Accuracy()])
        >>> trainer.fit(module, datamodule=data)
        >>> sorted(name for name in trainer.callback_metrics if name.startswith("val/"))
        ['val/accuracy', 'val/loss', 'val/macro_f1']
    """

    def metric_of(self, class_names: list[str], *, are_ordered: bool) -> MetricCollection:
        return classification_metrics(len(class_names), are_ordered=are_ordered)

    def finish(self, trainer: Trainer, pl_module: Any, stage: str, value: dict[str, Tensor]) -> None:
        for name, number in value.items():
            pl_module.log(f"{stage}/{name}", number, prog_bar=name == "accuracy", sync_dist=True)  # all processes agree

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if (found := training_outputs(self, trainer, outputs, batch, batch_idx)) is None:
            return
        logits, targets = found["logits"], found["targets"]
        predicted = logits.argmax(dim=1) if logits.shape[1] > 1 else logits.squeeze(1) > 0
        self.mean.add((predicted == targets).sum(), len(targets))
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, {"train/accuracy": self.mean.take()})


def classification_metrics(num_classes: int, *, are_ordered: bool) -> MetricCollection:
    """Return a collection of metrics of predicted and true classes, both (n,).

    are_ordered: whether an error of one class is smaller than an error of two, as with stars.
    """
    metrics: dict[str, Metric | MetricCollection] = {
        "accuracy": MulticlassAccuracy(num_classes, average="micro"),
        "macro_f1": MulticlassF1Score(num_classes, average="macro"),
    }
    if are_ordered:
        metrics["mean_absolute_error"] = MeanAbsoluteError()
    return MetricCollection(metrics)
