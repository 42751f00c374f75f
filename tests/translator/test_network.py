import copy
import itertools
import math
import re
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.networks.cache import KeyValueCache
from firstlight.networks.config import Activation, FeedForwardKind, Norm, NormKind, Positions
from firstlight.networks.positions import RelativePositions, RotaryPositions
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

SOURCE_VOCABULARY, VOCABULARY, CONTEXT = 23, 29, 13
every_position = pytest.mark.parametrize("positions", Positions)


def make_network(
    seed: int = 0, source_vocab_size: int = SOURCE_VOCABULARY, vocab_size: int = VOCABULARY, **options: object
) -> EncoderDecoder:
    torch.manual_seed(seed)
    sizes = {"dim": 12, "num_heads": 3, "num_layers": 2, "num_decoder_layers": 3, "context_length": CONTEXT}
    return EncoderDecoder(EncoderDecoderConfig(**(sizes | options)), source_vocab_size, vocab_size).double()


def make_random(**options: object) -> EncoderDecoder:
    """Return a network without dropout. Biases and norms are random too, so that a missing one has an effect."""
    network = make_network(**options).eval()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    for module in network.modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            nn.init.normal_(
                module.weight, mean=1.0, std=0.5
            )  # with a mean of 0, a few norms would make the values tiny
    return network


def random_texts(*shape: int, seed: int = 1, vocab_size: int = VOCABULARY) -> Tensor:
    return torch.randint(0, vocab_size, shape, generator=torch.Generator().manual_seed(seed))


def random_sources(*shape: int, seed: int = 2) -> Tensor:
    return random_texts(*shape, seed=seed, vocab_size=SOURCE_VOCABULARY)


def real(lengths: list[int], width: int) -> Tensor:
    """Return the mask of texts of these lengths, padded at the end."""
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def changed(token_ids: Tensor, places: object, vocab_size: int = VOCABULARY) -> Tensor:
    other = token_ids.clone()
    other[:, places] = (other[:, places] + 1) % vocab_size
    return other


def differs_everywhere(one: Tensor, other: Tensor) -> bool:
    """Return whether no vector of one equals that of the other."""
    return not torch.isclose(one, other).all(dim=-1).any()


def assert_same(one: Tensor, other: Tensor) -> None:
    assert_close(one, other, atol=1e-11, rtol=1e-11)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def parameters_of(config: EncoderDecoderConfig, source_vocab_size: int, vocab_size: int) -> int:
    """Return the number of parameters by formula, for layer norms and feed-forward layers of two matrices."""
    dim, inner = config.dim, config.num_heads * config.resolved_head_dim
    attention = 4 * dim * inner + dim + (3 * inner if config.attention_bias else 0)
    hidden = config.resolved_feed_forward_dim
    feed_forward = 2 * dim * hidden + hidden + dim
    norm = 0 if config.norm is Norm.none else 2 * dim
    distances = 0 if config.positions is not Positions.relative else (2 * config.context_length - 1) * inner
    distances //= config.num_heads  # the heads share them
    encoder_block = attention + distances + feed_forward + 2 * norm
    decoder_block = encoder_block + attention + norm  # cross-attention has no relative positions
    places = 2 * config.context_length * dim if config.positions is Positions.learned else 0
    embeddings = dim * vocab_size if config.share_embeddings else dim * (source_vocab_size + vocab_size)
    head = (0 if config.tie_embeddings else dim * vocab_size) + (vocab_size if config.head_bias else 0)
    final = 4 * dim if config.final_norm else 0
    blocks = config.num_layers * encoder_block + config.resolved_num_decoder_layers * decoder_block
    return embeddings + places + blocks + final + head


def test_the_network_of_2017_with_a_width_of_32_has_the_parameters_counted_by_hand() -> None:
    config = EncoderDecoderConfig(dim=32, num_heads=4, num_layers=3, context_length=64, positions=Positions.sinusoidal)
    encoder_block, cross_attention = 12_608, 4_128 + 2 * 32
    expected = 71 * 32 + 73 * 32 + 3 * encoder_block + 3 * (encoder_block + cross_attention) + 73 * 33
    assert expected == 95_241
    assert count(EncoderDecoder(config, 71, 73)) == expected


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_decoder_layers": 5},
        {"num_layers": 5, "num_decoder_layers": 1},
        {"positions": Positions.learned},
        {"positions": Positions.relative},
        {"positions": Positions.rotary},
        {"attention_bias": True},
        {"head_dim": 6, "attention_bias": True},
        {"head_dim": 7, "positions": Positions.relative},
        {"norm": Norm.none},
        {"norm": Norm.pre, "final_norm": True},
        {"feed_forward_dim": 37},
        {"head_bias": False},
        {"tie_embeddings": True},
        {"zero_init": True},
        {"share_embeddings": True},
        {"share_embeddings": True, "tie_embeddings": True, "head_bias": False},
    ],
)
def test_the_config_decides_the_parameters(options: dict[str, object]) -> None:
    source_vocab_size = 73 if "share_embeddings" in options else 71
    config = EncoderDecoderConfig(**({"dim": 20, "num_heads": 5, "num_layers": 3, "context_length": 11} | options))
    expected = parameters_of(config, source_vocab_size, 73)
    assert count(EncoderDecoder(config, source_vocab_size, 73)) == expected


