"""Attention, computed by hand with small numbers."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.networks import MultiHeadAttention, masks
from stand_ins import make_hidden, with_weights_of

LN3 = math.log(3)


def tensor(rows: object) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def identity_attention(dim: int, num_heads: int, **options: bool) -> MultiHeadAttention:
    """Return attention whose queries, keys and values are the tokens, and whose output is the heads (as in post 4)."""
    attention = MultiHeadAttention(dim, num_heads, dim // num_heads, output_projection=False, **options).double()
    for layer in (attention.query, attention.key, attention.value):
        nn.init.eye_(layer.weight)
    return attention


# --- attention: two orthogonal tokens, one head of width 4 ---

SIDE = math.sqrt(2 * LN3)  # a token times itself is 2 ln 3, and divided by √4 it is ln 3; times the other token it is 0
TWO_TOKENS = tensor([[[SIDE, 0, 0, 0], [0, SIDE, 0, 0]]])


# the scores / √4 are (ln 3, 0) and (0, ln 3); exp: (3, 1) and (1, 3); divided by their sum: quarters
@pytest.mark.parametrize(
    ("scale_scores", "options", "expected"),
    [
        (True, {}, [[3 / 4, 1 / 4], [1 / 4, 3 / 4]]),
        (False, {}, [[9 / 10, 1 / 10], [1 / 10, 9 / 10]]),  # as in post 3: scores (2 ln 3, 0); exp: (9, 1)
        (True, {"is_causal": True}, [[1, 0], [1 / 4, 3 / 4]]),
        (True, {"mask": masks.causal(torch.arange(2), torch.arange(2))}, [[1, 0], [1 / 4, 3 / 4]]),
        (True, {"mask": masks.padding(torch.tensor([[True, False]]))}, [[1, 0], [1, 0]]),
    ],
    ids=["scaled", "not scaled", "causal", "causal mask", "padding"],
)
def test_two_tokens_weigh_themselves_three_to_one(scale_scores, options, expected) -> None:
    attention = identity_attention(4, 1, scale_scores=scale_scores)
    attended, weights = with_weights_of(attention, TWO_TOKENS, **options)
    assert_close(weights, tensor([[expected]]))
    assert_close(attended, tensor(expected) @ TWO_TOKENS)
    assert_close(attention(TWO_TOKENS, **options), attended)


@pytest.mark.parametrize("num_heads", [1, 3])
def test_keys_of_zeros_make_causal_attention_the_running_average(num_heads: int) -> None:
    """Post 4 starts from uniform weights below the diagonal: row t is 1 / t for the first t tokens."""
    attention = identity_attention(6, num_heads)
    nn.init.zeros_(attention.key.weight)
    tokens = make_hidden(2, 4, 6)
    attended, weights = with_weights_of(attention, tokens, is_causal=True)
    triangle = tensor([[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4] * 4])
    assert_close(weights, triangle.expand(2, num_heads, 4, 4))
    averages = torch.stack([tokens[:, : count + 1].mean(dim=1) for count in range(4)], dim=1)
    assert_close(attended, averages)
    assert_close(attention(tokens, is_causal=True), averages)
