"""A callback that searches the learning rate before a training: a range test (Smith 2017)."""

import copy
import json
import logging
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from lightning.pytorch import Callback, LightningDataModule, LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from firstlight.callbacks.reseed import ReseedEveryStep
from firstlight.errors import RunError, UserError
from firstlight.files.atomic import write_atomically
from firstlight.lit.lightning_internals import data_of_fit
from firstlight.lit.running_mean import RunningMean, ends_a_step
from firstlight.lit.training import Training
from firstlight.runs.folder import as_typed

log = logging.getLogger(__name__)

NEIGHBORS = 5  # steps on each side over which the loss of a step is averaged
FRACTION = 0.1  # the suggestion, as a share of the rate with the lowest loss
RATES = ("lr", "matrix_lr")  # arguments of optimizers
ACCELERATORS = {"cuda": "gpu"}  # Lightning's names of the types of devices; the others are equal


class LearningRateFinder(Callback):
    """Search the learning rate before the first step, and train with it (Smith 2017).

    A copy of the module is trained for a hundred steps on the first batches, while the rate grows from `min_lr` to
    `max_lr` by an equal factor at each step. The suggested rate is a tenth of the one at which the smoothed loss is
    lowest. It becomes the rate `lr` of the optimizer, which the schedule and its warm-up multiply as usual. Further
    rates, such as that of Muon's matrices, are multiplied by the same factor. The training that follows is the same as
    one with the suggested rate from the beginning. A resumed training keeps its rate and searches nothing.

    Args:
        folder: The folder for the figure `curve.png` and the numbers `curve.json`.
        min_lr: The first rate.
        max_lr: The last rate.
        num_training_steps: The number of steps of the search.
        early_stop_threshold: Ratio of the smoothed loss to its lowest value at which the search ends.
        seed: The seed of dropout in the search.

    Attributes:
        learning_rate: The suggested rate; None before the search.

    Raises:
        UserError: If a number is out of range, if there are several processes, or if the module is not one of
            firstlight, with a `functools.partial` as its optimizer.
        RunError: If the loss does not fall at any rate.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import LearningRateFinder
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> finder = LearningRateFinder("finder", num_training_steps=20)
        >>> trainer = L.Trainer(max_steps=2, callbacks=[finder])
        >>> trainer.fit(module, datamodule=data)
        >>> 1e-6 < finder.learning_rate < 1
        True
    """

    def __init__(
        self,
        folder: str,
        min_lr: float = 1e-6,
        max_lr: float = 1.0,
        num_training_steps: int = 100,
        early_stop_threshold: float = 4.0,
        seed: int = 1,
    ) -> None:
        if not 0 < min_lr < max_lr:
            raise UserError(f"{_KEY}.min_lr={min_lr} must be above 0 and below max_lr={max_lr}")
        if num_training_steps < FEWEST_STEPS:
            raise UserError(f"{_KEY}.num_training_steps={num_training_steps} must be at least {FEWEST_STEPS}")
        if early_stop_threshold <= 1:
            raise UserError(f"{_KEY}.early_stop_threshold={early_stop_threshold} must be above 1")
        self.folder, self.seed, self.early_stop_threshold = Path(folder), seed, early_stop_threshold
        self.min_lr, self.max_lr, self.num_training_steps = min_lr, max_lr, num_training_steps
        self.learning_rate: float | None = None

    def on_fit_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Search the rate, and let Lightning create the optimizer and its schedule again with it."""
        if trainer.ckpt_path is not None:
            if self.learning_rate is not None:
                log.info("Learning rate: %.3g, which the search before the first step found", self.learning_rate)
                self._tell(trainer.loggers)
            return
        if trainer.world_size > 1:
            raise UserError(
                f"{_KEY} requires one process, and this training has {trainer.world_size}; find the rate in a training "
                "with trainer.devices=1, and set optimizer.lr"
            )
        factory = pl_module.optimizer_factory if isinstance(pl_module, Training) else None
        if not isinstance(factory, partial):
            raise UserError(
                f"{_KEY} requires a module of firstlight whose optimizer is a functools.partial, such as "
                "functools.partial(torch.optim.AdamW, lr=1e-3); remove the callback, and set the rate yourself"
            )
        test = self._tested(trainer, pl_module)
        means = smoothed(test.losses)
        self.learning_rate = rate = suggested(test.rates, means)
        scaled = {key: factory.keywords[key] * rate / test.base for key in RATES if key in factory.keywords}
        found = scaled | {"lr": rate}
        pl_module.optimizer_factory = partial(factory, **found)
        trainer.strategy.setup_optimizers(trainer)
        self._write(test, means, found)
        self._tell(trainer.loggers)
        log.info(
            "Learning rate: %.3g instead of %.3g, a tenth of the rate with the lowest loss; the curve is %s",
            *(rate, test.base, as_typed(self.folder / "curve.png")),
        )

    def _tell(self, loggers: Sequence[Logger]) -> None:
        for logger in loggers:
            logger.log_hyperparams({"found_learning_rate": self.learning_rate})

    def state_dict(self) -> dict[str, Any]:
        return {"learning_rate": self.learning_rate}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.learning_rate = state_dict["learning_rate"]

    def _tested(self, trainer: Trainer, module: LightningModule) -> "RangeTest":
        """Return the range test of a copy of the module, whose training changes neither the trainer nor the data."""
        data = data_of_fit(trainer)
        test = RangeTest(self.min_lr, self.max_lr, self.num_training_steps, self.early_stop_threshold)
        device = trainer.strategy.root_device
        own = Trainer(
            accelerator=ACCELERATORS.get(device.type, device.type),
            devices=1 if device.index is None else [device.index],
            precision=trainer.precision,
            max_steps=self.num_training_steps,
            max_epochs=-1,
            limit_train_batches=trainer.limit_train_batches,
            limit_val_batches=0,
            num_sanity_val_steps=0,
            accumulate_grad_batches=trainer.accumulate_grad_batches,
            gradient_clip_val=trainer.gradient_clip_val,
            gradient_clip_algorithm=trainer.gradient_clip_algorithm,
            use_distributed_sampler=False,
            callbacks=[ReseedEveryStep(self.seed), test],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        tested: Any = copy.deepcopy(module)
        tested.schedule_factory = test.schedule
        is_module = isinstance(data, LightningDataModule)
        try:
            with torch.random.fork_rng():
                own.fit(tested, **{"datamodule" if is_module else "train_dataloaders": data})
        finally:
            if is_module:
                data.trainer = trainer
        return test

    def _write(self, test: "RangeTest", means: list[float], found: dict[str, float]) -> None:
        """Write the curve as a figure and as numbers, with the rates of the optimizer that were found."""
        from firstlight.figures import plot_rate_search, save  # imports matplotlib

        save(plot_rate_search(test.rates, test.losses, means, found["lr"]), self.folder / "curve.png")
        content = {"optimizer": found, "rates": test.rates, "losses": test.losses, "smoothed_losses": means}
        write_atomically(self.folder / "curve.json", json.dumps(content) + "\n")


_KEY = "callbacks.learning_rate_finder"
FEWEST_STEPS = 20


class RangeTest(Callback):
    """Schedule of a learning rate that grows at each step, and the rate and the loss of each step.

    The training ends when the loss is much higher than it was.
    """

    def __init__(self, lowest: float, highest: float, num_steps: int, threshold: float) -> None:
        self.lowest, self.highest, self.num_steps, self.threshold = lowest, highest, num_steps, threshold
        self.rates: list[float] = []
        self.losses: list[float] = []
        self.base, self._lowest_loss = math.nan, math.inf
        self._mean = RunningMean()

    def rate(self, step: int) -> float:
        return self.lowest * (self.highest / self.lowest) ** (step / (self.num_steps - 1))

    def schedule(self, optimizer: Optimizer, total_steps: int) -> LambdaLR:
        """Return the schedule of the rate. The rates of groups keep their ratios."""
        self.base = optimizer.defaults["lr"]
        return LambdaLR(optimizer, lambda step: self.rate(step) / self.base)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._mean.add(outputs["loss"] * trainer.accumulate_grad_batches)  # Lightning has divided it
        if not ends_a_step(trainer, batch_idx):
            return
        loss = float(self._mean.take())
        if not math.isfinite(loss):
            trainer.should_stop = True
            return
        self.rates.append(self.rate(len(self.rates)))
        self.losses.append(loss)
        last = fmean(self.losses[-NEIGHBORS:])
        self._lowest_loss = min(self._lowest_loss, last)
        trainer.should_stop |= last > self.threshold * self._lowest_loss


def smoothed(losses: Sequence[float]) -> list[float]:
    """Return the mean of each loss and its neighbors, which shifts the curve to neither side."""
    around = (losses[max(0, index - NEIGHBORS) : index + NEIGHBORS + 1] for index in range(len(losses)))
    return [fmean(each) for each in around]


def suggested(rates: Sequence[float], losses: Sequence[float]) -> float:
    """Return a tenth of the rate at which the smoothed loss is lowest. Raises RunError if the loss does not fall."""
    lowest = min(range(len(losses)), key=losses.__getitem__, default=0)
    if lowest <= NEIGHBORS:
        raise RunError(
            f"{_KEY}: the loss falls at no rate of the search; set optimizer.lr yourself, or search with other values "
            "of min_lr, max_lr and num_training_steps"
        )
    return FRACTION * rates[lowest]