def test_the_logits_score_every_target_token_at_every_place_of_the_target() -> None:
    network = make_network()
    sources, token_ids = random_sources(2, 11), random_texts(2, 7)
    assert network.encode(sources).shape == (2, 11, 12)
    assert network(sources, token_ids).shape == (2, 7, VOCABULARY)
    assert network(random_sources(2, 5), random_texts(2, CONTEXT)).shape == (2, CONTEXT, VOCABULARY)


def test_translating_is_encoding_then_decoding() -> None:
    network = make_random()
    sources, token_ids, source_mask = random_sources(2, 11), random_texts(2, 7), real([11, 5], 11)
    memory = network.encode(sources, source_mask)
    assert torch.equal(network(sources, token_ids, source_mask), network.decode(token_ids, memory, source_mask))


def test_it_is_embeddings_positions_blocks_norms_and_a_head() -> None:
    network = make_random(positions=Positions.learned, final_norm=True)
    sources, token_ids = random_sources(2, 11), random_texts(2, 7)
    memory = network.source_embedding.weight[sources] + network.source_positions.table.weight[:11]
    for block in network.encoder:
        memory = block(memory)
    memory = F.layer_norm(memory, (12,), network.encoder_norm.weight, network.encoder_norm.bias)
    assert_same(network.encode(sources), memory)
    hidden = network.embedding.weight[token_ids] + network.positions.table.weight[:7]
    for block in network.decoder:
        hidden = block(hidden, torch.ones(7, 7, dtype=torch.bool).tril(), memory=memory)
    hidden = F.layer_norm(hidden, (12,), network.decoder_norm.weight, network.decoder_norm.bias)
    assert_same(network(sources, token_ids), hidden @ network.head.weight.T + network.head.bias)


@pytest.mark.parametrize("norm", [Norm.post, Norm.pre])
def test_a_decoder_block_looks_back_then_at_the_source_and_then_thinks(norm: Norm) -> None:
    block = make_random(norm=norm).decoder[0]
    torch.manual_seed(3)
    hidden, memory = torch.randn(2, 7, 12).double(), torch.randn(2, 11, 12).double()
    expected = hidden
    for layer, layer_norm, options in (
        (block.self_attention, block.self_attention_norm, {"is_causal": True}),
        (block.cross_attention, block.cross_attention_norm, {"memory": memory}),
        (block.feed_forward, block.feed_forward_norm, {}),
    ):
        if norm is Norm.pre:
            expected = expected + layer(layer_norm(expected), **options)
        else:
            expected = layer_norm(expected + layer(expected, **options))
    assert_same(block(hidden, is_causal=True, memory=memory), expected)


@every_position
@pytest.mark.parametrize("with_mask", [False, True], ids=["no mask", "target mask"])
def test_a_future_target_token_cannot_change_the_past(with_mask: bool, positions: Positions) -> None:
    network = make_random(positions=positions, final_norm=True)
    sources, token_ids = random_sources(2, 7), random_texts(2, 11)
    mask = torch.ones(2, 11, dtype=torch.bool) if with_mask else None
    logits = network(sources, token_ids, target_mask=mask)
    for place in (1, 5, 10):
        other = network(sources, changed(token_ids, slice(place, None)), target_mask=mask)
        assert_same(other[:, :place], logits[:, :place])
        assert differs_everywhere(other[:, place:], logits[:, place:])


@every_position
def test_the_past_does_change_the_future(positions: Positions) -> None:
    network = make_random(positions=positions)
    sources, token_ids = random_sources(2, 7), random_texts(2, 11)
    assert differs_everywhere(network(sources, changed(token_ids, 0)), network(sources, token_ids))


