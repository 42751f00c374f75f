import math
import re
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.cache import KeyValueCache, LayerCache
from firstlight.networks.config import Activation, FeedForwardKind, Norm, NormKind, Positions

VOCABULARY, CONTEXT = 29, 17
every_position = pytest.mark.parametrize("positions", Positions)


def make_generator(**options: object) -> Generator:
    torch.manual_seed(0)
    sizes = {"dim": 7, "num_heads": 3, "head_dim": 10, "num_layers": 2, "context_length": CONTEXT}
    generator = Generator(GeneratorConfig(**(sizes | options)), VOCABULARY).double().eval()
    for parameter in generator.parameters():  # biases and norms too, so that a missing one changes the result
        torch.nn.init.normal_(parameter, std=0.5)
    return generator


def random_texts(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(0, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def random_tensor(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@torch.no_grad()
def read_in_chunks(generator: Generator, token_ids: Tensor, sizes: list[int], cache: KeyValueCache) -> Tensor:
    """Return the logits of all tokens, read in chunks."""
    ends = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    assert ends[-1] == token_ids.shape[1]
    return torch.cat([generator(token_ids[:, start:end], cache) for start, end in pairwise(ends)], dim=1)


def assert_same_logits(cached: Tensor, uncached: Tensor) -> None:
    assert_close(cached, uncached, atol=1e-11, rtol=1e-11)


CHUNKS = {
    "a prefill, chunks, single tokens": [5, 3, 2, 1, 1, 1],
    "single tokens": [1] * 13,
    "one token, then all others": [1, 12],
    "all others, then one token": [12, 1],
    "all at once": [13],
}
every_chunking = pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS.keys())


@every_chunking
@every_position
@pytest.mark.parametrize("norm", [Norm.post, Norm.pre])
def test_a_text_read_in_chunks_has_the_logits_of_one_read_at_once(
    norm: Norm, positions: Positions, sizes: list[int]
) -> None:
    generator = make_generator(norm=norm, positions=positions)
    token_ids = random_texts(3, 13)
    cache = generator.new_cache()
    assert_same_logits(read_in_chunks(generator, token_ids, sizes, cache), generator(token_ids))
    assert cache.length == 13


@every_position
def test_after_it_is_cleared_a_cache_is_as_good_as_new(positions: Positions) -> None:
    generator = make_generator(positions=positions)
    cache = generator.new_cache()
    read_in_chunks(generator, random_texts(3, CONTEXT, seed=2), [11, 5, 1], cache)
    for seed, sizes in ((3, [5, 3, 2, 1, 1, 1]), (4, [1] * 13), (5, [13])):
        cache.clear()
        token_ids = random_texts(3, 13, seed=seed)
        assert_same_logits(read_in_chunks(generator, token_ids, sizes, cache), generator(token_ids))


@every_position
def test_what_a_cache_has_forgotten_is_never_read(positions: Positions) -> None:
    generator = make_generator(positions=positions)
    cache = generator.new_cache()
    read_in_chunks(generator, random_texts(3, CONTEXT), [CONTEXT], cache)
    cache.clear()
    for layer in cache.layers:
        layer.keys.fill_(math.nan)
        layer.values.fill_(math.nan)
    token_ids = random_texts(3, 13, seed=2)
    assert_same_logits(read_in_chunks(generator, token_ids, [5, 3, 2, 1, 1, 1], cache), generator(token_ids))


@pytest.mark.parametrize(
    "options",
    [
        {"positions": Positions.sinusoidal, "first_position": 1},
        {"positions": Positions.sinusoidal, "position_scale": 0.5},
        {"positions": Positions.rotary, "position_scale": 0.5},
        {"positions": Positions.rotary, "norm": Norm.pre, "norm_kind": NormKind.rms, "activation": Activation.swiglu},
        {"positions": Positions.relative, "final_norm": True, "attention_bias": True},
        {"positions": Positions.learned, "tie_embeddings": True, "head_bias": False},
        {"positions": Positions.none, "norm": Norm.none, "residual": False, "head_dim": 7, "num_heads": 1},
        {"num_loops": 3},
        {"causal_convolution": 2},
        {"causal_convolution": 7, "norm": Norm.pre, "feed_forward": FeedForwardKind.none},
        {"causal_convolution": 5, "num_loops": 3, "norm": Norm.pre, "positions": Positions.rotary},
    ],
)
def test_a_cache_is_right_however_the_network_is_made(options: dict[str, object]) -> None:
    generator = make_generator(**options)
    token_ids = random_texts(3, 13)
    cached = read_in_chunks(generator, token_ids, CHUNKS["a prefill, chunks, single tokens"], generator.new_cache())
    assert_same_logits(cached, generator(token_ids))


@every_position
@settings(deadline=None, max_examples=15)
@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=CONTEXT), batch=st.integers(1, 3))
def test_it_does_not_matter_where_a_text_is_cut(positions: Positions, sizes: list[int], batch: int) -> None:
    while sum(sizes) > CONTEXT:
        sizes.pop()
    generator = make_generator(positions=positions)
    token_ids = random_texts(batch, sum(sizes))
    assert_same_logits(read_in_chunks(generator, token_ids, sizes, generator.new_cache()), generator(token_ids))


