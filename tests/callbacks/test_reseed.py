import itertools

import pytest
import torch
from lightning.pytorch import Callback

from firstlight.callbacks.checkpoint import STEP_STRIDE, ReseedEveryStep, reseed

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def the_global_generator_is_put_back():
    with torch.random.fork_rng(devices=[]):
        yield


def test_neighboring_seeds_steps_and_ranks_share_no_stream() -> None:
    steps = [*range(31), 997, 10_007, STEP_STRIDE - 1]
    drawn = set()
    for seed, step, rank in itertools.product(range(7), steps, range(5)):
        reseed(CPU, seed, step, rank)
        drawn.add(int(torch.randint(2**62, ())))
    assert len(drawn) == 7 * len(steps) * 5
    reseed(CPU, 2**63 - 1, 2**40)  # no seed is too large


class Draws(Callback):
    """Callback that stores a random number of the global generator in each batch, before dropout draws from it."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def on_before_zero_grad(self, *_):
        torch.rand(3)  # another user of the global generator

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.numbers.append(int(torch.randint(2**62, ())))


def draws(bench, seed: int, **options) -> list[int]:
    numbers = Draws()
    bench.fit(ReseedEveryStep(seed), numbers, limit_val_batches=0, **options)
    return numbers.numbers


def test_what_a_step_draws_depends_on_the_seed_and_the_step_alone(bench) -> None:
    first = draws(bench, seed=3, max_epochs=2)
    assert len(set(first)) == 12
    assert draws(bench, seed=3, max_epochs=2) == first
    assert not set(draws(bench, seed=4)) & set(first)


def test_with_accumulation_every_batch_of_a_step_draws_something_else(bench) -> None:
    """The last step of an epoch has fewer batches. The next epoch begins with a new step."""
    numbers = draws(bench, seed=3, max_epochs=2, accumulate_grad_batches=4)
    assert len(numbers) == len(set(numbers)) == 12
