"""The training loss, as a mean over all steps since it was last logged."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.lit.running_mean import RunningMean, is_logging_step, log_training


class TrainingLoss(Callback):
    """Log `train/loss` every `log_every_n_steps` steps, as the mean over all steps since it was last logged.

    The LightningModules of firstlight add this callback to a trainer that does not have it.

    Args:
        every_epoch: Also log, at the end of an epoch, the mean over its last steps, so that an epoch shorter than
            `log_every_n_steps` has a value too.

    Example:
        >>> import lightning as L
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification, TrainingLoss
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, log_every_n_steps=1, callbacks=[TrainingLoss()])
        >>> trainer.fit(module, datamodule=data)
        >>> trainer.callback_metrics["train/loss"].shape
        torch.Size([])
    """

    def __init__(self, *, every_epoch: bool = False) -> None:
        self.mean = RunningMean()
        self.every_epoch = every_epoch
        self.times_logged = 0

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.mean.add(
            outputs["loss"] * trainer.accumulate_grad_batches
        )  # Lightning returns the loss divided by this number
        if is_logging_step(trainer, batch_idx):
            self._log(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.every_epoch and self.mean.count:
            self._log(trainer, pl_module)

    def _log(self, trainer: Trainer, pl_module: LightningModule) -> None:
        log_training(trainer, pl_module, {"train/loss": self.mean.take()}, on_bar=True)
        self.times_logged += 1

    def state_dict(self) -> dict[str, Any]:
        return self.mean.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.mean.load_state_dict(state_dict)
