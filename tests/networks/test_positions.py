import math

import pytest
import torch
from torch.testing import assert_close

from firstlight.networks.attention import build_attention
from firstlight.networks.config import Positions, TransformerConfig
from firstlight.networks.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    build_positions,
    sinusoid,
)


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


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


def test_the_first_position_is_zero_or_one() -> None:
    assert_close(SinusoidalPositions(5, 4, first_position=0).table[0], torch.tensor([0.0, 1.0, 0.0, 1.0]))
    expected = torch.tensor([math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)])
    assert_close(SinusoidalPositions(5, 4, first_position=1).table[0], expected)


def test_a_sinusoid_that_counts_from_one_is_one_place_ahead() -> None:
    assert torch.equal(SinusoidalPositions(11, 7, 1).table[:-1], SinusoidalPositions(11, 7, 0).table[1:])


@pytest.mark.parametrize("column", range(7))
def test_a_wave_repeats_after_two_pi_times_10000_to_the_2i_over_dim(column: int) -> None:
    wave_length = 2 * math.pi * 10_000 ** (2 * (column // 2) / 7)
    positions = torch.arange(5, dtype=torch.float64) * wave_length / 5
    waves = sinusoid(positions, 7)[:, column]
    assert_close(sinusoid(positions + wave_length, 7)[:, column], waves, atol=1e-4, rtol=0)
    assert (
        sinusoid(positions + wave_length / 2, 7)[:, column] + waves
    ).abs().max() < 1e-4  # half a wave turns the sign


def test_the_product_of_two_encodings_depends_only_on_their_distance() -> None:
    table = sinusoid(torch.arange(31), 16)
    products = table @ table.T
    for distance in range(31):
        diagonal = products.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=0)


def test_sinusoidal_positions_are_added_and_have_nothing_to_learn_or_to_save() -> None:
    positions = SinusoidalPositions(11, 7)
    hidden = torch.randn(2, 5, 7)
    assert_close(positions(hidden), hidden + sinusoid(torch.arange(5), 7))
    assert count(positions) == 0
    assert not positions.state_dict()


def test_learned_positions_are_added_and_counted() -> None:
    positions = LearnedPositions(11, 7)
    hidden = torch.randn(2, 5, 7)
    assert count(positions) == 11 * 7
    assert_close(positions(hidden), hidden + positions.table.weight[:5])
    positions(hidden).sum().backward()
    assert_close(positions.table.weight.grad, torch.cat((torch.full((5, 7), 2.0), torch.zeros(6, 7))))  # a batch of two


def test_learned_positions_start_as_wide_as_the_embedding() -> None:
    torch.manual_seed(0)
    config = TransformerConfig(dim=64, context_length=997, positions=Positions.learned, embedding_std=0.02)
    positions = build_positions(config)
    assert isinstance(positions, LearnedPositions)
    assert positions.table.weight.std().item() == pytest.approx(0.02, rel=0.02)


def test_the_config_chooses_the_positions() -> None:
    hidden = torch.randn(2, 5, 8)
    sizes = {"dim": 8, "num_heads": 2, "context_length": 7}
    for kind in (Positions.none, Positions.rotary):
        assert torch.equal(build_positions(TransformerConfig(**sizes, positions=kind))(hidden), hidden)
    sinusoidal = build_positions(TransformerConfig(**sizes, positions=Positions.sinusoidal, first_position=1))
    assert torch.equal(sinusoidal(hidden), hidden + sinusoid(torch.arange(1, 6), 8))
    assert count(build_positions(TransformerConfig(**sizes, positions=Positions.learned))) == 7 * 8


def test_a_rotated_product_depends_only_on_the_distance() -> None:
    torch.manual_seed(0)
    rotary = RotaryPositions(23, 6)
    query, key = torch.randn(6), torch.randn(6)
    queries = rotary(query.expand(1, 1, 23, 6))[0, 0]  # the same vector at every position
    keys = rotary(key.expand(1, 1, 23, 6))[0, 0]
    products = queries @ keys.T
    values = set()
    for distance in range(-22, 23):
        diagonal = products.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=0)
        values.add(round(diagonal[0].item(), 3))
    assert len(values) > 30  # and it does depend on the distance


def test_a_rotation_keeps_the_norm() -> None:
    torch.manual_seed(0)
    heads = torch.randn(2, 3, 13, 10)
    assert_close(RotaryPositions(17, 10)(heads).norm(dim=-1), heads.norm(dim=-1))


def test_a_rotation_leaves_position_zero_unchanged() -> None:
    torch.manual_seed(0)
    heads = torch.randn(2, 3, 13, 10)
    rotated = RotaryPositions(17, 10)(heads)
    assert torch.equal(rotated[:, :, 0], heads[:, :, 0])
    assert (rotated[:, :, 1:] != heads[:, :, 1:]).any(dim=-1).all()


def test_a_rotation_turns_each_pair_by_position_over_its_wave() -> None:
    heads = torch.zeros(1, 1, 5, 6)
    heads[..., 1] = 1.0  # the first half of pair 1; its other half is coordinate 1 + 6 / 2
    rotated = RotaryPositions(5, 6)(heads)[0, 0]
    for position in range(5):
        angle = position / 10_000 ** (2 / 6)
        expected = torch.zeros(6)
        expected[1], expected[4] = math.cos(angle), math.sin(angle)
        assert_close(rotated[position], expected)


def test_rotary_positions_have_nothing_to_learn_or_to_save() -> None:
    config = TransformerConfig(positions=Positions.rotary)
    assert count(build_attention(config)) == count(build_attention(TransformerConfig()))
    assert set(build_attention(config).state_dict()) == set(build_attention(TransformerConfig()).state_dict())


def test_attention_with_rotary_positions_does_not_care_where_a_text_starts() -> None:
    torch.manual_seed(0)
    attention = build_attention(TransformerConfig(dim=12, num_heads=3, context_length=13, positions=Positions.rotary))
    text, before = torch.randn(2, 5, 12), torch.randn(2, 6, 12)
    shifted = torch.cat((before, text), dim=1)
    only_the_text = (torch.arange(11) >= 6)[None, None, None]
    assert_close(attention(shifted, mask=only_the_text)[:, 6:], attention(text), atol=1e-5, rtol=1e-4)


def test_attention_with_rotary_positions_knows_the_order() -> None:
    torch.manual_seed(0)
    text = torch.randn(2, 5, 12)
    order = torch.tensor([3, 1, 4, 0, 2])
    for kind, same in ((Positions.none, True), (Positions.rotary, False)):
        attention = build_attention(TransformerConfig(dim=12, num_heads=3, positions=kind))
        outputs = attention(text)
        assert torch.allclose(attention(text[:, order]), outputs[:, order], atol=1e-5) is same


def test_attention_with_rotary_positions_runs_in_mixed_precision() -> None:
    attention = build_attention(TransformerConfig(dim=12, num_heads=3, positions=Positions.rotary))
    hidden = torch.randn(2, 5, 12)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = attention(hidden)
    assert_close(mixed.float(), attention(hidden), atol=0.05, rtol=0.05)
