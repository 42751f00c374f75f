"""A callback that seeds dropout at every step, so that a resumed run draws the same random numbers."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.lit.randomness import reseed


class ReseedEveryStep(Callback):
    """Seed dropout at every step from a seed and the number of the step.

    A resumed training then draws the same random numbers as an uninterrupted one, and ends with the same weights.

    Args:
        seed: The seed.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import ReseedEveryStep
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_steps=2, callbacks=[ReseedEveryStep(seed=1)])
        >>> trainer.fit(module, datamodule=data)
        >>> trainer.global_step
        2
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        number = trainer.global_step * trainer.accumulate_grad_batches + batch_idx % trainer.accumulate_grad_batches
        reseed(pl_module.device, self.seed, number, trainer.global_rank)
