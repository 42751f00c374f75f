import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from firstlight.networks.attention import build_attention
from firstlight.networks.config import Positions, TransformerConfig
from firstlight.networks.positions import (
    FractionalPositions,
    LearnedPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
    build_positions,
    sinusoid,
    skew,
    stretch,
)

make_config = partial(TransformerConfig, dropout=0.0)

rotary_and_relative = pytest.mark.parametrize("positions", [Positions.rotary, Positions.relative])


def turned(rotary: RotaryPositions, heads: torch.Tensor, start: int = 0) -> torch.Tensor:
    """Return rotated heads, (batch, heads, length, head_dim). The module receives them concatenated."""
    side_by_side = heads.transpose(1, 2).flatten(2)
    return rotary(side_by_side, start).unflatten(2, (heads.shape[1], -1)).transpose(1, 2)


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
    ).abs().max() < 1e-4  # half a wave changes the sign


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
    config = make_config(dim=64, context_length=997, positions=Positions.learned, embedding_std=0.02)
    positions = build_positions(config)
    assert isinstance(positions, LearnedPositions)
    assert positions.table.weight.std().item() == pytest.approx(0.02, rel=0.02)


def test_the_config_chooses_the_positions() -> None:
    hidden = torch.randn(2, 5, 8)
    sizes = {"dim": 8, "num_heads": 2, "context_length": 7}
    for kind in (Positions.none, Positions.rotary, Positions.relative):
        assert torch.equal(build_positions(make_config(**sizes, positions=kind))(hidden), hidden)
    sinusoidal = build_positions(make_config(**sizes, positions=Positions.sinusoidal, first_position=1))
    assert torch.equal(sinusoidal(hidden), hidden + sinusoid(torch.arange(1, 6), 8))
    assert count(build_positions(make_config(**sizes, positions=Positions.learned))) == 7 * 8


def test_a_rotated_product_depends_only_on_the_distance() -> None:
    torch.manual_seed(0)
    rotary = RotaryPositions(23, 1, 6)
    query, key = torch.randn(6), torch.randn(6)
    queries = turned(rotary, query.expand(1, 1, 23, 6))[0, 0]  # the same vector at every position
    keys = turned(rotary, key.expand(1, 1, 23, 6))[0, 0]
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
    assert_close(turned(RotaryPositions(17, 3, 10), heads).norm(dim=-1), heads.norm(dim=-1))


def test_a_rotation_leaves_position_zero_unchanged() -> None:
    torch.manual_seed(0)
    heads = torch.randn(2, 3, 13, 10)
    rotated = turned(RotaryPositions(17, 3, 10), heads)
    assert torch.equal(rotated[:, :, 0], heads[:, :, 0])
    assert (rotated[:, :, 1:] != heads[:, :, 1:]).any(dim=-1).all()


def test_a_rotation_turns_each_pair_by_position_over_its_wave() -> None:
    heads = torch.zeros(1, 1, 5, 6)
    heads[..., 1] = 1.0  # the first coordinate of pair 1; the second is coordinate 1 + 6 / 2
    rotated = turned(RotaryPositions(5, 1, 6), heads)[0, 0]
    for position in range(5):
        angle = position / 10_000 ** (2 / 6)
        expected = torch.zeros(6)
        expected[1], expected[4] = math.cos(angle), math.sin(angle)
        assert_close(rotated[position], expected)


def test_rotary_positions_have_nothing_to_learn_or_to_save() -> None:
    config = make_config(positions=Positions.rotary)
    assert count(build_attention(config)) == count(build_attention(make_config()))
    assert set(build_attention(config).state_dict()) == set(build_attention(make_config()).state_dict())


@rotary_and_relative
def test_attention_by_distance_does_not_care_where_a_text_starts(positions: Positions) -> None:
    torch.manual_seed(0)
    attention = build_attention(make_config(dim=12, num_heads=3, context_length=13, positions=positions))
    text, before = torch.randn(2, 5, 12), torch.randn(2, 6, 12)
    shifted = torch.cat((before, text), dim=1)
    only_the_text = (torch.arange(11) >= 6)[None, None, None]
    assert_close(attention(shifted, mask=only_the_text)[:, 6:], attention(text), atol=1e-5, rtol=1e-4)


def test_attention_by_distance_knows_the_order() -> None:
    torch.manual_seed(0)
    text = torch.randn(2, 5, 12)
    order = torch.tensor([3, 1, 4, 0, 2])
    for kind, same in ((Positions.none, True), (Positions.rotary, False), (Positions.relative, False)):
        attention = build_attention(make_config(dim=12, num_heads=3, positions=kind))
        outputs = attention(text)
        assert torch.allclose(attention(text[:, order]), outputs[:, order], atol=1e-5) is same


