"""The training loss, as a mean over all steps since it was last logged."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.callbacks.running_mean import RunningMean, is_logging_step, log_training


class TrainingLoss(Callback):
    """Logs `train/loss` every `trainer.log_every_n_steps`: a mean, where the loss of the last batch is mostly noise."""

    def __init__(self) -> None:
        self.mean = RunningMean()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.mean.add(outputs["loss"] * trainer.accumulate_grad_batches)  # Lightning hands out a share of it
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, {"train/loss": self.mean.take()}, on_bar=True)

    def state_dict(self) -> dict[str, Any]:
        return self.mean.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.mean.load_state_dict(state_dict)
