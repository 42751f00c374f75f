"""Learning-rate schedules. Each is a function of the optimizer and the number of steps of the run."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from lightning.pytorch import LightningDataModule, Trainer
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from firstlight.choices import require
from firstlight.data.batches import steps_of
from firstlight.errors import UserError
from firstlight.lit.lightning_internals import data_of_fit

ScheduleFactory = Callable[[Optimizer, int], LRScheduler]
LONG_WARMUP = 0.1  # of all steps; a longer warm-up leaves too few steps at the full rate


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
    return steps_of(trainer, len(data.train_dataloader()))


def warmup_of(warmup_steps: int | None, total_steps: int) -> int:
    """Return the number of steps of a warm-up. warmup_steps: None for a tenth of all steps, at most 100."""
    return min(100, total_steps // 10) if warmup_steps is None else warmup_steps


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
    optimizer: Optimizer, total_steps: int, *, warmup_steps: int | None = 0, final_fraction: float = 0.0
) -> LRScheduler:
    """Return a schedule with a linear warm-up, then a decay by half a cosine (Loshchilov & Hutter 2017).

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_steps: The number of steps in which the rate rises linearly from 0. None: a tenth of all steps, at most
            100.
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
    return _scheduler(optimizer, total_steps, warmup_steps, partial(_half_cosine, 1.0, final_fraction))


# A cosine with a warm-up over a tenth of the steps, at most 100.
default_schedule: ScheduleFactory = partial(cosine, warmup_steps=None)


