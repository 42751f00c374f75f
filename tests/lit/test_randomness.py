import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from firstlight.callbacks.reseed import STEP_STRIDE, reseed

CPU = torch.device("cpu")
ONES = torch.ones(7, 31)


@pytest.fixture(autouse=True)
def the_global_generator_is_put_back():
    with torch.random.fork_rng(devices=[]):
        yield


def dropout_of(seed: int, step: int, rank: int = 0) -> Tensor:
    reseed(CPU, seed, step, rank)
    return F.dropout(ONES)


def test_the_same_seed_step_and_rank_drop_the_same() -> None:
    first = dropout_of(3, 17, 1)
    torch.rand(1009)  # earlier draws do not change the result
    assert torch.equal(dropout_of(3, 17, 1), first)


@pytest.mark.parametrize("other", [(4, 17, 1), (3, 18, 1), (3, 17, 0)], ids=["seed", "step", "rank"])
def test_another_seed_step_or_rank_drops_other_units(other: tuple[int, int, int]) -> None:
    assert not torch.equal(dropout_of(*other), dropout_of(3, 17, 1))


def test_a_run_goes_on_where_it_would_have_been() -> None:
    uninterrupted = [dropout_of(5, step) for step in range(11)]
    resumed = [dropout_of(5, step) for step in range(7, 11)]
    assert all(torch.equal(a, b) for a, b in zip(uninterrupted[7:], resumed, strict=True))


def test_neighbouring_seeds_steps_and_ranks_share_no_stream() -> None:
    steps = [*range(31), 997, 10_007, STEP_STRIDE - 1]
    drawn = set()
    for seed, step, rank in itertools.product(range(7), steps, range(5)):
        reseed(CPU, seed, step, rank)
        drawn.add(int(torch.randint(2**62, ())))
    assert len(drawn) == 7 * len(steps) * 5


def test_no_seed_is_too_large() -> None:
    assert dropout_of(2**63 - 1, 2**40).shape == ONES.shape


def test_generators_of_ones_own_are_left_alone() -> None:
    own = torch.Generator().manual_seed(1)
    before = own.get_state()
    reseed(CPU, 3, 17)
    assert torch.equal(own.get_state(), before)
