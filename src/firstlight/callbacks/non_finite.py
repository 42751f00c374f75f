"""Stops a run whose loss is not a number, before it spoils the weights."""

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from firstlight.errors import RunError


class NonFiniteGuard(Callback):
    """Raises RunError at the first loss that is NaN or infinite, before it reaches the weights."""

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        if not loss.isfinite():
            raise RunError(
                f"the loss is {loss.item()} at step {trainer.global_step}; lower optimizer.lr, or set "
                f"trainer.gradient_clip_val=1.0 (the last checkpoint is from before)"
            )
