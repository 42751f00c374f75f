import io
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from lightning.pytorch import LightningDataModule, LightningModule
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR
from torch.utils.data import DataLoader

from firstlight.errors import UserError
from firstlight.lit.schedules import constant, cosine, inverse_sqrt, linear, one_cycle, total_steps, warmup_stable_decay
from stand_ins import trainer_of

RATE = 0.7
BATCHES = 13


def optimizer_of(*rates: float, momentum: float = 0.0) -> SGD:
    groups = [{"params": [nn.Parameter(torch.zeros(2))], "lr": rate} for rate in rates]
    return SGD(groups, lr=RATE, momentum=momentum)


def rates(schedule: Callable[[Optimizer, int], LRScheduler], steps: int, more: int = 0) -> list[float]:
    """Return the factor of the rate at each step of a run, and at `more` steps after its end."""
    optimizer = optimizer_of(RATE)
    scheduler = schedule(optimizer, steps)
    used = []
    for _ in range(steps + more):
        used.append(optimizer.param_groups[0]["lr"] / RATE)
        optimizer.step()
        scheduler.step()
    return used


@pytest.mark.parametrize("schedule", [constant, cosine, linear, warmup_stable_decay])
@pytest.mark.parametrize(("warmup", "steps"), [(4, 29), (100, 5)])  # the second warm-up is longer than the run
def test_the_warm_up_rises_in_equal_steps_to_the_whole_rate(schedule, warmup: int, steps: int) -> None:
    assert rates(partial(schedule, warmup_steps=warmup), steps)[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_constant_stays_at_the_rate() -> None:
    assert rates(partial(constant, warmup_steps=3), 17, more=5)[3:] == pytest.approx([1.0] * 19)


@pytest.mark.parametrize("final", [0.0, 0.1])
@pytest.mark.parametrize("schedule", [cosine, linear, warmup_stable_decay])
def test_the_decay_would_reach_its_end_one_step_after_the_last(schedule, final: float) -> None:
    used = rates(partial(schedule, warmup_steps=6, final_fraction=final), 46, more=3)
    assert used[45] > final
    assert used[46:] == pytest.approx([final] * 3)


def test_linear_falls_by_the_same_amount_at_every_step() -> None:
    used = rates(partial(linear, warmup_steps=2, final_fraction=0.2), 22)
    assert used[2:] == pytest.approx([1 - 0.04 * step for step in range(20)])


def test_cosine_at_a_third_of_the_way_has_three_quarters() -> None:
    assert rates(cosine, 30)[10] == pytest.approx(0.75)
    assert rates(cosine, 30)[20] == pytest.approx(0.25)


@pytest.mark.parametrize("schedule", [constant, cosine, inverse_sqrt, linear, one_cycle, warmup_stable_decay])
def test_a_run_of_one_step_has_a_rate(schedule) -> None:
    assert 0 < rates(schedule, 1)[0] <= 1


# --- warmup_stable_decay ---


@pytest.mark.parametrize("final", [0.0, 0.2])
def test_warmup_stable_decay_keeps_the_rate_and_falls_evenly_in_its_last_part(final: float) -> None:
    used = rates(partial(warmup_stable_decay, warmup_steps=3, decay_fraction=0.25, final_fraction=final), 43)
    assert used[3:34] == pytest.approx([1.0] * 31)
    assert used[34:] == pytest.approx([1 - (1 - final) * step / 10 for step in range(1, 10)])


@pytest.mark.parametrize("fraction", [0.0, 1.5])
def test_a_share_of_the_decay_outside_its_range_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"decay_fraction=.* must be above 0 and at most 1"):
        rates(partial(warmup_stable_decay, decay_fraction=fraction), 7)


# --- inverse_sqrt ---


@pytest.mark.parametrize("warmup_steps", [1, 4, 100])
def test_inverse_sqrt_has_the_rates_of_the_formula_of_2017(warmup_steps: int) -> None:
    """The paper's rate is dim^-0.5 · min(step^-0.5, step · warmup_steps^-1.5)."""
    dim = 512
    formula = [dim**-0.5 * min(step**-0.5, step * warmup_steps**-1.5) for step in range(1, 31)]
    peak = dim**-0.5 * warmup_steps**-0.5
    used = rates(partial(inverse_sqrt, warmup_steps=warmup_steps), 20, more=10)
    assert used == pytest.approx([each / peak for each in formula])


def test_inverse_sqrt_without_a_warm_up_begins_at_the_rate() -> None:
    assert rates(partial(inverse_sqrt, warmup_steps=0), 9)[:4] == pytest.approx([1, 2**-0.5, 3**-0.5, 0.5])


# --- one_cycle ---