@every_position
def test_a_context_filled_to_its_last_token_is_right_and_one_more_token_is_an_error(positions: Positions) -> None:
    generator = make_generator(positions=positions)
    token_ids = random_texts(3, CONTEXT)
    cache = generator.new_cache()
    assert_same_logits(read_in_chunks(generator, token_ids, [11, 5, 1], cache), generator(token_ids))
    with pytest.raises(ValueError, match=r"^a text of 18 tokens is longer than the context length, 17$"):
        generator(token_ids[:, :1], cache)


def test_a_text_that_was_refused_leaves_the_cache_as_it_was() -> None:
    generator = make_generator()
    token_ids = random_texts(3, CONTEXT)
    cache = generator.new_cache()
    first = read_in_chunks(generator, token_ids[:, :11], [11], cache)
    with pytest.raises(ValueError, match=r"^a text of 28 tokens is longer than the context length, 17$"):
        generator(token_ids, cache)
    assert cache.length == 11
    rest = read_in_chunks(generator, token_ids[:, 11:], [6], cache)
    assert_same_logits(torch.cat((first, rest), dim=1), generator(token_ids))


@every_position
def test_a_network_that_looks_ahead_has_no_cache(positions: Positions) -> None:
    message = "model.causal=false: a network that is not causal has no cache; call it without one"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make_generator(causal=False, positions=positions).new_cache()


def test_a_new_cache_is_empty_and_has_a_layer_for_each_block_and_a_place_for_each_token_of_the_context() -> None:
    cache = make_generator(num_layers=5).new_cache()
    assert cache.length == 0
    assert [layer.capacity for layer in cache.layers] == [CONTEXT] * 5
    assert all(layer.keys.numel() == layer.values.numel() == 0 for layer in cache.layers)


def test_two_caches_of_a_network_know_nothing_of_each_other() -> None:
    generator = make_generator()
    one, other = random_texts(3, 13), random_texts(3, 13, seed=2)
    caches = generator.new_cache(), generator.new_cache()
    logits: tuple[list[Tensor], list[Tensor]] = ([], [])
    with torch.no_grad():
        for start, end in ((0, 5), (5, 6), (6, 13)):
            for token_ids, cache, seen in zip((one, other), caches, logits, strict=True):
                seen.append(generator(token_ids[:, start:end], cache))
    assert_same_logits(torch.cat(logits[0], dim=1), generator(one))
    assert_same_logits(torch.cat(logits[1], dim=1), generator(other))


def test_logits_once_given_do_not_change_when_the_text_goes_on() -> None:
    generator = make_generator()
    token_ids, cache = random_texts(3, 13), generator.new_cache()
    first = read_in_chunks(generator, token_ids[:, :5], [5], cache)
    before = first.clone()
    read_in_chunks(generator, token_ids[:, 5:], [7, 1], cache)
    assert torch.equal(first, before)


