"""Metrics of tokens: perplexity, accuracy and the loss of the last position, in a training and outside of one."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor
from torchmetrics import Metric

from firstlight.callbacks.evaluation import MetricCallback, StepOutputs, training_outputs
from firstlight.callbacks.publish import data_if_any, data_of
from firstlight.lit.losses import token_losses
from firstlight.lit.running_mean import MeanCallback, is_logging_step, log_training

BITS_PER_NAT = 1.4426950408889634  # 1 / ln 2


class Ratio(Metric):
    """A sum divided by a count."""

    total: Tensor
    count: Tensor

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        for name in ("total", "count"):
            self.add_state(name, torch.tensor(0.0, dtype=dtype), dist_reduce_fx="sum")

    def update(self, total: Tensor, count: Tensor | int) -> None:
        self.total += total
        self.count += count

    def compute(self) -> Tensor:
        return self.total / self.count


class TokenMetric(MetricCallback):
    """Base class of metrics that are a ratio, one for validation and one for test."""

    def new_metric(self, trainer: Trainer, pl_module: Any, outputs: Any = None) -> Ratio:
        return Ratio()

    def finish(self, trainer: Trainer, pl_module: Any, stage: str, value: Tensor) -> None:
        if self.metrics[stage].update_called or not value.isnan():  # nan: no process has added anything
            super().finish(trainer, pl_module, stage, value)


class Perplexity(MeanCallback, TokenMetric):
    """Log the perplexity, which is e to the power of the mean loss per token.

    It logs `train/perplexity`, `val/perplexity` and `test/perplexity` of generators and translators. It works with a
    data module and with plain loaders. Source: the post on a Shakespeare generator (March 2024).

    It reads `token_losses`, the loss of each target in nats, of what `validation_step` and `test_step` return. In your
    own LightningModule they can also return the mean loss as a scalar tensor or as `loss` of a dict, or the logits as a
    tensor, (batch, length, classes). The targets, of which -100 are ignored, are `targets` of the dict, or else the
    second part of the batch. Of `training_step` it reads the `loss`.

    Raises:
        UserError: If a step does not return what it reads.

    Example:
        >>> import lightning as L
        >>> import torch
        >>> from firstlight.callbacks import Perplexity
        >>> from firstlight.data import CharacterData
        >>> from firstlight.lit import Generation
        >>> data = CharacterData(path="novel.txt", context_length=16)
        >>> module = Generation.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[Perplexity()])
        >>> trainer.fit(module, datamodule=data)
        >>> metrics = trainer.callback_metrics
        >>> bool(torch.isclose(metrics["val/perplexity"], metrics["val/loss"].exp()))
        True
    """

    training_sum = "token_loss"

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        num_targets = outputs["num_targets"]
        if "token_losses" in outputs or "logits" in outputs:
            ratio.update(outputs["token_losses"].sum(), num_targets)
        else:
            ratio.update(outputs["loss"] * num_targets, num_targets)

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"perplexity": value.exp()}

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if not outputs:
            return  # training_step has returned None, and Lightning skips the batch
        found = StepOutputs(self, "training_step", outputs, batch)
        loss = found["loss"] * trainer.accumulate_grad_batches  # Lightning passes the loss divided by this number
        self.add_to_mean(found.get("token_loss", loss))  # without label smoothing and without a teacher
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, {"train/perplexity": self.take_mean().exp()})


class TokenAccuracy(TokenMetric):
    """Log the share of tokens that the network predicts correctly.

    It logs `val/accuracy` and `test/accuracy` of a complete split, and `train/accuracy` of single batches. It works
    with a data module and with plain loaders.

    It reads `predicted` and the `targets` of `validation_step` and `test_step`, both (batch, length). In your own
    LightningModule they can also return the logits as a tensor, (batch, length, classes); `Perplexity` describes the
    targets. `train/accuracy` requires a `training_step` that returns `{"loss": loss, "logits": logits}`.

    Raises:
        UserError: If a step does not return what it reads.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import TokenAccuracy
        >>> from firstlight.data import CharacterData
        >>> from firstlight.lit import Generation
        >>> data = CharacterData(path="novel.txt", context_length=16)
        >>> module = Generation.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[TokenAccuracy()])
        >>> trainer.fit(module, datamodule=data)
        >>> bool(0 <= trainer.callback_metrics["val/accuracy"] <= 1)
        True
    """

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        ratio.update((outputs["predicted"] == outputs["targets"]).sum(), outputs["num_targets"])

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"accuracy": value}

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        found = training_outputs(self, trainer, outputs, batch, batch_idx)
        if found is not None and is_logging_step(trainer, batch_idx):
            hits = found["predicted"] == found["targets"]
            log_training(trainer, pl_module, {"train/accuracy": hits.sum() / found["num_targets"]})


class LastPosition(TokenMetric):
    """Log the loss of the tokens that are predicted from a full context.

    It logs `val/last_position_loss` and `test/last_position_loss`, in nats per token: the mean loss at the last
    position of all windows of the full length. It works with a data module and with plain loaders. It reads
    `token_losses`, (batch, length), or the logits, as `Perplexity` does. Source: the post on names (November 2023).

    Raises:
        UserError: If a step does not return what it reads, or if the length of the context is not known.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import LastPosition
        >>> from firstlight.data import CharacterData
        >>> from firstlight.lit import Generation
        >>> data = CharacterData(path="novel.txt", context_length=16)
        >>> module = Generation.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[LastPosition()])
        >>> trainer.fit(module, datamodule=data)
        >>> trainer.callback_metrics["val/last_position_loss"].shape
        torch.Size([])
    """

    context_length: int

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        data, network = data_if_any(trainer), getattr(pl_module, "network", None)
        length = getattr(network, "context_length", None) if data is None else data.options.context_length
        self.context_length = data_of(trainer, self).options.context_length if length is None else length

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        losses = outputs["token_losses"]
        if losses.shape[1] == self.context_length:
            ratio.update(losses[:, -1].sum(), len(losses))

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"last_position_loss": value}


@torch.inference_mode()
def measure_tokens(
    run: Any,
    batches: Iterable[Any],
    metrics: Iterable[TokenMetric] | None = None,
    logits_of: Callable[[Any], Tensor] | None = None,
) -> dict[str, float]:
    """Return the loss of all batches in nats per token, and the value of each metric, in double precision.

    metrics: by default those of each training; metrics without a value are omitted, such as the loss of the last
    position without a complete window. logits_of: function that returns the logits of a batch, (…, vocab_size), for its
    targets, (…); by default those of the network for the inputs of the batch.
    """
    metrics = [metric() for metric in run.metric_callbacks] if metrics is None else metrics
    loss, ratios = Ratio(torch.float64), {metric: Ratio(torch.float64) for metric in metrics}
    for batch in batches:
        logits = run.network(*batch.inputs) if logits_of is None else logits_of(batch)
        outputs = {
            "token_losses": token_losses(logits, batch.targets).double(),
            "predicted": logits.argmax(dim=-1),
            "targets": batch.targets,
            "num_targets": batch.num_targets,
        }
        loss.update(outputs["token_losses"].sum(), batch.num_targets)
        for metric, ratio in ratios.items():
            metric.add(ratio, outputs, batch)
    values = {"loss": loss.compute()}
    for metric, ratio in ratios.items():
        values |= metric.named(ratio.compute()) if ratio.count else {}
    return {name: float(value) for name, value in values.items()}