@pytest.mark.parametrize("optimizer_class", [SGD, partial(AdamW, betas=(0.9, 0.987))], ids=["sgd", "adamw"])
@pytest.mark.parametrize(("steps", "warmup"), [(23, 0.3), (100, 0.1), (331, 0.5)])
def test_one_cycle_has_the_rates_and_the_momentum_of_torchs_one_cycle(optimizer_class, steps, warmup) -> None:

    def cycled(schedule: Callable[[Optimizer], LRScheduler]) -> list[tuple[float, ...]]:
        optimizer = optimizer_class([nn.Parameter(torch.zeros(2))], lr=RATE)
        scheduler = schedule(optimizer)
        used = []
        for step in range(steps):
            group = optimizer.param_groups[0]
            used.append((group["lr"], *(group.get("betas") or (group["momentum"],))))
            optimizer.step()
            if step < steps - 1:
                scheduler.step()
        return used

    own = cycled(lambda optimizer: one_cycle(optimizer, steps, cycle_momentum=True, warmup_fraction=warmup))
    theirs = cycled(lambda optimizer: OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=warmup))
    assert np.array(own) == pytest.approx(np.array(theirs))
    assert {round(row[1], 2) for row in own} >= {0.85, 0.95}


def test_a_cycled_momentum_continues_from_a_checkpoint() -> None:
    def begun() -> tuple[AdamW, LRScheduler]:
        optimizer = AdamW([nn.Parameter(torch.zeros(2))], lr=RATE)
        return optimizer, one_cycle(optimizer, 23, cycle_momentum=True)

    def advance(optimizer: AdamW, scheduler: LRScheduler, steps: int) -> list[tuple[float, float]]:
        used = []
        for _ in range(steps):
            optimizer.step()
            scheduler.step()
            used.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["betas"][0]))
        return used

    optimizer, scheduler = begun()
    advance(optimizer, scheduler, 9)
    file = io.BytesIO()
    torch.save([optimizer.state_dict(), scheduler.state_dict()], file)
    file.seek(0)
    resumed = begun()
    for part, state in zip(resumed, torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(state)
    assert resumed[0].param_groups[0]["betas"] == optimizer.param_groups[0]["betas"]
    assert advance(*resumed, 10) == advance(optimizer, scheduler, 10)


@pytest.mark.parametrize(
    ("optimizer_class", "options", "message"),
    [
        (SGD, {"base_momentum": -0.1}, r"base_momentum=-0\.1 must be at least 0 and below 1"),
        (SGD, {"max_momentum": 1.0}, r"max_momentum=1\.0 must be at least 0 and below 1"),
        (Adagrad, {}, "cycle_momentum=true requires an optimizer with betas or momentum; set it to false"),
    ],
)
def test_a_momentum_that_cannot_be_cycled_is_an_error(optimizer_class, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        one_cycle(optimizer_class([nn.Parameter(torch.zeros(2))]), 9, cycle_momentum=True, **options)


# --- total_steps ---


class Batches(LightningDataModule):
    def train_dataloader(self) -> DataLoader[Tensor]:
        return DataLoader(torch.ones(BATCHES, 3), batch_size=1)


class Asks(LightningModule):
    """A module that calls `total_steps` in `configure_optimizers`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def training_step(self, batch: Tensor) -> Tensor:
        return self.layer(batch).sum()

    def configure_optimizers(self) -> Optimizer:
        self.told = total_steps(self.trainer)
        return AdamW(self.parameters())


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_epochs": 3}, 3 * BATCHES),
        ({"max_steps": 17}, 17),
        ({"max_steps": 170, "max_epochs": 2}, 2 * BATCHES),
        ({"max_epochs": 2, "accumulate_grad_batches": 5}, 2 * 3),  # 5, 5 and 3 batches
        ({"max_steps": 4, "max_epochs": 2, "accumulate_grad_batches": 5}, 4),
        ({"max_epochs": 2, "limit_train_batches": 7}, 14),
        ({"max_epochs": 2, "limit_train_batches": 1}, 2),
        ({"max_epochs": 2, "limit_train_batches": 0.5, "accumulate_grad_batches": 4}, 4),
        ({"max_epochs": 2, "overfit_batches": 2}, 4),
        ({"max_epochs": 2, "fast_dev_run": 3}, 3),
    ],
)
def test_a_schedule_is_told_the_steps_that_the_run_then_takes(options: dict[str, object], steps: int) -> None:
    module, trainer = Asks(), trainer_of(**({"max_epochs": None} | options))
    trainer.fit(module, datamodule=Batches())
    assert (module.told, trainer.global_step) == (steps, steps)


@pytest.mark.parametrize("options", [{"max_epochs": -1}, {"max_time": "00:00:01:00"}])
def test_a_run_without_end_is_an_error_that_names_both_keys(options: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"set trainer\.max_steps or trainer\.max_epochs$"):
        trainer_of(**({"max_epochs": None} | options)).fit(Asks(), datamodule=Batches())