@every_position
def test_the_source_is_read_both_ways(positions: Positions) -> None:
    """Even with a single block, each source token changes the vectors of all others."""
    network, sources = make_random(positions=positions, num_layers=1), random_sources(2, 11)
    for place in (0, 5, 10):
        other = changed(sources, place, SOURCE_VOCABULARY)
        assert differs_everywhere(network.encode(other), network.encode(sources))


@pytest.mark.parametrize("place", [0, 5, 10])
def test_every_token_of_the_source_counts_wherever_the_target_goes_on(place: int) -> None:
    network, token_ids = make_random(), random_texts(2, 7)
    sources = random_sources(2, 11)
    other = changed(sources, place, SOURCE_VOCABULARY)
    assert differs_everywhere(network(other, token_ids), network(sources, token_ids))


@every_position
def test_the_order_of_the_source_matters_unless_there_are_no_positions(positions: Positions) -> None:
    network, token_ids = make_random(positions=positions), random_texts(2, 7)
    sources = random_sources(2, 11)
    same = torch.allclose(network(sources.flip(1), token_ids), network(sources, token_ids), atol=1e-9)
    assert same is (positions is Positions.none)


def test_one_pair_of_a_batch_cannot_change_another() -> None:
    network = make_random()
    sources, token_ids = random_sources(3, 11), random_texts(3, 7)
    assert_same(network(sources[1:2], token_ids[1:2]), network(sources, token_ids)[1:2])


SOURCE_LENGTHS, LENGTHS = [7, 11, 1], [5, 2, 7]


@every_position
def test_a_padded_batch_has_the_logits_of_each_pair_alone(positions: Positions) -> None:
    network = make_random(positions=positions)
    sources, token_ids = random_sources(3, 11), random_texts(3, 7)
    together = network(sources, token_ids, real(SOURCE_LENGTHS, 11), real(LENGTHS, 7))
    for row, (source_length, length) in enumerate(zip(SOURCE_LENGTHS, LENGTHS, strict=True)):
        alone = network(sources[row : row + 1, :source_length], token_ids[row : row + 1, :length])
        assert_same(together[row, :length], alone[0])


@every_position
def test_what_stands_in_the_padding_changes_nothing(positions: Positions) -> None:
    network = make_random(positions=positions)
    sources, token_ids = random_sources(3, 11), random_texts(3, 7)
    source_mask, target_mask = real(SOURCE_LENGTHS, 11), real(LENGTHS, 7)
    other_sources = torch.where(source_mask, sources, (sources + 5) % SOURCE_VOCABULARY)
    other_ids = torch.where(target_mask, token_ids, (token_ids + 5) % VOCABULARY)
    logits = network(sources, token_ids, source_mask, target_mask)
    others = network(other_sources, other_ids, source_mask, target_mask)
    assert_same(others[target_mask], logits[target_mask])
    memory, other_memory = network.encode(sources, source_mask), network.encode(other_sources, source_mask)
    assert_same(other_memory[source_mask], memory[source_mask])


def test_without_its_mask_padding_does_change_the_logits() -> None:
    """This shows that the tests above do not pass by chance."""
    network = make_random()
    sources, token_ids = random_sources(3, 11), random_texts(3, 7)
    memory = network.encode(sources, real([7] * 3, 11))
    assert differs_everywhere(network.encode(sources)[:, :7], memory[:, :7])
    masked = network.decode(token_ids, memory, real([7] * 3, 11))
    assert differs_everywhere(network.decode(token_ids, memory), masked)


@every_position
def test_a_target_token_that_the_mask_hides_changes_nothing_after_it(positions: Positions) -> None:
    network = make_random(positions=positions)
    sources, token_ids = random_sources(2, 11), random_texts(2, 7)
    mask = torch.arange(7).ne(3).expand(2, 7)
    logits, other = (network(sources, ids, target_mask=mask) for ids in (token_ids, changed(token_ids, 3)))
    assert_same(other[mask], logits[mask])
    assert differs_everywhere(network(sources, token_ids)[:, 4:], logits[:, 4:])


def test_masks_that_hide_nothing_are_as_good_as_none() -> None:
    network = make_random()
    sources, token_ids = random_sources(2, 11), random_texts(2, 7)
    all_real = real([11, 11], 11), real([7, 7], 7)
    assert_same(network(sources, token_ids, *all_real), network(sources, token_ids))


def test_a_source_of_padding_alone_gives_numbers_and_gradients() -> None:
    network = make_random()
    logits = network(random_sources(2, 11), random_texts(2, 7), real([11, 0], 11), real([7, 7], 7))
    assert logits.isfinite().all()
    logits.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())