@every_position
def test_a_cache_works_in_mixed_precision(positions: Positions) -> None:
    torch.manual_seed(0)
    config = GeneratorConfig(dim=12, num_heads=3, context_length=CONTEXT, positions=positions)
    generator, token_ids = Generator(config, VOCABULARY).eval(), random_texts(3, 13)
    with torch.autocast("cpu", torch.bfloat16):
        cached = read_in_chunks(generator, token_ids, [5, 3, 2, 1, 1, 1], generator.new_cache())
    assert_close(cached.float(), generator(token_ids), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("bias", [False, True])
def test_the_projections_of_a_layer_are_joined_once(bias: bool) -> None:
    projections = [nn.Linear(7, out, bias=bias).double() for out in (3, 5, 2)]
    cache, hidden = LayerCache(capacity=11), random_tensor(2, 3, 7)
    weight, joined_bias = cache.joined(projections)
    expected = torch.cat([projection(hidden) for projection in projections], dim=2)
    assert_same_logits(F.linear(hidden, weight, joined_bias), expected)
    assert (joined_bias is not None) == bias
    assert cache.joined(projections)[0] is weight


def test_a_new_cache_reads_with_the_weights_of_now() -> None:
    generator, token_ids = make_generator(), random_texts(3, 13)
    read_in_chunks(generator, token_ids, CHUNKS["single tokens"], generator.new_cache())
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter.add_(0.1)
    cached = read_in_chunks(generator, token_ids, CHUNKS["single tokens"], generator.new_cache())
    assert_same_logits(cached, generator(token_ids))


def test_a_layers_cache_gives_back_all_keys_and_values_so_far() -> None:
    keys, values = random_tensor(2, 3, 11, 5), random_tensor(2, 3, 11, 5, seed=2)
    cache = LayerCache(capacity=13)
    for start, end in ((0, 7), (7, 8), (8, 11)):
        all_keys, all_values = cache.append(keys[:, :, start:end], values[:, :, start:end])
        assert cache.length == end
        assert torch.equal(all_keys, keys[:, :, :end])
        assert torch.equal(all_values, values[:, :, :end])


def test_a_layers_cache_keeps_the_kind_of_its_numbers() -> None:
    keys, values = LayerCache(capacity=7).append(torch.ones(2, 3, 5, 2).half(), torch.ones(2, 3, 5, 2).bfloat16())
    assert (keys.dtype, values.dtype) == (torch.float16, torch.bfloat16)


def test_a_layers_cache_takes_no_more_than_it_can_hold() -> None:
    cache = LayerCache(capacity=7)
    cache.append(*[random_tensor(2, 3, 5, 2)] * 2)
    with pytest.raises(AssertionError, match=r"^8 tokens in a cache for 7$"):
        cache.append(*[random_tensor(2, 3, 3, 2)] * 2)
    assert cache.length == 5
    cache.append(*[random_tensor(2, 3, 2, 2)] * 2)


def test_a_cleared_cache_is_empty_and_keeps_its_memory() -> None:
    cache = KeyValueCache(num_layers=2, capacity=11)
    for layer in cache.layers:
        layer.append(*[random_tensor(2, 3, 7, 5)] * 2)
    memory = [layer.keys.data_ptr() for layer in cache.layers]
    cache.clear()
    assert [layer.length for layer in cache.layers] == [0, 0]
    for layer in cache.layers:
        keys, _ = layer.append(*[random_tensor(2, 3, 5, 5, seed=2)] * 2)
        assert torch.equal(keys, random_tensor(2, 3, 5, 5, seed=2))
    assert [layer.keys.data_ptr() for layer in cache.layers] == memory


def test_new_tokens_stand_after_those_that_were_read() -> None:
    cache = KeyValueCache(num_layers=2, capacity=11)
    queries, keys = cache.positions(3, torch.device("cpu"))
    assert (queries.tolist(), keys.tolist()) == ([0, 1, 2], [0, 1, 2])
    for layer in cache.layers:
        layer.append(*[random_tensor(2, 3, 5, 7)] * 2)
    assert cache.length == 5
    queries, keys = cache.positions(3, torch.device("cpu"))
    assert (queries.tolist(), keys.tolist()) == ([5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7])


def test_a_cleared_cache_serves_another_number_of_texts() -> None:
    generator = make_generator().eval()
    cache = generator.new_cache()
    with torch.no_grad():
        generator(torch.zeros(3, 5, dtype=torch.long), cache)
        cache.clear()
        first, second = torch.tensor([[1, 2, 3]]), torch.tensor([[4]])
        cached = torch.cat((generator(first, cache), generator(second, cache)), dim=1)
        assert_close(cached, generator(torch.cat((first, second), dim=1)))


def test_a_cache_in_use_is_for_its_own_number_of_texts() -> None:
    cache = LayerCache(capacity=7)
    cache.append(torch.ones(3, 2, 5, 2), torch.ones(3, 2, 5, 2))
    with pytest.raises(AssertionError, match="1 texts in a cache that holds 3"):
        cache.append(torch.ones(1, 2, 1, 2), torch.ones(1, 2, 1, 2))


LOOPED_AND_CONVOLVED = {"causal_convolution": 5, "num_loops": 3, "norm": Norm.pre}


@every_chunking
def test_loops_and_convolutions_read_in_chunks_what_they_read_at_once(sizes: list[int]) -> None:
    generator = make_generator(**LOOPED_AND_CONVOLVED)
    cache = generator.new_cache()
    token_ids = random_texts(3, 13)
    assert_same_logits(read_in_chunks(generator, token_ids, sizes, cache), generator(token_ids))
    cache.clear()
    token_ids = random_texts(2, 13, seed=2)
    assert_same_logits(read_in_chunks(generator, token_ids, sizes, cache), generator(token_ids))


def test_what_a_convolution_saw_last_follows_the_texts_that_are_chosen() -> None:
    generator = make_generator(**LOOPED_AND_CONVOLVED)
    token_ids, rows = random_texts(3, 13), torch.tensor([2, 0, 2, 1, 1])
    cache = generator.new_cache()
    read_in_chunks(generator, token_ids[:, :7], [5, 2], cache)
    cache.select(rows)
    logits = read_in_chunks(generator, token_ids[rows, 7:], [1, 1, 4], cache)
    assert_same_logits(logits, generator(token_ids[rows])[:, 7:])
