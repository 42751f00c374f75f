"""Tests of the dropout of elements, whose masks come from random bits on the CPU."""

import pytest
import torch

from firstlight.networks.layers import Dropout, dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.003, 0.1, 0.5])
def test_the_share_of_dropped_elements_is_the_probability_in_each_sixteenth_of_the_bits(probability, dtype):
    torch.manual_seed(7)
    kept = dropout(torch.ones(400_003, dtype=dtype), probability) != 0
    for lane in range(4):  # a 64-bit number decides on four elements
        share = 1 - kept[lane::4].double().mean().item()
        assert share == pytest.approx(probability, abs=5 * (probability * (1 - probability) / 100_000) ** 0.5)


def test_what_is_kept_is_scaled_so_that_the_mean_stays_and_the_gradient_has_the_same_mask():
    torch.manual_seed(7)
    hidden = torch.full((3, 5, 7), 2.0, dtype=torch.float64, requires_grad=True)
    output = dropout(hidden, 0.25)
    output.sum().backward()
    assert set(output.unique().tolist()) == {0.0, 2 / 0.75}
    assert torch.equal(hidden.grad * 2, output)


def test_neighbors_are_dropped_independently_and_the_seed_decides():
    torch.manual_seed(7)
    first = dropout(torch.ones(400_000), 0.5) != 0
    torch.manual_seed(7)
    assert torch.equal(first, dropout(torch.ones(400_000), 0.5) != 0)
    for distance in (1, 2, 3, 4):
        both = (first[distance:] & first[:-distance]).double().mean().item()
        assert both == pytest.approx(0.25, abs=0.004)


def test_evaluation_and_a_probability_of_zero_change_nothing_and_draw_no_number():
    state = torch.get_rng_state()
    hidden = torch.randn(3, 5, generator=torch.Generator().manual_seed(7))
    assert torch.equal(dropout(hidden, 0.0), hidden)
    assert Dropout(0.5).eval()(hidden) is hidden
    assert torch.equal(state, torch.get_rng_state())
