"""A callback that stops a training if the loss is NaN or infinite."""

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from firstlight.callbacks.checkpoint import last_before
from firstlight.errors import RunError


class NonFiniteGuard(Callback):
    """Stop the training at the first loss that is NaN or infinite, before it changes the weights.

    Raises:
        RunError: If the loss is NaN or infinite. The message names the loss, the step and a fix.

    Example:
        >>> import lightning as L
        >>> import torch
        >>> from firstlight.callbacks import NonFiniteGuard
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> with torch.no_grad():
        ...     _ = module.network.embedding.weight.fill_(torch.nan)
        >>> trainer = L.Trainer(max_steps=1, num_sanity_val_steps=0, callbacks=[NonFiniteGuard()])
        >>> trainer.fit(module, datamodule=data)
        Traceback (most recent call last):
        firstlight.errors.RunError: the loss is nan at step 0; lower optimizer.lr, ...
    """

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        if not loss.isfinite():
            raise RunError(
                f"the loss is {loss.item()} at step {trainer.global_step}; lower optimizer.lr, or set "
                f"trainer.gradient_clip_val=1.0 ({last_before(trainer)})"
            )
