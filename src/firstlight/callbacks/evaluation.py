"""Base classes of callbacks that do the same in validation and in test."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torchmetrics import Metric, MetricCollection

STAGES = ("val", "test")


class EvaluationCallback(Callback):
    """Base class of callbacks that do the same in validation and in test.

    Subclasses override some of the three methods. Their argument `stage` is `val` or `test`.
    """

    def begin_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Do what comes before the first batch."""

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        """Read a batch and the outputs of its step."""

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Do what comes after the last batch. Metrics can be logged."""

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.begin_evaluation(trainer, pl_module, "val")

    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.begin_evaluation(trainer, pl_module, "test")

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self.add_batch(trainer, pl_module, "val", outputs, batch)

    def on_test_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self.add_batch(trainer, pl_module, "test", outputs, batch)

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

    def finish(self, trainer: Trainer, pl_module: Any, stage: str, value: Any) -> None:
        """Log the value of the metric over all processes."""
        raise NotImplementedError

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._begin(self.new_metric(trainer, pl_module), trainer)

    def _begin(self, metric: Metric | MetricCollection | None, trainer: Trainer) -> None:
        device = trainer.strategy.root_device
        self.metrics = {} if metric is None else {stage: metric.clone().to(device) for stage in STAGES}

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        if not self.metrics:
            self._begin(self.new_metric(trainer, pl_module, outputs), trainer)
        self.add(self.metrics[stage], outputs, batch)

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        metric = self.metrics[stage]
        if getattr(metric, "update_called", True) or trainer.world_size > 1:  # each process takes part in the sum
            self.finish(trainer, pl_module, stage, metric.compute())
            metric.reset()
