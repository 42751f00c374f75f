"""Sampling of the next token from its scores."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from firstlight.decoding.generate import Sampling, finest

BATCH, VOCABULARY = 3, 29


def random_logits(seed: int = 0, batch: int = BATCH, vocab_size: int = VOCABULARY) -> Tensor:
    return 3 * torch.randn(batch, vocab_size, generator=torch.Generator().manual_seed(seed))


def logits_of(*shares: float) -> Tensor:
    """Return one row of logits with the given probabilities, as precisely as possible."""
    return torch.tensor([shares], dtype=torch.float64).log()


def kept(sampling: Sampling, logits: Tensor) -> list[list[int]]:
    """Return the ids of each row that have a probability above 0."""
    return [row.nonzero().flatten().tolist() for row in sampling.probabilities(logits)]


def draws(sampling: Sampling, logits: Tensor, count: int, seed: int = 1) -> Tensor:
    """Return ids drawn from one row, (count,)."""
    random = torch.Generator().manual_seed(seed)
    return sampling.choose(logits.expand(count, -1), random)


# --- the distribution ---


def test_the_temperature_divides_the_logits() -> None:
    logits = random_logits()
    for temperature in (0.7, 1.0):
        shares = Sampling(temperature=temperature).probabilities(logits)
        assert_close(shares, (logits / temperature).softmax(dim=1))
    Sampling(temperature=0.7, top_k=5, top_p=0.9, never=(2,)).choose(logits, torch.Generator().manual_seed(0))
    assert torch.equal(logits, random_logits())


@pytest.mark.parametrize("temperature", [1e-2, 1e-6, 1e-30, 1e-300])
def test_a_temperature_near_zero_is_greedy(temperature: float) -> None:
    logits = random_logits()
    expected = torch.nn.functional.one_hot(logits.argmax(dim=1), VOCABULARY).float()
    assert_close(Sampling(temperature=temperature).probabilities(logits), expected)
    assert torch.equal(Sampling(temperature=temperature).choose(logits), Sampling(greedy=True).choose(logits))
    assert torch.equal(Sampling(temperature=11.0, top_k=13, greedy=True).choose(logits), logits.argmax(dim=1))


# --- top k ---


@settings(deadline=None, max_examples=50)
@given(row=st.lists(st.integers(-3, 3), min_size=1, max_size=VOCABULARY), top_k=st.integers(1, VOCABULARY + 2))
def test_top_k_keeps_exactly_k_even_where_some_are_equally_likely(row: list[int], top_k: int) -> None:
    logits = torch.tensor([row], dtype=torch.float32)
    (ids,) = kept(Sampling(top_k=top_k), logits)
    assert len(ids) == min(top_k, len(row))
    assert sorted((row[i] for i in ids), reverse=True) == sorted(row, reverse=True)[: len(ids)]


# --- top p ---


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000), top_p=st.floats(1e-6, 1, exclude_min=True))
def test_top_p_keeps_the_fewest_that_reach_it_and_always_one(seed: int, top_p: float) -> None:
    logits = random_logits(seed, batch=1).double()
    (ids,) = kept(Sampling(top_p=top_p), logits)
    shares = logits.softmax(dim=1)[0]
    ordered = shares.sort(descending=True)
    assert sorted(ids) == sorted(ordered.indices[: len(ids)].tolist())
    assert len(ids) >= 1
    assert len(kept(Sampling(top_p=0.5), torch.zeros(1, 7))[0]) == 4  # equal tokens are cut too
    assert float(shares[ids].sum()) >= top_p - 1e-9
    assert float(ordered.values[: len(ids) - 1].sum()) < top_p + 1e-9


def test_top_p_counts_what_top_k_and_the_temperature_leave() -> None:
    logits = logits_of(0.4, 0.3, 0.2, 0.1)
    assert kept(Sampling(top_k=2, top_p=0.6), logits) == [[0, 1]]  # 4 / 7 and 3 / 7
    assert kept(Sampling(top_k=2, top_p=0.56), logits) == [[0]]
    assert kept(Sampling(temperature=0.1, top_p=0.9), logits) == [[0]]


# --- never ---


def test_what_is_never_drawn_has_no_probability_and_the_others_share_it() -> None:
    logits = logits_of(0.1, 0.4, 0.2, 0.3)
    expected = torch.tensor([[1 / 3, 0, 2 / 3, 0]], dtype=torch.float64)
    assert_close(Sampling(never=[1, 3]).probabilities(logits), expected)


@pytest.mark.parametrize("options", [{}, {"greedy": True}, {"temperature": 1e-300}, {"top_k": 27}, {"top_p": 0.9}])
def test_what_is_never_to_be_written_never_is(options: dict[str, object]) -> None:
    logits = random_logits(batch=1)
    likeliest = logits[0].topk(3).indices.tolist()
    drawn = draws(Sampling(never=likeliest, **options), logits, 997)
    assert not set(drawn.tolist()) & set(likeliest)


# --- draws ---


def test_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    """Pearson's chi-square statistic is below its 99.9% quantile for ten degrees of freedom."""
    logits, count = random_logits(seed=7, batch=1, vocab_size=11) / 2, 10_007
    sampling = Sampling(temperature=2.0, top_k=5)
    expected = sampling.probabilities(logits)[0].double() * count
    found = torch.bincount(draws(sampling, logits, count), minlength=11)
    possible = expected > 0
    assert found[~possible].sum() == 0
    assert ((found - expected)[possible].square() / expected[possible]).sum() < 29.6


def test_the_same_seed_draws_the_same_and_the_global_state_stays() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    logits = random_logits(batch=1)
    assert torch.equal(draws(Sampling(), logits, 101, seed=2), draws(Sampling(), logits, 101, seed=2))
    assert not torch.equal(draws(Sampling(), logits, 101, seed=2), draws(Sampling(), logits, 101, seed=3))
    assert torch.equal(torch.get_rng_state(), before)


# --- mistakes ---


def test_an_apple_gpu_which_has_no_float64_draws_from_float32() -> None:
    assert [finest(torch.device(name)) for name in ("cpu", "cuda", "mps")] == [torch.float64] * 2 + [torch.float32]