@torch.no_grad()
def read_in_chunks(
    network: EncoderDecoder,
    token_ids: Tensor,
    memory: Tensor,
    sizes: list[int],
    cache: KeyValueCache,
    source_mask: Tensor | None = None,
) -> Tensor:
    """Return the logits of all target tokens, read in chunks. The memory is read only with the first chunk."""
    ends = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    assert ends[-1] == token_ids.shape[1]
    logits = []
    for start, end in pairwise(ends):
        logits.append(network.decode(token_ids[:, start:end], memory, source_mask, cache=cache))
        memory = torch.full_like(memory, math.nan)
    return torch.cat(logits, dim=1)


CHUNKS = {
    "single tokens": [1] * 11,
    "a beginning, chunks, single tokens": [4, 3, 2, 1, 1],
    "one token, then all others": [1, 10],
    "all others, then one token": [10, 1],
    "all at once": [11],
}


@pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS.keys())
@every_position
def test_a_target_read_in_chunks_has_the_logits_of_one_read_at_once(positions: Positions, sizes: list[int]) -> None:
    network = make_random(positions=positions)
    sources, token_ids, source_mask = random_sources(3, 7), random_texts(3, 11), real([7, 3, 5], 7)
    memory, cache = network.encode(sources, source_mask), network.new_cache()
    cached = read_in_chunks(network, token_ids, memory, sizes, cache, source_mask)
    assert_same(cached, network(sources, token_ids, source_mask))
    assert cache.length == 11


@pytest.mark.parametrize(
    "options",
    [
        {"positions": Positions.sinusoidal, "first_position": 1},
        {"positions": Positions.sinusoidal, "position_scale": 0.5},
        {"positions": Positions.rotary, "norm": Norm.pre, "norm_kind": NormKind.rms, "activation": Activation.swiglu},
        {"positions": Positions.relative, "final_norm": True, "attention_bias": True, "head_dim": 7},
        {"positions": Positions.learned, "tie_embeddings": True, "head_bias": False},
        {"num_layers": 3, "num_decoder_layers": 1},
    ],
)
def test_a_cache_is_right_however_the_network_is_made(options: dict[str, object]) -> None:
    network = make_random(**options)
    sources, token_ids = random_sources(3, 7), random_texts(3, 11)
    cached = read_in_chunks(network, token_ids, network.encode(sources), [4, 3, 2, 1, 1], network.new_cache())
    assert_same(cached, network(sources, token_ids))


def test_with_a_cache_the_keys_and_values_of_the_source_are_made_once() -> None:
    network, calls = make_random(), []
    for block in network.decoder:
        for layer in (block.cross_attention.key, block.cross_attention.value):
            layer.register_forward_hook(lambda layer, *_: calls.append(layer))
    memory = network.encode(random_sources(3, 7))
    read_in_chunks(network, random_texts(3, 11), memory, CHUNKS["single tokens"], network.new_cache())
    assert len(calls) == len(set(calls)) == 2 * 3


def test_a_new_cache_has_a_layer_and_a_memory_for_each_block_of_the_decoder() -> None:
    cache = make_network(num_layers=2, num_decoder_layers=5).new_cache()
    assert cache.length == 0
    assert [layer.capacity for layer in cache.layers] == [CONTEXT] * 5
    assert [memory.content for memory in cache.memories] == [None] * 5


def test_a_cleared_cache_forgets_the_target_and_keeps_the_source() -> None:
    network = make_random()
    sources, token_ids, other_ids = random_sources(3, 7), random_texts(3, 11), random_texts(3, 5, seed=3)
    memory, cache = network.encode(sources), network.new_cache()
    read_in_chunks(network, token_ids, memory, [4, 7], cache)
    cache.clear()
    cached = read_in_chunks(network, other_ids, torch.full_like(memory, math.nan), [2, 1, 2], cache)
    assert_same(cached, network(sources, other_ids))


def test_two_caches_of_a_network_know_nothing_of_each_other() -> None:
    network = make_random()
    pairs = [(random_sources(3, 7, seed=seed), random_texts(3, 5, seed=seed)) for seed in (5, 6)]
    caches = [network.new_cache(), network.new_cache()]
    logits: list[list[Tensor]] = [[], []]
    with torch.no_grad():
        for place in range(5):
            for (sources, token_ids), cache, seen in zip(pairs, caches, logits, strict=True):
                seen.append(network.decode(token_ids[:, place : place + 1], network.encode(sources), cache=cache))
    for (sources, token_ids), seen in zip(pairs, logits, strict=True):
        assert_same(torch.cat(seen, dim=1), network(sources, token_ids))


