"""The validation of a training that ends before its first one."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.checkpoint import best_and_last
from firstlight.lit.running_mean import ends_a_step


class FinalValidation(Callback):
    """Validate after the last step of a training that has had no validation, such as one of fewer steps than an epoch.

    Its metrics go to every logger. The callbacks that draw, write samples and keep checkpoints run as in any other
    validation of the training. `limit_val_batches=0` leaves it out.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import FinalValidation
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary", batch_size=5)
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_steps=1, callbacks=[FinalValidation()])
        >>> trainer.fit(module, datamodule=data)
        >>> "val/loss" in trainer.callback_metrics
        True
    """

    def __init__(self) -> None:
        self.has_validated = False
        self._every_n_epochs: int | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        checkpoint = best_and_last(trainer)
        self.has_validated = checkpoint is not None and checkpoint.best_step is not None  # before the run was resumed
        self._every_n_epochs = trainer.check_val_every_n_epoch

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.has_validated or not trainer.enable_validation or not ends_a_step(trainer, batch_idx):
            return
        is_last_epoch = trainer.current_epoch + 1 == trainer.max_epochs
        if trainer.global_step == trainer.max_steps or (trainer.is_last_batch and is_last_epoch):
            trainer.should_stop = True  # Lightning validates before it stops
            if self._every_n_epochs is not None:
                trainer.check_val_every_n_epoch = 1  # in this epoch too

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn is TrainerFn.FITTING and not trainer.sanity_checking:
            self.has_validated = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        trainer.check_val_every_n_epoch = self._every_n_epochs
