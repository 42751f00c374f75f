import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.networks.cache import KeyValueCache
from firstlight.networks.positions import RelativePositions, RotaryPositions
from firstlight.networks.variants import Positions
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


def assert_same(one: Tensor, other: Tensor) -> None:
    assert_close(one, other, atol=1e-11, rtol=1e-11)


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


SOURCE_LENGTHS, LENGTHS = [7, 11, 1], [5, 2, 7]


@every_position
def test_a_padded_batch_has_the_logits_of_each_pair_alone(positions: Positions) -> None:
    network = make_random(positions=positions)
    sources, token_ids = random_sources(3, 11), random_texts(3, 7)
    together = network(sources, token_ids, real(SOURCE_LENGTHS, 11), real(LENGTHS, 7))
    for row, (source_length, length) in enumerate(zip(SOURCE_LENGTHS, LENGTHS, strict=True)):
        alone = network(sources[row : row + 1, :source_length], token_ids[row : row + 1, :length])
        assert_same(together[row, :length], alone[0])


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


@pytest.mark.parametrize("sizes", [[1] * 11, [4, 3, 2, 1, 1], [10, 1]], ids=str)
@every_position
def test_a_target_read_in_chunks_has_the_logits_of_one_read_at_once(positions: Positions, sizes: list[int]) -> None:
    network = make_random(positions=positions)
    sources, token_ids, source_mask = random_sources(3, 7), random_texts(3, 11), real([7, 3, 5], 7)
    memory, cache = network.encode(sources, source_mask), network.new_cache()
    cached = read_in_chunks(network, token_ids, memory, sizes, cache, source_mask)
    assert_same(cached, network(sources, token_ids, source_mask))
    assert cache.length == 11


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2, 2, 2, 1]], ids=["another order", "copies"])
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


def test_a_target_that_grows_beyond_the_context_is_an_error_that_names_both_numbers() -> None:
    network = make_network()
    memory, cache = network.encode(random_sources(2, 5)), network.new_cache()
    network.decode(random_texts(2, 11), memory, cache=cache)
    with pytest.raises(ValueError, match=r"^a target of 14 tokens is longer than the context length, 13$"):
        network.decode(random_texts(2, 3), memory, cache=cache)


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
