import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks import masks
from firstlight.networks.attention import MultiHeadAttention, attention_weights, build_attention
from firstlight.networks.block import build_block
from firstlight.networks.config import TransformerConfig
from firstlight.networks.masks import masked_softmax
from firstlight.networks.variants import Positions
from stand_ins import make_hidden, with_weights_of

make_config = partial(TransformerConfig, dropout=0.0)


def built(**options: Any) -> MultiHeadAttention:
    """Return the attention of a configuration in float64, always with the same weights."""
    torch.manual_seed(0)
    return build_attention(make_config(**({"dim": 12, "num_heads": 3, "context_length": 11} | options))).double()


Call = Callable[..., Tensor]


def make_attention(dim: int = 15, num_heads: int = 3, head_dim: int = 5, **options: bool) -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(dim, num_heads, head_dim, **options).double()


def with_weights(attention: MultiHeadAttention) -> Call:
    return lambda *arguments, **options: with_weights_of(attention, *arguments, **options)[0]


@pytest.mark.parametrize(("dim", "num_heads", "head_dim"), [(50, 3, 50), (50, 3, 17), (15, 3, 5), (7, 1, 2)])
def test_each_head_is_softmax_of_q_k_over_the_root_times_v_and_the_heads_are_concatenated(dim, num_heads, head_dim):
    attention = make_attention(dim, num_heads, head_dim)
    hidden = make_hidden(2, 11, dim)
    heads = []
    for head in range(num_heads):
        rows = slice(head * head_dim, (head + 1) * head_dim)
        query, key, value = (
            hidden @ layer.weight[rows].T for layer in (attention.query, attention.key, attention.value)
        )
        scores = torch.einsum("bqd,bkd->bqk", query, key) / math.sqrt(head_dim)
        heads.append(scores.softmax(dim=-1) @ value)
    expected = torch.cat(heads, dim=-1) @ attention.output.weight.T + attention.output.bias
    attended = attention(hidden)
    assert attended.shape == (2, 11, dim)
    assert_close(attended, expected)


MASKS = {
    "none": None,
    "padding": masks.padding(torch.arange(7) < torch.tensor([[7], [3]])),
    "causal": masks.causal(torch.arange(7), torch.arange(7)),
    "one for each head": torch.rand(2, 3, 7, 7, generator=torch.Generator().manual_seed(2)) < 0.5,
    "nothing": torch.zeros(1, 1, 1, 7, dtype=torch.bool),
}


def results_of(attention: MultiHeadAttention, call: Call, **options: Any) -> list[Tensor]:
    """Return the output of a call, and the gradients of its input and of the parameters."""
    attention.zero_grad()
    hidden = make_hidden(2, 7, 12).requires_grad_()
    attended = call(hidden, **options)
    attended.square().sum().backward()
    return [attended, hidden.grad, *(parameter.grad for parameter in attention.parameters())]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("positions", [Positions.none, Positions.rotary, Positions.relative])
def test_asking_for_the_weights_changes_neither_the_output_nor_the_gradients(mask, positions) -> None:
    attention = built(num_key_value_heads=1, positions=positions)
    assert_close(results_of(attention, with_weights(attention), mask=mask), results_of(attention, attention, mask=mask))


@pytest.mark.parametrize("positions", Positions)
def test_causal_attention_is_attention_with_a_causal_mask(positions: Positions) -> None:
    attention = built(positions=positions)
    mask = masks.causal(torch.arange(7), torch.arange(7))
    assert_close(results_of(attention, attention, is_causal=True), results_of(attention, attention, mask=mask))


@pytest.mark.parametrize("causal", [False, True])
def test_relative_attention_equals_a_loop_over_queries_and_keys(causal: bool) -> None:
    """The scores are q · (k + a) / √width, where a is the vector of the distance from q to k (Shaw et al. 2018)."""
    attention = built(dim=15, positions=Positions.relative)
    hidden = make_hidden(2, 7, 15)
    query, key, value = attention.query(hidden), attention.key(hidden), attention.value(hidden)
    inner = torch.zeros(2, 7, 15, dtype=torch.float64)
    for head in range(3):
        part = slice(5 * head, 5 * head + 5)
        for here in range(7):
            scores = torch.full((2, 7), -math.inf, dtype=torch.float64)
            for there in range(here + 1 if causal else 7):
                vector = attention.relative.table.weight[there - here + 10]
                scores[:, there] = (query[:, here, part] * (key[:, there, part] + vector)).sum(dim=-1) / math.sqrt(5)
            inner[:, here, part] = (scores.softmax(dim=-1)[..., None] * value[..., part]).sum(dim=1)
    assert_close(attention(hidden, is_causal=causal), attention.output(inner))


@pytest.mark.parametrize("positions", [Positions.none, Positions.rotary, Positions.relative])
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_a_text_of_padding_only_gives_the_bias_of_the_output(positions: Positions) -> None:
    attention = built(positions=positions)
    mask = masks.padding(torch.tensor([[True] * 7, [False] * 7]))
    hidden = make_hidden(2, 7, 12).requires_grad_()
    with torch.autograd.detect_anomaly():  # also finds a NaN that is discarded later
        attended = attention(hidden, mask=mask)
        attended.square().sum().backward()
    assert torch.equal(attended[1], attention.output.bias.expand(7, 12))
    assert (hidden.grad[1] == 0).all()
    for name, parameter in attention.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.count_nonzero() > 0, name


