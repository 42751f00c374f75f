"""Loss and accuracy of the training split in evaluation mode, after each epoch."""

from itertools import islice
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from firstlight.callbacks.publish import data_of, named_batch
from firstlight.data.batches import TableLoader, batches_per_epoch
from firstlight.errors import UserError
from firstlight.lit.running_mean import ends_a_step, log_training
from firstlight.lit.training import Training


class TrainingEvaluation(Callback):
    """Log the loss and the accuracy of the complete training split, without dropout.

    `train/loss` and `train/accuracy` are means over steps whose weights change and whose dropout is active, so they
    cannot be compared with those of validation. This callback logs `train/eval_loss` and `train/eval_accuracy` after
    each epoch and after the last step. Before the first step it logs `val/loss` and `val/accuracy`. Each evaluation
    takes about as long as a third of an epoch. The weights of the training do not change. Source: the post on a review
    classifier (May 2022).

    Raises:
        UserError: If the trainer has no data module of firstlight, or the module is not one of firstlight.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import TrainingEvaluation
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[TrainingEvaluation()])
        >>> trainer.fit(module, datamodule=data)
        >>> sorted(name for name in trainer.callback_metrics if name.startswith("train/eval"))
        ['train/eval_accuracy', 'train/eval_loss']
    """

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage == "fit":
            data_of(trainer, self)
            if not isinstance(pl_module, Training):
                problem = f"TrainingEvaluation requires a module of firstlight, not {type(pl_module).__name__}"
                raise UserError(f"{problem}; remove the callback")

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.global_step or not trainer.enable_validation:  # a resumed run has already logged this
            return
        loader = data_of(trainer, self).val_dataloader()
        found = _evaluate(trainer, pl_module, loader, trainer.limit_val_batches)
        values = {f"val/{name}": float(value) for name, value in found.items()}
        for logger in trainer.loggers:
            logger.log_metrics({**values, "epoch": 0}, step=0)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        is_last_step = ends_a_step(trainer, batch_idx) and trainer.global_step == trainer.max_steps
        if trainer.is_last_batch or is_last_step:
            loader = data_of(trainer, self).split_loader("train")
            found = _evaluate(trainer, pl_module, loader, trainer.limit_train_batches)
            log_training(trainer, pl_module, {f"train/eval_{name}": value for name, value in found.items()})


@torch.no_grad()
def _evaluate(trainer: Trainer, pl_module: Any, loader: TableLoader, limit: float) -> dict[str, Tensor]:
    """Return the mean loss and the accuracy over a loader, of all processes. limit: as `trainer.limit_val_batches`."""
    sums = torch.zeros(3, dtype=torch.float64)  # loss, correct predictions, predictions
    was_training = pl_module.training
    pl_module.eval()
    try:
        with torch.random.fork_rng(devices=[]), trainer.precision_plugin.forward_context():  # a loader draws a number
            for batch in islice(loader, max(1, batches_per_epoch(len(loader), limit))):
                sums += _sums_of(trainer, pl_module, batch)
    finally:
        pl_module.train(was_training)
    of_all = trainer.strategy.reduce(sums.to(pl_module.device, torch.float32), reduce_op="sum")
    assert isinstance(of_all, Tensor)
    loss, hits, count = of_all
    return {"loss": loss / count, "accuracy": hits / count}


def _sums_of(trainer: Trainer, pl_module: Any, batch: Any) -> Tensor:
    """Return the sum of the losses, the number of correct predictions and of all predictions, (3,), on the CPU."""
    data = trainer.datamodule  # type: ignore[attr-defined]
    batch = data.on_before_batch_transfer(batch, 0)
    batch = pl_module.transfer_batch_to_device(batch, pl_module.device, 0)
    batch = data.on_after_batch_transfer(batch, 0)
    outputs, count = pl_module.measure(batch)
    predicted = outputs["predicted"] if "predicted" in outputs else outputs["probabilities"].argmax(dim=1)
    hits = (predicted == named_batch(batch).targets).sum()
    return torch.tensor([float(outputs["loss"]) * count, float(hits), float(count)], dtype=torch.float64)