ROWS = {
    "another order": [2, 0, 1],
    "copies": [1, 1, 0, 2, 2, 2, 1],
    "fewer": [2],
    "some of them, twice": [2, 2, 0, 0],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
@every_position
def test_after_a_selection_each_row_goes_on_as_the_pair_it_was(positions: Positions, rows: list[int]) -> None:
    network = make_random(positions=positions)
    sources, source_mask, begun = random_sources(3, 7), real([7, 3, 5], 7), random_texts(3, 4)
    memory, cache = network.encode(sources, source_mask), network.new_cache()
    read_in_chunks(network, begun, memory, [3, 1], cache, source_mask)
    cache.select(torch.tensor(rows))
    rest = random_texts(len(rows), 6, seed=4)
    cached = read_in_chunks(
        network, rest, torch.full_like(memory, math.nan)[rows], [1, 3, 1, 1], cache, source_mask[rows]
    )
    whole = network(sources[rows], torch.cat((begun[rows], rest), dim=1), source_mask[rows])
    assert_same(cached, whole[:, 4:])


def test_a_cache_may_be_selected_from_again_and_again() -> None:
    network = make_random()
    sources, token_ids = random_sources(3, 7), random_texts(3, 1)
    memory, cache = network.encode(sources), network.new_cache()
    read_in_chunks(network, token_ids, memory, [1], cache)
    for seed, rows in enumerate(([2, 2, 1], [1, 0, 2, 2, 1], [4, 0, 1], [2])):
        sources, token_ids, memory = sources[rows], token_ids[rows], memory[rows]
        cache.select(torch.tensor(rows))
        token_ids = torch.cat((token_ids, random_texts(len(rows), 2, seed=seed)), dim=1)
        cached = read_in_chunks(network, token_ids[:, -2:], memory, [1, 1], cache)
        assert_same(cached, network(sources, token_ids)[:, -2:])


def test_a_selection_among_copies_of_a_source_leaves_its_keys_and_values_where_they_are() -> None:
    """Two sentences with three hypotheses each, which change places."""
    network, beam = make_random(), 3
    sources = random_sources(2, 7).repeat_interleave(beam, dim=0)
    begun, rows = random_texts(6, 4), [1, 1, 0, 5, 3, 3]
    memory, cache = network.encode(sources), network.new_cache()
    read_in_chunks(network, begun, memory, [4], cache)
    before = [memory_cache.content for memory_cache in cache.memories]
    cache.select(torch.tensor(rows), same_memory=True)
    for memory_cache, (keys, values) in zip(cache.memories, before, strict=True):
        assert memory_cache.content[0] is keys
        assert memory_cache.content[1] is values
    rest = random_texts(6, 3, seed=4)
    cached = read_in_chunks(network, rest, memory, [1, 1, 1], cache)
    assert_same(cached, network(sources, torch.cat((begun[rows], rest), dim=1))[:, 4:])


def test_copies_in_a_cache_go_their_own_ways() -> None:
    network = make_random()
    memory, cache = network.encode(random_sources(1, 7)), network.new_cache()
    read_in_chunks(network, random_texts(1, 4), memory, [4], cache)
    cache.select(torch.tensor([0, 0]))
    logits = read_in_chunks(network, torch.tensor([[3, 5], [4, 5]]), memory.expand(2, -1, -1), [1, 1], cache)
    assert differs_everywhere(logits[0], logits[1])


def test_a_source_longer_than_the_context_is_an_error_that_names_both_numbers() -> None:
    network = make_network()
    network(random_sources(2, CONTEXT), random_texts(2, 5))
    message = r"^a source of 17 tokens is longer than the context length, 13$"
    with pytest.raises(ValueError, match=message):
        network(random_sources(2, 17), random_texts(2, 5))
    with pytest.raises(ValueError, match=message):
        network.encode(random_sources(2, 17))


def test_a_target_longer_than_the_context_is_an_error_that_names_both_numbers() -> None:
    network, sources = make_network(), random_sources(2, 5)
    network(sources, random_texts(2, CONTEXT))
    with pytest.raises(ValueError, match=r"^a target of 17 tokens is longer than the context length, 13$"):
        network(sources, random_texts(2, 17))


@every_position
def test_a_cache_may_be_filled_to_its_last_token_and_one_more_is_an_error(positions: Positions) -> None:
    network = make_random(positions=positions)
    sources, token_ids = random_sources(2, 5), random_texts(2, CONTEXT)
    memory, cache = network.encode(sources), network.new_cache()
    cached = read_in_chunks(network, token_ids[:, :11], memory, [11], cache)
    with pytest.raises(ValueError, match=r"^a target of 14 tokens is longer than the context length, 13$"):
        network.decode(token_ids[:, :3], memory, cache=cache)
    assert cache.length == 11
    cached = torch.cat((cached, read_in_chunks(network, token_ids[:, 11:], memory, [1, 1], cache)), dim=1)
    assert_same(cached, network(sources, token_ids))
    with pytest.raises(ValueError, match=r"^a target of 14 tokens is longer than the context length, 13$"):
        network.decode(token_ids[:, :1], memory, cache=cache)


def test_a_cache_and_padding_of_the_target_do_not_go_together() -> None:
    network = make_network()
    memory, mask = network.encode(random_sources(2, 5)), real([3, 2], 3)
    with pytest.raises(AssertionError, match="a target with a cache must have no padding"):
        network.decode(random_texts(2, 3), memory, target_mask=mask, cache=network.new_cache())


def test_the_decoder_has_as_many_blocks_as_the_encoder_unless_told_otherwise() -> None:
    for layers, expected in ((None, 2), (5, 5), (1, 1)):
        network = make_network(num_layers=2, num_decoder_layers=layers)
        assert (len(network.encoder), len(network.decoder)) == (2, expected)


def test_only_the_blocks_of_the_decoder_look_at_another_text() -> None:
    network = make_network()
    assert all(block.cross_attention is None for block in network.encoder)
    assert all(block.cross_attention is not None for block in network.decoder)


@every_position
def test_positions_act_on_each_text_and_not_between_the_two(positions: Positions) -> None:
    network = make_random(positions=positions)
    acting = [
        name for name, module in network.named_modules() if isinstance(module, RotaryPositions | RelativePositions)
    ]
    assert len(acting) == (5 if positions in (Positions.rotary, Positions.relative) else 0)
    assert not any("cross_attention" in name for name in acting)
    memory, token_ids = network.encode(random_sources(2, 11)), random_texts(2, 7)
    assert_same(network.decode(token_ids, memory.flip(1)), network.decode(token_ids, memory))


def test_separate_embeddings_are_two_of_their_own_sizes() -> None:
    network = make_network(dim=12)
    assert network.source_embedding.weight.shape == (SOURCE_VOCABULARY, 12)
    assert network.embedding.weight.shape == (VOCABULARY, 12)
    equal = make_network(source_vocab_size=VOCABULARY)
    assert equal.source_embedding is not equal.embedding
    assert not torch.equal(equal.source_embedding.weight, equal.embedding.weight)


def test_learned_positions_of_source_and_target_are_two() -> None:
    network = make_network(positions=Positions.learned)
    assert network.source_positions.table is not network.positions.table


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["embedding.weight", "source_embedding.weight", "head.weight"]),
        ({"tie_embeddings": True}, ["embedding.weight", "source_embedding.weight"]),
        ({"share_embeddings": True}, ["embedding.weight", "head.weight"]),
        ({"share_embeddings": True, "tie_embeddings": True}, ["embedding.weight"]),
    ],
    ids=["none", "tied", "shared", "shared and tied"],
)
def test_embeddings_that_are_one_are_one_parameter_that_is_counted_once(
    options: dict[str, bool], names: list[str]
) -> None:
    network = make_network(source_vocab_size=VOCABULARY, **options)
    parts = ("embedding.weight", "source_embedding.weight", "head.weight")
    assert [name for name, _ in network.named_parameters() if name in parts] == names
    assert (network.head.weight is network.embedding.weight) is ("tie_embeddings" in options)
    assert (network.source_embedding is network.embedding) is ("share_embeddings" in options)
    apart = make_network(source_vocab_size=VOCABULARY)
    assert count(apart) - count(network) == (3 - len(names)) * VOCABULARY * 12


