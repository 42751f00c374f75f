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

from firstlight.callbacks.reseed import ReseedEveryStep
from firstlight.errors import RunError, UserError
from firstlight.files.atomic import write_atomically
from firstlight.lit.lightning_internals import data_of_fit
from firstlight.lit.optimizers import OptimizerFactory
from firstlight.lit.running_mean import ends_a_step
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

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
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
        factory = factory_of(pl_module)
        test = self._tested(trainer, pl_module)
        self.learning_rate = rate = suggested(test.rates, smoothed(test.losses))
        with_rate = with_learning_rate(factory, test.base, rate)
        pl_module.optimizer_factory = with_rate
        trainer.strategy.setup_optimizers(trainer)
        self._write(test, with_rate)
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
        is_module = isinstance(data, LightningDataModule)
        try:
            with torch.random.fork_rng():
                own.fit(copy.deepcopy(module), **{"datamodule" if is_module else "train_dataloaders": data})
        finally:
            if is_module:
                data.trainer = trainer
        return test

    def _write(self, test: "RangeTest", factory: Any) -> None:
        """Write the curve as a figure and as numbers."""
        from firstlight.figures import plot_rate_search, save  # imports matplotlib

        self.folder.mkdir(parents=True, exist_ok=True)
        means = smoothed(test.losses)
        assert self.learning_rate is not None
        save(plot_rate_search(test.rates, test.losses, means, self.learning_rate), self.folder / "curve.png")
        found = {key: factory.keywords[key] for key in RATES if key in factory.keywords}
        content = {"optimizer": found, "rates": test.rates, "losses": test.losses, "smoothed_losses": means}
        write_atomically(self.folder / "curve.json", json.dumps(content) + "\n")


_KEY = "callbacks.learning_rate_finder"
FEWEST_STEPS = 20


class RangeTest(Callback):
    """Let the learning rate grow at each step, and keep the rate and the loss of each step."""

    def __init__(self, lowest: float, highest: float, num_steps: int, threshold: float) -> None:
        self.lowest, self.highest, self.num_steps, self.threshold = lowest, highest, num_steps, threshold
        self.rates: list[float] = []
        self.losses: list[float] = []
        self.base, self._lowest = math.nan, math.inf
        self._total, self._batches = 0.0, 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        trainer.strategy.lr_scheduler_configs.clear()
        (optimizer,) = trainer.optimizers
        self.base = optimizer.defaults["lr"]
        self._of_groups = [group.get("initial_lr", group["lr"]) for group in optimizer.param_groups]

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Set the rate of the step. The rates of groups keep their ratios."""
        rate = self.lowest * (self.highest / self.lowest) ** (trainer.global_step / (self.num_steps - 1))
        optimizer: Optimizer = trainer.optimizers[0]
        for group, own in zip(optimizer.param_groups, self._of_groups, strict=True):
            group["lr"] = own * rate / self.base
        self._rate = rate

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._total += float(outputs["loss"]) * trainer.accumulate_grad_batches  # Lightning has divided it
        self._batches += 1
        if not ends_a_step(trainer, batch_idx):
            return
        loss, self._total, self._batches = self._total / self._batches, 0.0, 0
        if not math.isfinite(loss):
            trainer.should_stop = True
            return
        self.rates.append(self._rate)
        self.losses.append(loss)
        last = fmean(self.losses[-NEIGHBORS:])
        self._lowest = min(self._lowest, last)
        trainer.should_stop |= last > self.threshold * self._lowest


def factory_of(module: LightningModule) -> OptimizerFactory:
    """Return the function that makes the optimizer of a module. Raises UserError if its rate cannot be set."""
    factory = module.optimizer_factory if isinstance(module, Training) else None
    if not isinstance(factory, partial):
        raise UserError(
            f"{_KEY} requires a module of firstlight whose optimizer is a functools.partial, such as "
            "functools.partial(torch.optim.AdamW, lr=1e-3); remove the callback, and set the rate yourself"
        )
    return factory


def with_learning_rate(factory: Any, base: float, rate: float) -> Any:
    """Return the function with another learning rate. Further rates are multiplied by the same factor."""
    changed = {key: factory.keywords[key] * rate / base for key in RATES if key in factory.keywords}
    return partial(factory.func, *factory.args, **factory.keywords | changed | {"lr": rate})


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