def linear(
    optimizer: Optimizer, total_steps: int, *, warmup_steps: int | None = 0, final_fraction: float = 0.0
) -> LRScheduler:
    """Return a schedule with a linear warm-up, then a linear decay.

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_steps: The number of steps in which the rate rises linearly from 0. None: a tenth of all steps, at most
            100.
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


def warmup_stable_decay(
    optimizer: Optimizer,
    total_steps: int,
    *,
    warmup_steps: int | None = 0,
    decay_fraction: float = 0.2,
    final_fraction: float = 0.0,
) -> LRScheduler:
    """Return a schedule with a linear warm-up, a constant rate and a linear decay at the end (Hägele et al. 2024).

    It reaches about the loss of a cosine, and the validations before the decay do not depend on the length of the run.

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_steps: The number of steps in which the rate rises linearly from 0. None: a tenth of all steps, at most
            100.
        decay_fraction: The share of the steps after the warm-up in which the rate decays, above 0 and at most 1.
        final_fraction: The final rate as a fraction of the optimizer's rate.

    Returns:
        A scheduler that is stepped after every optimizer step.

    Raises:
        ValueError: If `decay_fraction` is not above 0 and at most 1.

    Example:
        >>> import torch
        >>> from firstlight.lit import warmup_stable_decay
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = warmup_stable_decay(optimizer, total_steps=4, decay_fraction=0.5)
        >>> [round(rate, 3) for rate in scheduler.get_last_lr()]
        [1.0]
    """
    require(0 < decay_fraction <= 1, f"decay_fraction={decay_fraction} must be above 0 and at most 1")

    def decay(progress: float) -> float:
        left = min(1.0, (1 - progress) / decay_fraction)
        return final_fraction + (1 - final_fraction) * left

    return _scheduler(optimizer, total_steps, warmup_steps, decay)


def inverse_sqrt(optimizer: Optimizer, total_steps: int, *, warmup_steps: int = 4000) -> LRScheduler:  # noqa: ARG001
    """Return a schedule with a linear warm-up, then a decay by 1/√step (Vaswani et al. 2017).

    The optimizer's rate is reached at the step `warmup_steps`. In the paper it is dim^-0.5 · warmup_steps^-0.5. The
    decay does not depend on the length of the training, and a training that is shorter than the warm-up does not reach
    the rate.

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_steps: The number of steps in which the rate rises linearly from 0.

    Returns:
        A scheduler that is stepped after every optimizer step.

    Example:
        >>> import torch
        >>> from firstlight.lit import inverse_sqrt
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> scheduler = inverse_sqrt(optimizer, total_steps=10, warmup_steps=4)
        >>> scheduler.get_last_lr()
        [0.25]
    """
    peak = max(1, warmup_steps)
    return LambdaLR(optimizer, lambda step: min((step + 1) / peak, math.sqrt(peak / (step + 1))))


def one_cycle(
    optimizer: Optimizer,
    total_steps: int,
    *,
    warmup_fraction: float = 0.3,
    initial_fraction: float = 0.04,
    final_fraction: float = 4e-6,
    cycle_momentum: bool = False,
    base_momentum: float = 0.85,
    max_momentum: float = 0.95,
) -> LRScheduler:
    """Return a schedule that rises by half a cosine to the optimizer's rate, then decays by one (Smith & Topin 2018).

    The rates and the momentum are those of `torch.optim.lr_scheduler.OneCycleLR`.

    Args:
        optimizer: The optimizer whose learning rates are multiplied.
        total_steps: The number of steps of the complete training.
        warmup_fraction: The share of the steps in which the rate rises.
        initial_fraction: The first rate as a fraction of the optimizer's rate.
        final_fraction: The final rate as a fraction of the optimizer's rate.
        cycle_momentum: Whether the momentum falls while the rate rises, and rises while it falls. It is the first of
            the optimizer's `betas`, such as β1 of Adam, or the `momentum` of an optimizer without `betas`.
        base_momentum: The momentum at the peak of the rate.
        max_momentum: The momentum at the first and the last step.

    Returns:
        A scheduler that is stepped after every optimizer step.

    Raises:
        ValueError: If `cycle_momentum` is True and the optimizer has no momentum, or if a momentum is not at least 0
            and below 1.

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

    def cycle(first: float, middle: float, last: float, step: int) -> float:
        if step <= peak:
            return _half_cosine(first, middle, step / peak)
        return _half_cosine(middle, last, min(1.0, (step - peak) / (end - peak)))

    rate = partial(cycle, initial_fraction, 1.0, final_fraction)
    if not cycle_momentum:
        return LambdaLR(optimizer, rate)
    for name, value in (("base_momentum", base_momentum), ("max_momentum", max_momentum)):
        require(0 <= value < 1, f"{name}={value} must be at least 0 and below 1")
    if not {"betas", "momentum"} & set(optimizer.defaults):
        raise ValueError("cycle_momentum=true requires an optimizer with betas or momentum; set it to false")
    return LambdaLRAndMomentum(optimizer, rate, partial(cycle, max_momentum, base_momentum, max_momentum))


class LambdaLRAndMomentum(LambdaLR):
    """A `LambdaLR` that also sets the momentum, which for an optimizer with `betas` is the first of them.

    Args:
        optimizer: The optimizer.
        rate: Returns the factor of the learning rates at a step, which is counted from 0.
        momentum: Returns the momentum at a step.
    """

    def __init__(self, optimizer: Optimizer, rate: Callable[[int], float], momentum: Callable[[int], float]) -> None:
        self._momentum = momentum
        super().__init__(optimizer, rate)  # takes the step to 0

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        momentum = self._momentum(self.last_epoch)
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "_momentum"}


def _half_cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


def _scheduler(
    optimizer: Optimizer, total_steps: int, warmup_steps: int | None, decay: Callable[[float], float]
) -> LRScheduler:
    """Return a schedule whose rate rises until step `warmup_steps` and then follows decay(progress from 0 to 1)."""
    rising = min(warmup_of(warmup_steps, total_steps), total_steps - 1)

    def factor(step: int) -> float:
        if step < rising:
            return (step + 1) / (rising + 1)
        return decay(min(1.0, (step - rising) / max(1, total_steps - rising)))

    return LambdaLR(optimizer, factor)
