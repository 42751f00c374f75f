"""The training loss, as a mean over all steps since it was last logged."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.lit.running_mean import RunningMean, is_logging_step, log_training


class TrainingLoss(Callback):
    """Logs `train/loss` every `trainer.log_every_n_steps`: a mean, where the loss of the last batch is mostly noise.

    The LightningModules here add it to a trainer that does not have it.
    """

    def __init__(self, *, every_epoch: bool = False) -> None:
        """every_epoch: also log what an epoch's last steps leave over, so that a short epoch has a value too."""
        self.mean = RunningMean()
        self.every_epoch = every_epoch

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.mean.add(outputs["loss"] * trainer.accumulate_grad_batches)  # Lightning hands out a share of it
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, {"train/loss": self.mean.take()}, on_bar=True)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.every_epoch and self.mean.count:
            log_training(trainer, pl_module, {"train/loss": self.mean.take()}, on_bar=True)

    def state_dict(self) -> dict[str, Any]:
        return self.mean.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.mean.load_state_dict(state_dict)
