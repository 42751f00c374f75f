import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from firstlight.networks import (
    FractionalPositions,
    LearnedPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
    TransformerConfig,
    num_parameters,
    sinusoid,
)
from firstlight.networks.attention import build_attention
from firstlight.networks.positions import build_positions, stretch
from firstlight.networks.variants import Positions

make_config = partial(TransformerConfig, dropout=0.0)


@pytest.mark.parametrize("first_position", [0, 1])
@pytest.mark.parametrize("dim", [1, 2, 7, 32])
def test_a_sinusoid_has_the_values_of_the_formula(dim: int, first_position: int) -> None:
    table = SinusoidalPositions(13, dim, first_position).table
    assert table.shape == (13, dim)
    for row in range(13):
        position = first_position + row
        for column in range(dim):
            angle = position / 10_000 ** (2 * (column // 2) / dim)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[row, column].item() == pytest.approx(expected, abs=1e-5)


def test_sinusoidal_positions_are_added_and_have_nothing_to_learn_or_to_save() -> None:
    positions = SinusoidalPositions(11, 7)
    hidden = torch.randn(2, 5, 7)
    assert_close(positions(hidden), hidden + sinusoid(torch.arange(5), 7))
    assert num_parameters(positions) == 0
    assert not positions.state_dict()


def test_learned_positions_are_added_and_counted() -> None:
    positions = LearnedPositions(11, 7)
    hidden = torch.randn(2, 5, 7)
    assert num_parameters(positions) == 11 * 7
    assert_close(positions(hidden), hidden + positions.table.weight[:5])
    positions(hidden).sum().backward()
    assert_close(positions.table.weight.grad, torch.cat((torch.full((5, 7), 2.0), torch.zeros(6, 7))))  # a batch of two


def test_the_config_chooses_the_positions() -> None:
    hidden = torch.randn(2, 5, 8)
    sizes = {"dim": 8, "num_heads": 2, "context_length": 7}
    for kind in (Positions.none, Positions.rotary, Positions.relative):
        assert torch.equal(build_positions(make_config(**sizes, positions=kind))(hidden), hidden)
    sinusoidal = build_positions(make_config(**sizes, positions=Positions.sinusoidal, first_position=1))
    assert torch.equal(sinusoidal(hidden), hidden + sinusoid(torch.arange(1, 6), 8))
    learned = build_positions(make_config(dim=64, context_length=997, positions=Positions.learned, embedding_std=0.02))
    assert learned.table.weight.std().item() == pytest.approx(0.02, rel=0.02)


def test_the_config_scales_the_sinusoid_and_the_rotation() -> None:
    sizes = {"dim": 12, "num_heads": 3, "first_position": 1, "position_scale": 0.5}
    sinusoidal = build_positions(make_config(**sizes, context_length=17))
    expected = sinusoid(torch.arange(1, 18) / 2, 12)
    assert_close(sinusoidal(torch.zeros(2, 17, 12)), expected.expand(2, 17, 12))
    scaled, plain = (
        build_attention(make_config(**sizes | {"position_scale": scale}, positions=Positions.rotary)).rotary
        for scale in (0.5, 1.0)
    )
    assert torch.equal(scaled.cos[::2], plain.cos[:25])
    assert torch.equal(scaled.sin[::2], plain.sin[:25])


@pytest.mark.parametrize(
    ("num_queries", "num_keys", "start"),
    [(11, 11, 0), (7, 7, 0), (1, 1, 0), (3, 8, 5), (1, 9, 8), (1, 11, 10), (4, 11, 7), (5, 2, 0), (2, 5, 0)],
)
def test_a_relative_score_is_the_query_times_the_vector_of_the_distance(num_queries, num_keys, start) -> None:
    torch.manual_seed(0)
    relative = RelativePositions(11, 5).double()
    query = torch.randn(2, 3, num_queries, 5, dtype=torch.float64)
    scores = relative(query, num_keys, start)
    assert scores.shape == (2, 3, num_queries, num_keys)
    for row in range(num_queries):
        for key in range(num_keys):
            distance = key - (start + row)
            vector = relative.table.weight[distance + 10]  # the first row belongs to the distance -10
            assert_close(scores[:, :, row, key], query[:, :, row] @ vector)


def test_a_stretched_table_is_linear_in_between() -> None:
    torch.manual_seed(0)
    table = torch.randn(11, 7)
    doubled = stretch(table, 21)  # 20 steps instead of 10
    assert_close(doubled[::2], table)
    assert_close(doubled[1::2], (table[:-1] + table[1:]) / 2)
    assert doubled.is_contiguous()
    assert_close(stretch(doubled, 11), table)
    line = torch.arange(11.0)[:, None] * torch.tensor([1.0, -3.0]) + 5.0
    assert_close(stretch(line, 17), torch.linspace(0, 10, 17)[:, None] * torch.tensor([1.0, -3.0]) + 5.0)


@pytest.mark.parametrize("first_position", [0, 1])
def test_a_fractional_position_is_j_over_n_max_in_each_coordinate(first_position: int) -> None:
    options = {"dim": 3, "num_heads": 1, "context_length": 5, "positions": "fraction"}
    positions = build_positions(make_config(**options, first_position=first_position))
    assert isinstance(positions, FractionalPositions)
    added = positions(torch.zeros(2, 3, 3), start=1)
    expected = torch.tensor([(j + first_position) / 5 for j in (1, 2, 3)])
    assert_close(added, expected[None, :, None].expand(2, 3, 3))
    assert num_parameters(positions) == 0


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_the_rotary_base_is_that_of_the_angles(base: float) -> None:
    """A pair (1, 0) at position p is rotated to (cos a, sin a), where a = p / base^(2i / head_dim) (Su et al. 2021)."""
    rotary = build_attention(
        make_config(dim=12, num_heads=2, context_length=11, positions="rotary", rotary_base=base)
    ).rotary
    rotated = rotary(torch.tensor([1.0] * 3 + [0.0] * 3).repeat(1, 11, 2))[0].unflatten(-1, (2, 6))  # (11, heads, 6)
    for position in (1, 10):
        for i in range(3):
            angle = position / base ** (2 * i / 6)
            assert rotated[position, :, i].tolist() == pytest.approx([math.cos(angle)] * 2, abs=1e-6)
            assert rotated[position, :, i + 3].tolist() == pytest.approx([math.sin(angle)] * 2, abs=1e-6)


def test_rotary_positions_rotate_fewer_heads_in_the_same_way() -> None:
    hidden = torch.randn(2, 5, 3 * 6)  # the vectors of three heads, one after the other
    rotated = RotaryPositions(context_length=11, num_heads=4, head_dim=6)(hidden, 2)
    assert_close(rotated, RotaryPositions(11, 3, 6)(hidden, 2))
    assert not torch.allclose(rotated, hidden)
