"""How well a generator predicts: perplexity, bits per character, accuracy, and the loss of the last position."""

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torchmetrics import Metric

from firstlight.callbacks.publish import data_of
from firstlight.lit.running_mean import RunningMean, is_logging_step, log_training

STAGES = ("val", "test")
BITS_PER_NAT = 1.4426950408889634  # 1 / ln 2


class Ratio(Metric):
    """A sum over a count; a batch may add nothing to either."""

    total: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("total", "count"):
            self.add_state(name, torch.tensor(0.0), dist_reduce_fx="sum")

    def update(self, total: Tensor, count: Tensor | int) -> None:
        self.total += total
        self.count += count

    def compute(self) -> Tensor:
        return self.total / self.count


class TokenMetric(Callback):
    """A callback with one ratio for val and one for test, which a subclass adds to and names."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self.ratios = {stage: Ratio().to(trainer.strategy.root_device) for stage in STAGES}

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        """Add a batch to the ratio."""
        raise NotImplementedError

    def named(self, value: Tensor) -> dict[str, Tensor]:
        """What is logged of the ratio's value, without `val/` or `test/`."""
        raise NotImplementedError

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self.add(self.ratios["val"], outputs, batch)

    def on_test_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int, _: int = 0
    ) -> None:
        self.add(self.ratios["test"], outputs, batch)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._finish("val", pl_module)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._finish("test", pl_module)

    def _finish(self, stage: str, pl_module: LightningModule) -> None:
        ratio = self.ratios[stage]
        if ratio.update_called:
            for name, value in self.named(ratio.compute()).items():
                pl_module.log(f"{stage}/{name}", value)
            ratio.reset()


class Perplexity(TokenMetric):
    """Logs `perplexity`, e to the mean loss (post 2), of train, val and test."""

    def __init__(self) -> None:
        self.training = RunningMean()

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        ratio.update(outputs["token_losses"].sum(), batch.num_tokens)

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"perplexity": value.exp()}

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = outputs["loss"] * trainer.accumulate_grad_batches  # Lightning hands out a share of it
        self.training.add(outputs.get("token_loss", loss))  # without label smoothing, where there is some
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, {"train/perplexity": self.training.take().exp()})

    def state_dict(self) -> dict[str, Any]:
        return self.training.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.training.load_state_dict(state_dict)


class BitsPerCharacter(TokenMetric):
    """Logs `bits_per_character` of val and test, by which vocabularies of any size compare.

    Nothing is logged where a token stands for no certain characters, as [UNK] does among words.
    """

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        counts = data_of(trainer).tokenizer.characters_per_token()
        self.counts = None if counts is None else torch.from_numpy(counts).to(trainer.strategy.root_device)

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        if self.counts is not None:
            ratio.update(outputs["token_losses"].sum(), self.counts[batch.targets].sum())

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"bits_per_character": value * BITS_PER_NAT}


class TokenAccuracy(TokenMetric):
    """Logs `accuracy`, the share of tokens that were thought the likeliest: of val and test, and of single batches."""

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        ratio.update((outputs["predicted"] == batch.targets).sum(), batch.num_tokens)

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"accuracy": value}

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if is_logging_step(trainer, batch_idx):
            hits = outputs["logits"].argmax(dim=2) == batch.targets
            log_training(trainer, pl_module, {"train/accuracy": hits.sum() / batch.num_tokens})


class LastPosition(TokenMetric):
    """Logs `last_position_loss`: of those tokens alone that have the whole context before them (post 4)."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        self.context_length = data_of(trainer).options.context_length

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        losses = outputs["token_losses"]
        if losses.shape[1] == self.context_length:
            ratio.update(losses[:, -1].sum(), len(losses))

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"last_position_loss": value}
