"""A callback that logs any metric of torchmetrics."""

from typing import Any

from lightning.pytorch import Trainer
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from firstlight.callbacks.evaluation import MetricCallback, training_outputs
from firstlight.data.tables import IGNORED
from firstlight.errors import UserError
from firstlight.lit.running_mean import is_logging_step, log_training


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

    def finish(self, trainer: Trainer, pl_module: Any, stage: str, value: Any) -> None:
        for name, number in self._named(value).items():
            pl_module.log(f"{stage}/{name}", number)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        found = training_outputs(self, trainer, outputs, batch, batch_idx)
        if found is None or not is_logging_step(trainer, batch_idx):
            return
        metric = self.metric.clone().to(found["logits"].device)
        self.add(metric, found, batch)
        values = {f"train/{name}": number for name, number in self._named(metric.compute()).items()}
        log_training(trainer, pl_module, values)

    def _named(self, value: Any) -> dict[str, Tensor]:
        """Return each number of the metric's value by its name."""
        values: dict[str, Tensor] = value if isinstance(value, dict) else {self.name: value}
        for name, number in values.items():
            if number.numel() != 1:
                raise UserError(
                    f"callbacks.{self.name}: the value of {name} must be one number, not a tensor of shape "
                    f"{tuple(number.shape)}; average it"
                )
        return values