def test_embeddings_that_are_one_learn_from_all_ends() -> None:
    options = {"source_vocab_size": VOCABULARY, "dropout": 0.0}
    one = make_network(**options, share_embeddings=True, tie_embeddings=True)
    apart = make_network(**options)
    apart.load_state_dict(one.state_dict())
    for network in (one, apart):
        network(random_texts(2, 7, seed=2), random_texts(2, 11)).log_softmax(dim=2)[..., 3].sum().backward()
    ends = (apart.embedding, apart.source_embedding, apart.head)
    assert all(end.weight.grad.count_nonzero() > 0 for end in ends)
    assert_same(one.embedding.weight.grad, sum(end.weight.grad for end in ends))


def test_embeddings_that_are_one_survive_saving_loading_copying_and_another_precision() -> None:
    options = {"source_vocab_size": VOCABULARY, "share_embeddings": True, "tie_embeddings": True}
    trained, fresh = (make_network(seed, **options).eval() for seed in (0, 1))
    sources, token_ids = random_texts(2, 7, seed=2), random_texts(2, 11)
    assert not torch.equal(fresh(sources, token_ids), trained(sources, token_ids))
    fresh.load_state_dict(trained.state_dict())
    assert torch.equal(fresh(sources, token_ids), trained(sources, token_ids))
    for network in (fresh, copy.deepcopy(trained), copy.deepcopy(trained).float()):
        assert network.head.weight is network.embedding.weight
        assert network.source_embedding.weight is network.embedding.weight


