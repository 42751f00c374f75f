"""Seeds dropout at every step, from the seed and the step alone, so that a resumed run draws the same."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.lit.randomness import reseed


class ReseedEveryStep(Callback):
    """Always present: without it, a resumed run would not equal an uninterrupted one."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        number = trainer.global_step * trainer.accumulate_grad_batches + batch_idx % trainer.accumulate_grad_batches
        reseed(pl_module.device, self.seed, number, trainer.global_rank)
