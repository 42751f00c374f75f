"""Learning-rate schedules, one step at a time: each takes the optimizer and the run's number of steps."""

import math
from collections.abc import Callable

from lightning.pytorch import LightningDataModule, Trainer
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from firstlight.data.batches import batches_per_epoch
from firstlight.errors import UserError

ScheduleFactory = Callable[[Optimizer, int], LRScheduler]


def total_steps(trainer: Trainer) -> int:
    """The optimizer steps of the whole run. Raises UserError if it has no end.

    Lightning's `estimated_stepping_batches` opens the loaders before a checkpoint's position is restored, so it is used
    only where there is no data module.
    """
    if trainer.max_epochs in (None, -1):
        if trainer.max_steps == -1:
            raise UserError("a schedule needs to know when the run ends: set trainer.max_steps or trainer.max_epochs")
        return trainer.max_steps
    data = trainer.fit_loop._data_source.instance  # a data module, a module, or the loader that fit was given
    if not isinstance(data, LightningDataModule):
        return int(trainer.estimated_stepping_batches)
    loader = data.train_dataloader()
    batches = batches_per_epoch(len(loader), trainer.limit_train_batches)
    steps = math.ceil(batches / trainer.accumulate_grad_batches) * trainer.max_epochs
    return steps if trainer.max_steps == -1 else min(steps, trainer.max_steps)


def constant(optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 0) -> LRScheduler:
    """The optimizer's rate throughout, after a linear warm-up."""
    return _scheduler(optimizer, total_steps, warmup_steps, lambda _: 1.0)


def cosine(
    optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 0, final_fraction: float = 0.0
) -> LRScheduler:
    """Linear warm-up, then half a cosine down to final_fraction of the rate (Loshchilov & Hutter 2017)."""
    return _scheduler(
        optimizer,
        total_steps,
        warmup_steps,
        lambda progress: final_fraction + (1 - final_fraction) * (1 + math.cos(math.pi * progress)) / 2,
    )


def linear(
    optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 0, final_fraction: float = 0.0
) -> LRScheduler:
    """Linear warm-up, then a straight line down to final_fraction of the rate."""
    return _scheduler(optimizer, total_steps, warmup_steps, lambda progress: 1 - (1 - final_fraction) * progress)


def one_cycle(
    optimizer: Optimizer,
    total_steps: int,
    *,
    warmup_fraction: float = 0.3,
    initial_fraction: float = 0.04,
    final_fraction: float = 4e-6,
) -> LRScheduler:
    """One cosine up from initial_fraction of the rate, one down to final_fraction (Smith & Topin 2018).

    The rates are those of torch's OneCycleLR; the momentum is left alone.
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
    """Warm up to the rate, which step `warmup_steps` is the first to use whole; then decay(progress in 0..1)."""
    warmup_steps = min(warmup_steps, total_steps - 1)

    def factor(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / (warmup_steps + 1)
        return decay(min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps)))

    return LambdaLR(optimizer, factor)