@rotary_and_relative
def test_attention_by_distance_runs_in_mixed_precision(positions: Positions) -> None:
    torch.manual_seed(0)
    attention = build_attention(make_config(dim=12, num_heads=3, positions=positions))
    hidden = torch.randn(2, 5, 12)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = attention(hidden)
    assert_close(mixed.float(), attention(hidden), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("first_position", [0, 1])
def test_a_text_that_goes_on_gets_the_positions_it_would_have_had_in_one_piece(first_position: int) -> None:
    torch.manual_seed(0)
    hidden = torch.randn(2, 11, 7)
    for positions in (SinusoidalPositions(13, 7, first_position), LearnedPositions(13, 7)):
        whole = positions(hidden)
        for start in (1, 4, 10):
            assert torch.equal(positions(hidden[:, start:], start), whole[:, start:])


def test_heads_that_go_on_are_turned_as_they_would_have_been_in_one_piece() -> None:
    torch.manual_seed(0)
    rotary, heads = RotaryPositions(13, 3, 10), torch.randn(2, 3, 11, 10)
    whole = turned(rotary, heads)
    for start in (1, 4, 10):
        assert torch.equal(turned(rotary, heads[:, :, start:], start), whole[:, :, start:])


@pytest.mark.parametrize("first_position", [0, 3])
def test_a_scale_of_a_half_puts_two_positions_in_the_place_of_one(first_position: int) -> None:
    plain = SinusoidalPositions(11, 7, first_position).table
    squeezed = SinusoidalPositions(21, 7, 2 * first_position, scale=0.5).table
    assert torch.equal(squeezed[::2], plain)
    assert not (squeezed[1::2, :, None] == plain.T).any(dim=2).all(dim=1).any()  # the other positions are in between
    heads = torch.randn(2, 3, 1, 10).expand(2, 3, 21, 10)
    squeezed_heads = turned(RotaryPositions(21, 3, 10, scale=0.5), heads)
    assert torch.equal(squeezed_heads[:, :, ::2], turned(RotaryPositions(11, 3, 10), heads[:, :, :11]))


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


def test_a_stretched_context_keeps_the_products_of_what_stood_half_as_far_apart() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(10), torch.randn(10)

    def products(context: int, scale: float) -> torch.Tensor:
        rotary = RotaryPositions(context, 1, 10, scale)
        both = (turned(rotary, vector.expand(1, 1, context, 10))[0, 0] for vector in (query, key))
        return next(both) @ next(both).T

    assert_close(products(21, 0.5)[::2, ::2], products(11, 1.0), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("num_queries", "num_keys"), [(1, 1), (1, 7), (7, 1), (5, 7), (7, 5), (7, 7)])
def test_a_skew_moves_every_row_until_distances_become_keys(num_queries: int, num_keys: int) -> None:
    scores = torch.randn(2, 3, num_queries, num_queries + num_keys - 1)
    skewed = skew(scores, num_keys)
    assert skewed.shape == (2, 3, num_queries, num_keys)
    columns = torch.arange(num_keys) + (num_queries - 1 - torch.arange(num_queries))[:, None]
    assert torch.equal(skewed, scores.gather(-1, columns.expand(2, 3, -1, -1)))


def test_a_skew_by_hand() -> None:
    scores = torch.tensor([[-2, -1, 0, 1], [-2, -1, 0, 1], [-2, -1, 0, 1]])  # of three queries and two keys
    assert skew(scores, 2).tolist() == [[0, 1], [-1, 0], [-2, -1]]


def test_the_gradient_of_a_skew_goes_where_its_values_came_from() -> None:
    scores = torch.randn(2, 5, 11, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: skew(each, 7), scores)


@pytest.mark.parametrize(
    ("num_queries", "num_keys", "start"),
    [(11, 11, 0), (7, 7, 0), (1, 1, 0), (3, 8, 5), (1, 9, 8), (1, 11, 10), (4, 11, 7), (5, 2, 0), (2, 5, 0)],
)
def test_a_relative_score_is_the_query_times_the_vector_of_the_distance(
    num_queries: int, num_keys: int, start: int
) -> None:
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


def test_relative_scores_of_a_text_that_goes_on_are_rows_of_the_whole() -> None:
    torch.manual_seed(0)
    relative, query = RelativePositions(13, 5).double(), torch.randn(2, 3, 11, 5, dtype=torch.float64)
    whole = relative(query, 11)
    for start, end in ((0, 1), (0, 4), (4, 7), (7, 11), (10, 11)):
        assert_close(relative(query[:, :, start:end], end, start), whole[:, :, start:end, :end])


def test_shifting_a_text_shifts_its_relative_scores() -> None:
    torch.manual_seed(0)
    relative, query = RelativePositions(13, 5).double(), torch.randn(2, 3, 7, 5, dtype=torch.float64)
    shifted = relative(torch.cat((torch.zeros(2, 3, 4, 5).double(), query), dim=2), 11)
    assert_close(shifted[:, :, 4:, 4:], relative(query, 7))
    assert not torch.isclose(shifted[:, :, 4:, :7], relative(query, 7)).all(dim=-1).any()


def test_the_first_and_the_last_vector_are_of_the_largest_distances_and_the_heads_share_them() -> None:
    relative = RelativePositions(7, 5)
    assert count(relative) == 13 * 5
    query = torch.ones(2, 3, 7, 5)
    for row, (first, last) in ((0, (6, 0)), (12, (0, 6)), (6, (3, 3))):
        relative.zero_grad()
        relative(query, 7)[:, :, first, last].sum().backward()
        expected = torch.zeros(13, 5)
        expected[row] = 2 * 3
        assert torch.equal(relative.table.weight.grad, expected)


def test_relative_scores_start_about_as_large_as_a_coordinate_of_the_query() -> None:
    torch.manual_seed(0)
    relative = RelativePositions(997, 64)
    assert relative.table.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert relative(torch.randn(1, 1, 97, 64), 97).std().item() == pytest.approx(1.0, rel=0.1)


def test_attention_with_relative_positions_learns_two_contexts_of_vectors_but_one() -> None:
    config = make_config(dim=12, num_heads=3, context_length=13, positions=Positions.relative)
    plain = make_config(dim=12, num_heads=3, context_length=13)
    assert count(build_attention(config)) == count(build_attention(plain)) + 25 * 4
    assert set(build_attention(config).state_dict()) == {*build_attention(plain).state_dict(), "relative.table.weight"}


@pytest.mark.parametrize("length", [2, 5, 11, 13, 20, 29])
def test_a_stretched_table_keeps_its_ends(length: int) -> None:
    torch.manual_seed(0)
    table = torch.randn(11, 7)
    stretched = stretch(table, length)
    assert stretched.shape == (length, 7)
    assert stretched.is_contiguous()
    assert_close(stretched[[0, -1]], table[[0, -1]])


def test_a_table_stretched_to_its_own_length_is_itself() -> None:
    torch.manual_seed(0)
    table = torch.randn(11, 7)
    assert_close(stretch(table, 11), table)


def test_a_stretched_table_is_linear_in_between() -> None:
    torch.manual_seed(0)
    table = torch.randn(11, 7)
    doubled = stretch(table, 21)  # 20 steps instead of 10
    assert_close(doubled[::2], table)
    assert_close(doubled[1::2], (table[:-1] + table[1:]) / 2)
    assert_close(stretch(doubled, 11), table)
    line = torch.arange(11.0)[:, None] * torch.tensor([1.0, -3.0]) + 5.0
    assert_close(stretch(line, 17), torch.linspace(0, 10, 17)[:, None] * torch.tensor([1.0, -3.0]) + 5.0)


def test_a_stretched_table_fits_a_longer_context() -> None:
    torch.manual_seed(0)
    short, long = LearnedPositions(11, 7), LearnedPositions(29, 7)
    with torch.no_grad():
        long.table.weight.copy_(stretch(short.table.weight, 29))
    hidden = torch.randn(2, 29, 7)
    assert_close(long(hidden)[:, -1], hidden[:, -1] + short.table.weight[-1])


@pytest.mark.parametrize("first_position", [0, 1])
def test_a_fractional_position_is_j_over_n_max_in_each_coordinate(first_position: int) -> None:
    options = {"dim": 3, "num_heads": 1, "context_length": 5, "positions": "fraction"}
    positions = build_positions(make_config(**options, first_position=first_position))
    assert isinstance(positions, FractionalPositions)
    added = positions(torch.zeros(2, 3, 3), start=1)
    expected = torch.tensor([(j + first_position) / 5 for j in (1, 2, 3)])
    assert_close(added, expected[None, :, None].expand(2, 3, 3))
    assert count(positions) == 0


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_the_rotary_base_is_that_of_the_angles(base: float) -> None:
    """A pair (1, 0) at position p is rotated to (cos a, sin a), where a = p / base^(2i / head_dim) (Su et al. 2021)."""
    rotary = build_attention(
        make_config(dim=12, num_heads=2, context_length=11, positions="rotary", rotary_base=base)
    ).rotary
    assert rotary is not None
    rotated = rotary(torch.tensor([1.0] * 3 + [0.0] * 3).repeat(1, 11, 2))[0].unflatten(-1, (2, 6))  # (11, heads, 6)
    for position in (1, 10):
        for i in range(3):
            angle = position / base ** (2 * i / 6)
            assert rotated[position, :, i].tolist() == pytest.approx([math.cos(angle)] * 2, abs=1e-6)
            assert rotated[position, :, i + 3].tolist() == pytest.approx([math.sin(angle)] * 2, abs=1e-6)


def test_rotary_positions_rotate_fewer_heads_in_the_same_way() -> None:
    rotary = RotaryPositions(context_length=11, num_heads=4, head_dim=6)
    heads = torch.randn(2, 3, 5, 6)
    assert_close(turned(rotary, heads, start=2), turned(RotaryPositions(11, 3, 6), heads, start=2))
