"""The validation after the last step of a training."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.callbacks.checkpoint import BestAndLast, is_last_step
from firstlight.lit.lightning_internals import set_steps_done
from firstlight.lit.running_mean import ends_a_step


class FinalValidation(Callback):
    """Validate after the last step of a training, if no other validation follows that step.

    This concerns a training that ends in the middle of an epoch, as `max_steps` may require.

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
        self._every_n_epochs: int | None = None

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        # After a resume from a validation that Lightning does not expect, it counts the step before it once too little.
        if batch_idx % trainer.accumulate_grad_batches == 0:
            set_steps_done(trainer, trainer.global_step)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if not trainer.enable_validation or not ends_a_step(trainer, batch_idx):
            return
        if is_last_step(trainer) and not BestAndLast.validation_follows(trainer, batch_idx):
            trainer.should_stop = True  # Lightning validates before it stops
            self._every_n_epochs = trainer.check_val_every_n_epoch
            if self._every_n_epochs is not None:
                trainer.check_val_every_n_epoch = 1  # in this epoch too

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._every_n_epochs is not None:
            trainer.check_val_every_n_epoch, self._every_n_epochs = self._every_n_epochs, None