@every_position
def test_weights_saved_and_loaded_give_the_same_logits(positions: Positions) -> None:
    sources, token_ids = random_sources(2, 7), random_texts(2, 11)
    trained, fresh = (make_network(seed, positions=positions).eval() for seed in (0, 1))
    assert not torch.equal(fresh(sources, token_ids), trained(sources, token_ids))
    fresh.load_state_dict(trained.state_dict())
    assert torch.equal(fresh(sources, token_ids), trained(sources, token_ids))


def test_one_embedding_for_two_vocabularies_is_an_error_that_says_what_to_do() -> None:
    message = (
        "model.share_embeddings=true requires one vocabulary, but the two have 23 and 29 entries; "
        "set data.shared_vocabulary=true"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make_network(share_embeddings=True)


@pytest.mark.parametrize("std", [1.0, 0.02])
def test_the_embeddings_start_as_wide_as_the_config_says(std: float) -> None:
    network = make_network(source_vocab_size=997, vocab_size=991, embedding_std=std)
    for embedding in (network.source_embedding, network.embedding):
        assert embedding.weight.std().item() == pytest.approx(std, rel=0.03)


def test_the_first_position_and_the_scale_reach_the_sinusoids_of_both_texts() -> None:
    for first_position, scale in itertools.product((0, 1), (1.0, 0.5)):
        network = make_network(first_position=first_position, position_scale=scale)
        for positions in (network.source_positions, network.positions):
            assert positions.table[2, 0].item() == pytest.approx(math.sin(scale * (first_position + 2)))


def test_reading_both_texts_backwards_and_forwards_at_once_is_refused() -> None:
    message = (
        "model.causal=true does not apply to translation: the encoder is never causal, the decoder always; "
        "set it to false"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        EncoderDecoderConfig(causal=True)


def test_a_translation_needs_room_for_a_word_and_the_end() -> None:
    EncoderDecoderConfig(context_length=2)
    with pytest.raises(ValueError, match=r"^context_length=1 must be at least 2, for one word and the end$"):
        EncoderDecoderConfig(context_length=1)


@pytest.mark.parametrize("value", [0, -1])
def test_a_decoder_has_at_least_one_block(value: int) -> None:
    assert EncoderDecoderConfig(num_decoder_layers=1).resolved_num_decoder_layers == 1
    with pytest.raises(ValueError, match=rf"^model\.num_decoder_layers={value} must be at least 1$"):
        EncoderDecoderConfig(num_decoder_layers=value)


def test_it_is_checked_like_every_transformer() -> None:
    with pytest.raises(ValueError, match=r"model\.dim=50 is not divisible by model\.num_heads=3;"):
        EncoderDecoderConfig(dim=50, num_heads=3)


@every_position
def test_blocks_that_start_from_nothing_leave_both_embeddings_as_they_are(positions: Positions) -> None:
    options = {"norm": Norm.pre, "positions": positions, "attention_bias": True, "num_layers": 5}
    network = make_network(**options, zero_init=True).eval()
    sources, token_ids = random_sources(2, 7), random_texts(2, 11)
    assert torch.equal(network.encode(sources), network.source_positions(network.source_embedding(sources)))
    expected = network.head(network.positions(network.embedding(token_ids)))
    assert torch.equal(network(sources, token_ids), expected)
    assert differs_everywhere(make_network(**options).eval()(sources, token_ids), expected)


def first_inputs(network: EncoderDecoder) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the inputs of the first encoder block and decoder block, and the sums of embedding and positions."""
    sources, token_ids = random_sources(97, 11), random_texts(97, CONTEXT)
    seen: list[Tensor] = []
    for blocks in (network.encoder, network.decoder):
        blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network(sources, token_ids)
    source_sum = network.source_embedding(sources) + network.source_positions.table.weight[:11]
    return seen[0], source_sum, seen[1], network.embedding(token_ids) + network.positions.table.weight


def test_dropout_falls_on_the_sum_of_embedding_and_positions_of_both_texts() -> None:
    source, source_sum, target, target_sum = first_inputs(make_network(dropout=0.7, positions=Positions.learned))
    for given, expected in ((source, source_sum), (target, target_sum)):
        kept = given != 0
        assert kept.double().mean().item() == pytest.approx(0.3, abs=0.02)
        assert_close(given[kept], expected[kept] / 0.3)  # the kept values are scaled up


SUBLAYERS = [f"encoder.1.{name}" for name in ("self_attention", "feed_forward")] + [
    f"decoder.2.{name}" for name in ("self_attention", "cross_attention", "feed_forward")
]


@pytest.mark.parametrize("name", SUBLAYERS)
def test_dropout_falls_on_the_output_of_every_layer(name: str) -> None:
    network = make_network(dropout=0.7, norm=Norm.none)
    layer, seen = network.get_submodule(name), {}
    last = layer.contract if name.endswith("feed_forward") else layer.output
    last.register_forward_hook(lambda _, __, output: seen.update(change=output))
    layer.register_forward_hook(lambda _, __, output: seen.update(dropped=output))
    network(random_sources(97, 11), random_texts(97, CONTEXT))
    kept = seen["dropped"].abs() > 1e-9
    assert kept.double().mean().item() == pytest.approx(0.3, abs=0.03)
    assert_close(seen["dropped"][kept], seen["change"][kept] / 0.3)


def test_evaluation_is_deterministic_and_training_is_not() -> None:
    network = make_network(dropout=0.7)
    sources, token_ids = random_sources(2, 7), random_texts(2, 11)
    assert differs_everywhere(network(sources, token_ids), network(sources, token_ids))
    network.eval()
    assert torch.equal(network(sources, token_ids), network(sources, token_ids))


def loss_of(network: EncoderDecoder, sources: Tensor, token_ids: Tensor) -> Tensor:
    return F.cross_entropy(network(sources, token_ids[:, :-1]).flatten(0, 1), token_ids[:, 1:].flatten())


@every_position
@pytest.mark.parametrize(
    "norm", [Norm.pre, *(pytest.param(norm, marks=pytest.mark.slow) for norm in Norm if norm is not Norm.pre)]
)
def test_in_every_combination_gradients_reach_every_parameter(norm: Norm, positions: Positions) -> None:
    sources, token_ids = random_texts(3, 7, seed=2), random_texts(3, 8)
    feed_forwards = (
        {"feed_forward": FeedForwardKind.mlp, "activation": Activation.swiglu},
        {"feed_forward": FeedForwardKind.mlp, "activation": Activation.relu_squared, "final_norm": True},
        {"feed_forward": FeedForwardKind.linear, "activation": Activation.silu},
        {"feed_forward": FeedForwardKind.none},
    )
    for kind, feed_forward in itertools.product(NormKind, feed_forwards):
        tied = {"share_embeddings": kind is NormKind.rms, "tie_embeddings": kind is NormKind.rms}
        network = make_network(
            source_vocab_size=VOCABULARY,
            norm=norm,
            norm_kind=kind,
            positions=positions,
            context_length=7,
            **feed_forward,
            **tied,
        )
        loss_of(network, sources, token_ids).backward()
        for name, parameter in network.named_parameters():
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.count_nonzero() > 0, name


def test_it_learns_to_write_the_source_backwards() -> None:
    """This requires the source and its order, because each target begins with the same token."""
    torch.manual_seed(0)
    config = EncoderDecoderConfig(
        dim=32, num_heads=4, num_layers=1, context_length=7, dropout=0.0, norm=Norm.pre, positions=Positions.learned
    )
    network = EncoderDecoder(config, 11, 11)
    sources = torch.stack([torch.randperm(10)[:5] + 1 for _ in range(16)])
    token_ids = torch.cat((torch.zeros(16, 1, dtype=torch.long), sources.flip(1)), dim=1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        loss_of(network, sources, token_ids).backward()
        optimizer.step()
    network.eval()
    written, cache = token_ids[:, :1], network.new_cache()
    with torch.no_grad():
        memory = network.encode(sources)
        for _ in range(5):
            newest = network.decode(written[:, -1:], memory, cache=cache)[:, -1:].argmax(dim=-1)
            written = torch.cat((written, newest), dim=1)
    assert torch.equal(written, token_ids)