def test_a_masked_softmax_by_hand() -> None:
    scores = torch.tensor([[0.0, math.log(3), 100.0], [1.0, 2.0, 3.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert_close(masked_softmax(scores, mask), torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]))
    assert_close(masked_softmax(scores, None), scores.softmax(dim=-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_masked_softmax_is_right_in_every_precision_however_low_the_scores(dtype: torch.dtype) -> None:
    scores = torch.tensor([[-1e4, -1e4, 1e4]], dtype=dtype)
    mask = torch.tensor([[True, True, False]])
    assert_close(masked_softmax(scores, mask), torch.tensor([[0.5, 0.5, 0.0]], dtype=dtype))


@pytest.mark.parametrize("num_key_value_heads", [1, 2, 3])
@pytest.mark.parametrize("positions", [Positions.none, Positions.rotary, Positions.relative])
@pytest.mark.parametrize("is_causal", [True, False])
def test_grouped_heads_are_heads_whose_keys_and_values_are_repeated(is_causal, positions, num_key_value_heads) -> None:
    options = {"dim": 15, "num_heads": 6, "head_dim": 4, "positions": positions, "attention_bias": True}
    grouped, complete = built(**options, num_key_value_heads=num_key_value_heads), built(**options)
    repeats = 6 // num_key_value_heads
    shared = {name: weight for name, weight in grouped.state_dict().items() if name.startswith(("key.", "value."))}
    repeated = {name: weight.unflatten(0, (-1, 4)).repeat_interleave(repeats, 0) for name, weight in shared.items()}
    complete.load_state_dict(grouped.state_dict() | {name: each.flatten(0, 1) for name, each in repeated.items()})
    hidden = make_hidden(2, 7, 15)
    assert_close(grouped(hidden, is_causal=is_causal), complete(hidden, is_causal=is_causal))


@pytest.mark.parametrize("positions", [Positions.none, Positions.relative])
def test_dropout_of_attention_weights_removes_some_and_scales_the_others(positions: Positions) -> None:
    """With the same value 1 at each key, an output is the sum of the weights that remain, multiplied by 1 / (1 - p)."""
    options = {"output_projection": False, "attention_dropout": 0.25, "attention_bias": True}
    attention = built(dim=4, num_heads=1, positions=positions, **options)
    with torch.no_grad():
        for weight in (attention.query.weight, attention.value.weight):
            weight.zero_()
        attention.query.bias.zero_()
        attention.value.bias.fill_(1.0)
    hidden = make_hidden(2_000, 3, 4)
    sums = attention(hidden)[..., 0].flatten()  # the weights are all 1/3
    assert set((sums * 3 * 0.75).round(decimals=6).tolist()) == {0.0, 1.0, 2.0, 3.0}
    assert sums.mean().item() == pytest.approx(1.0, abs=0.05)
    assert_close(attention.eval()(hidden), torch.ones_like(hidden))


class Windowed(MultiHeadAttention):
    def __init__(self, *arguments: Any, window: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.window = window

    def bias(self, query: Tensor, key: Tensor) -> Tensor:
        keys = torch.arange(key.shape[2])
        is_far = keys[-query.shape[2] :, None] - keys >= self.window
        return torch.zeros(is_far.shape, dtype=query.dtype).masked_fill(is_far, -math.inf)


WINDOWED = {"_target_": f"{__name__}.Windowed", "window": 3}


def test_an_attention_of_the_user_is_built_with_its_arguments_for_self_attention_only() -> None:
    block = build_block(make_config(dim=12, num_heads=3, attention=WINDOWED), cross_attention=True)
    assert (type(block.self_attention), block.self_attention.window) == (Windowed, 3)
    assert type(block.cross_attention) is MultiHeadAttention


def test_an_attention_of_the_user_reads_with_a_cache_what_it_reads_without() -> None:
    torch.manual_seed(0)
    config = GeneratorConfig(dim=12, num_heads=3, num_layers=2, context_length=11, attention=WINDOWED)
    network, token_ids = Generator(config, vocab_size=13).double().eval(), torch.arange(7)[None]
    cache = network.new_cache()
    with torch.no_grad():
        cached = torch.cat([network(token_ids[:, i : i + 1], cache) for i in range(7)], dim=1)
        with attention_weights(network) as weights:
            assert_close(cached, network(token_ids))
    for weight in weights.values():
        assert (weight[0, :, 5, :3] == 0).all()
        assert (weight[0, :, 5, 3:6] > 0).all()


def test_an_argument_that_an_attention_of_the_user_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match=r"^model\.attention: .*'widow'; pass the arguments of Windowed$"):
        build_attention(make_config(attention={**WINDOWED, "widow": 3}))


# --- masks ---


def test_a_padding_mask_lets_every_query_attend_to_the_real_tokens_only() -> None:
    padding_mask = torch.tensor([[True, True, False], [True, False, False]])
    mask = masks.padding(padding_mask)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.dtype is torch.bool
    allowed = mask.expand(2, 7, 5, 3)  # (batch, heads, queries, keys)
    for batch in range(2):
        assert (allowed[batch] == padding_mask[batch]).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=11), st.lists(st.integers(0, 100), min_size=1, max_size=7))
def test_a_causal_mask_never_allows_the_future(queries: list[int], keys: list[int]) -> None:
    mask = masks.causal(torch.tensor(queries), torch.tensor(keys))
    assert mask.shape == (1, 1, len(queries), len(keys))
    assert mask[0, 0].tolist() == [[key <= query for key in keys] for query in queries]
