"""Learning-rate schedules. Each is a function of the optimizer and the number of steps of the run."""

import math
from collections.abc import Callable

from lightning.pytorch import LightningDataModule, Trainer
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from firstlight.data.batches import batches_per_epoch
from firstlight.errors import UserError
from firstlight.lit.lightning_internals import data_of_fit

ScheduleFactory = Callable[[Optimizer, int], LRScheduler]


def total_steps(trainer: Trainer) -> int:
    """Return the number of optimizer steps of the complete run. Raises UserError if the run has no end.

    Lightning's `estimated_stepping_batches` opens the loaders before the position of a checkpoint is restored, so it is
    only used without a data module.
    """
    if trainer.max_epochs in (None, -1):
        if trainer.max_steps == -1:
            raise UserError("a schedule requires a run with an end; set trainer.max_steps or trainer.max_epochs")
        return trainer.max_steps
    data = data_of_fit(trainer)
    if not isinstance(data, LightningDataModule):
        return int(trainer.estimated_stepping_batches)
    loader = data.train_dataloader()
    batches = batches_per_epoch(len(loader), trainer.limit_train_batches)
    steps = math.ceil(batches / trainer.accumulate_grad_batches) * trainer.max_epochs
    return steps if trainer.max_steps == -1 else min(steps, trainer.max_steps)


def constant(optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 0) -> LRScheduler:
    """Return a schedule that keeps the optimizer's learning rate after a linear warm-up.

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_steps: The number of steps in which the rate rises linearly from 0.

    Returns:
        A scheduler that is stepped after every optimizer step.

    Example:
        >>> import torch
        >>> from firstlight.lit import constant
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = constant(optimizer, total_steps=10, warmup_steps=1)
        >>> scheduler.get_last_lr()
        [0.5]
    """
    return _scheduler(optimizer, total_steps, warmup_steps, lambda _: 1.0)


def cosine(
    optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 0, final_fraction: float = 0.0
) -> LRScheduler:
    """Return a schedule with a linear warm-up, then a decay by half a cosine (Loshchilov & Hutter 2017).

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_steps: The number of steps in which the rate rises linearly from 0.
        final_fraction: The final rate as a fraction of the optimizer's rate.

    Returns:
        A scheduler that is stepped after every optimizer step.

    Example:
        >>> import torch
        >>> from functools import partial
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification, cosine
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2, schedule=partial(cosine, warmup_steps=100))
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = cosine(optimizer, total_steps=2)
        >>> optimizer.step(); scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """
    return _scheduler(
        optimizer,
        total_steps,
        warmup_steps,
        lambda progress: final_fraction + (1 - final_fraction) * (1 + math.cos(math.pi * progress)) / 2,
    )


def linear(
    optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 0, final_fraction: float = 0.0
) -> LRScheduler:
    """Return a schedule with a linear warm-up, then a linear decay.

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_steps: The number of steps in which the rate rises linearly from 0.
        final_fraction: The final rate as a fraction of the optimizer's rate.

    Returns:
        A scheduler that is stepped after every optimizer step.

    Example:
        >>> import torch
        >>> from firstlight.lit import linear
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = linear(optimizer, total_steps=4)
        >>> optimizer.step(); scheduler.step()
        >>> scheduler.get_last_lr()
        [0.75]
    """
    return _scheduler(optimizer, total_steps, warmup_steps, lambda progress: 1 - (1 - final_fraction) * progress)


def one_cycle(
    optimizer: Optimizer,
    total_steps: int,
    *,
    warmup_fraction: float = 0.3,
    initial_fraction: float = 0.04,
    final_fraction: float = 4e-6,
) -> LRScheduler:
    """Return a schedule that rises by half a cosine to the optimizer's rate, then decays by one (Smith & Topin 2018).

    The rates are those of `torch.optim.lr_scheduler.OneCycleLR`. The momentum does not change.

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_fraction: The share of the steps in which the rate rises.
        initial_fraction: The first rate as a fraction of the optimizer's rate.
        final_fraction: The final rate as a fraction of the optimizer's rate.

    Returns:
        A scheduler that is stepped after every optimizer step.

    Example:
        >>> import torch
        >>> from firstlight.lit import one_cycle
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = one_cycle(optimizer, total_steps=10)
        >>> [round(rate, 3) for rate in scheduler.get_last_lr()]
        [0.04]
    """
    peak = max(1.0, warmup_fraction * total_steps - 1)
    end = max(peak + 1, total_steps - 1)

    def factor(step: int) -> float:
        if step <= peak:
            return _half_cosine(initial_fraction, 1.0, step / peak)
        return _half_cosine(1.0, final_fraction, min(1.0, (step - peak) / (end - peak)))

    return LambdaLR(optimizer, factor)


def _half_cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


def _scheduler(
    optimizer: Optimizer, total_steps: int, warmup_steps: int, decay: Callable[[float], float]
) -> LRScheduler:
    """Return a schedule whose rate rises until step `warmup_steps` and then follows decay(progress from 0 to 1)."""
    warmup_steps = min(warmup_steps, total_steps - 1)

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / (warmup_steps + 1)
        return decay(min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps)))

    return LambdaLR(optimizer, factor)
