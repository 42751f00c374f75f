import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from firstlight.networks.pooling import Flatten, PerToken, Pooled, build_head
from firstlight.networks.variants import PoolingKind

DIM, CONTEXT, OUTPUTS = 3, 11, 5
every_kind = pytest.mark.parametrize("kind", PoolingKind)

HIDDEN = torch.tensor([[[1.0, 2.0, -3.0], [5.0, -8.0, -1.0], [100.0, 100.0, 100.0]]]).double()
TWO_REAL = torch.tensor([[True, True, False]])
NONE_REAL = torch.tensor([[False, False, False]])


def make_head(kind: PoolingKind) -> torch.nn.Module:
    torch.manual_seed(0)
    return build_head(kind, DIM, CONTEXT, OUTPUTS).double()


def pool(kind: PoolingKind, padding_mask: Tensor) -> Tensor:
    head = make_head(kind)
    assert isinstance(head, Pooled)
    return head.pool(HIDDEN, padding_mask)


def random_texts(lengths: list[int], width: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Return hidden vectors (texts, width, dim) and the padding mask of texts of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(len(lengths), width, DIM, generator=generator, dtype=torch.float64)
    return hidden, torch.arange(width) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (PoolingKind.mean, [3.0, -3.0, -2.0]),
        (PoolingKind.first, [1.0, 2.0, -3.0]),
        (PoolingKind.last, [5.0, -8.0, -1.0]),
        (PoolingKind.max, [5.0, 2.0, -1.0]),
    ],
)
def test_pooling_is_over_the_real_tokens(kind: PoolingKind, expected: list[float]) -> None:
    assert pool(kind, TWO_REAL).tolist() == [expected]
    assert torch.equal(pool(kind, TWO_REAL.roll(1))[0], HIDDEN[0, 2]) == (kind in (PoolingKind.last, PoolingKind.max))


def test_attention_is_a_mean_weighted_by_a_softmax_of_scores() -> None:
    head = make_head(PoolingKind.attention)
    with torch.no_grad():
        head.pool.score.weight.copy_(
            torch.tensor([[torch.tensor(3.0).log() / 4, 0.0, 0.0]])
        )  # second: 3 times the first
    assert_close(head.pool(HIDDEN, TWO_REAL), torch.tensor([[4.0, -5.5, -1.5]]).double())


def test_per_token_scores_each_token_and_weighs_the_scores_by_place() -> None:
    head = make_head(PoolingKind.per_token)
    assert isinstance(head, PerToken)
    first, second = (HIDDEN[0, place] @ head.score.weight[0] + head.score.bias[0] for place in (0, 1))
    expected = first * head.outputs.weight[:, 0] + second * head.outputs.weight[:, 1] + head.outputs.bias
    assert_close(head(HIDDEN, TWO_REAL)[0], expected)


def test_flatten_has_a_weight_for_each_coordinate_of_each_place() -> None:
    head = make_head(PoolingKind.flatten)
    assert isinstance(head, Flatten)
    expected = head.outputs.weight[:, :6] @ HIDDEN[0, :2].flatten() + head.outputs.bias
    assert_close(head(HIDDEN, TWO_REAL)[0], expected)


@every_kind
@settings(deadline=None, max_examples=20)
@given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=5), extra=st.integers(0, CONTEXT - 7))
def test_neither_the_length_nor_the_content_of_padding_matters(kind, lengths, extra) -> None:
    head = make_head(kind)
    hidden, padding_mask = random_texts(lengths, width=7 + extra)
    changed = torch.where(padding_mask[..., None], hidden, 100 * hidden.flip(0) + 1)
    assert_close(head(changed, padding_mask), head(hidden[:, :7], padding_mask[:, :7]))


@every_kind
def test_texts_without_any_position_are_pooled_like_padding(kind: PoolingKind) -> None:
    head = make_head(kind)
    no_positions = head(HIDDEN[:, :0], NONE_REAL[:, :0])
    assert_close(no_positions, head(HIDDEN, NONE_REAL))
