import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from firstlight.networks import Generator, GeneratorConfig, KeyValueCache
from firstlight.networks.variants import Activation, FeedForwardKind, Norm, NormKind, Positions
from stand_ins import WORDS, random_ids, randomized

CONTEXT = 17


def make_generator(**options: object) -> Generator:
    sizes = {"dim": 7, "num_heads": 3, "head_dim": 10, "num_layers": 2, "context_length": CONTEXT}
    return randomized(Generator(GeneratorConfig(**(sizes | options)), WORDS))


@torch.no_grad()
def read_in_chunks(generator: Generator, token_ids: Tensor, sizes: list[int], cache: KeyValueCache) -> Tensor:
    """Return the logits of all tokens, read in chunks."""
    ends = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    assert ends[-1] == token_ids.shape[1]
    return torch.cat([generator(token_ids[:, start:end], cache) for start, end in pairwise(ends)], dim=1)


def assert_same_logits(cached: Tensor, uncached: Tensor) -> None:
    assert_close(cached, uncached, atol=1e-11, rtol=1e-11)


LOOPED_AND_CONVOLVED = {"causal_convolution": 5, "num_loops": 3, "norm": Norm.pre}
SIZES = [5, 3, 2, 1, 1, 1]
every_way_to_read = pytest.mark.parametrize(
    "options", [*({"positions": positions} for positions in Positions), LOOPED_AND_CONVOLVED], ids=str
)


@every_way_to_read
@settings(deadline=None, max_examples=15)
@given(
    sizes=st.lists(st.integers(1, CONTEXT - 1), min_size=1, max_size=CONTEXT),
    batch=st.integers(1, 3),
    norm=st.sampled_from(Norm),
)
def test_it_does_not_matter_where_a_text_is_cut(options, sizes, batch, norm) -> None:
    while sum(sizes) > CONTEXT:
        sizes.pop()
    generator = make_generator(**{"norm": norm} | options)
    token_ids, cache = random_ids(batch, sum(sizes)), generator.new_cache()
    assert_same_logits(read_in_chunks(generator, token_ids, sizes, cache), generator(token_ids))
    assert cache.length == sum(sizes)


@every_way_to_read
def test_a_cleared_cache_never_reads_what_it_has_forgotten(options: dict[str, object]) -> None:
    generator = make_generator(**options)
    cache = generator.new_cache()
    read_in_chunks(generator, random_ids(3, CONTEXT), [11, 5, 1], cache)
    cache.clear()
    for layer in cache.layers:
        layer.pairs.fill_(math.nan)
    for seed, batch in ((2, 3), (3, 2)):
        token_ids = random_ids(batch, 13, seed=seed)
        assert_same_logits(read_in_chunks(generator, token_ids, SIZES, cache), generator(token_ids))
        cache.clear()


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
        {"num_heads": 4, "num_key_value_heads": 2, "positions": Positions.rotary},
        {"causal_convolution": 2},
        {"causal_convolution": 7, "norm": Norm.pre, "feed_forward": FeedForwardKind.none},
        {**LOOPED_AND_CONVOLVED, "positions": Positions.rotary},
    ],
)
def test_a_cache_is_right_however_the_network_is_made(options: dict[str, object]) -> None:
    generator = make_generator(**options)
    token_ids = random_ids(3, 13)
    cached = read_in_chunks(generator, token_ids, SIZES, generator.new_cache())
    assert_same_logits(cached, generator(token_ids))


def test_a_text_that_is_too_long_is_refused_and_leaves_the_cache_as_it_was() -> None:
    generator = make_generator()
    token_ids, cache = random_ids(3, CONTEXT), generator.new_cache()
    first = read_in_chunks(generator, token_ids[:, :11], [11], cache)
    with pytest.raises(ValueError, match=r"^a text of 28 tokens is longer than the context length, 17$"):
        generator(token_ids, cache)
    rest = read_in_chunks(generator, token_ids[:, 11:], [5, 1], cache)
    assert_same_logits(torch.cat((first, rest), dim=1), generator(token_ids))
    with pytest.raises(ValueError, match=r"^a text of 18 tokens is longer"):
        generator(token_ids[:, :1], cache)


def test_a_network_that_looks_ahead_has_no_cache() -> None:
    with pytest.raises(ValueError, match=r"^model\.causal=false: a network that is not causal has no cache; "):
        make_generator(causal=False).new_cache()


@pytest.mark.parametrize("positions", Positions)
def test_a_cache_works_in_mixed_precision(positions: Positions) -> None:
    torch.manual_seed(0)
    config = GeneratorConfig(dim=12, num_heads=3, context_length=CONTEXT, positions=positions)
    generator, token_ids = Generator(config, WORDS).eval(), random_ids(3, 13)
    with torch.autocast("cpu", torch.bfloat16):
        cached = read_in_chunks(generator, token_ids, SIZES, generator.new_cache())
    assert_close(cached.float(), generator(token_ids), atol=0.05, rtol=0.05)


def test_a_new_cache_reads_with_the_weights_of_now() -> None:
    generator, token_ids = make_generator(), random_ids(3, 13)
    read_in_chunks(generator, token_ids, SIZES, generator.new_cache())
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter.add_(0.1)
    cached = read_in_chunks(generator, token_ids, SIZES, generator.new_cache())
    assert_same_logits(cached, generator(token_ids))


def test_what_a_convolution_saw_last_follows_the_texts_that_are_chosen() -> None:
    generator = make_generator(**LOOPED_AND_CONVOLVED)
    token_ids, rows = random_ids(3, 13), torch.tensor([2, 0, 2, 1, 1])
    cache = generator.new_cache()
    read_in_chunks(generator, token_ids[:, :7], [5, 2], cache)
    cache.select(rows)
    logits = read_in_chunks(generator, token_ids[rows, 7:], [1, 1, 4], cache)
    assert_same_logits(logits, generator(token_ids[rows])[:, 7:])
