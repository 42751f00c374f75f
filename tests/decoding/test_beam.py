"""Beam search finds the best translations, and neither the cache nor the batch changes the result."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from firstlight.decoding.beam import Search, Translation, translate
from firstlight.networks.variants import Norm, Positions
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

BEGIN, END, WORDS = 0, 1, (2, 3, 4, 5, 6, 7, 8, 9, 10)
CONTEXT, SOURCES = 13, 7
LENGTHS = [7, 3, 5, 1, 6]  # of five sources, of which all but one are padded


class Scrambled:
    """An encoder-decoder with scrambled logits: the smallest change of its input changes the tokens that it writes.

    With its own logits, an untrained network repeats one token forever.
    """

    def __init__(self, network: EncoderDecoder) -> None:
        self.network, self.context_length = network, network.context_length
        self.rows: list[int] = []  # the number of rows of each call of decode

    def encode(self, source_ids: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.network.encode(source_ids, source_mask)

    def decode(self, token_ids: Tensor, memory: Tensor, source_mask: Tensor | None = None, cache: Any = None) -> Tensor:
        self.rows.append(len(token_ids))
        return 2 * (1000 * self.network.decode(token_ids, memory, source_mask, cache=cache)).sin()

    def new_cache(self) -> Any:
        return self.network.new_cache()


class WrittenTokens:
    """The cache of a network that reads all tokens again at each call: the tokens themselves."""

    def __init__(self) -> None:
        self.token_ids = torch.empty(0, dtype=torch.long)

    def append(self, token_ids: Tensor) -> Tensor:
        self.token_ids = torch.cat((self.token_ids, token_ids), dim=1) if self.token_ids.numel() else token_ids
        return self.token_ids

    def select(self, rows: Tensor, *, same_memory: bool = False) -> None:
        self.token_ids = self.token_ids[rows]


def make_network(vocab_size: int = 11, **options: Any) -> Scrambled:
    sizes = {"dim": 12, "num_heads": 3, "head_dim": 6, "num_layers": 1, "num_decoder_layers": 2, "norm": Norm.pre}
    config = EncoderDecoderConfig(**(sizes | {"context_length": CONTEXT} | options))
    network = EncoderDecoder(config, 23, vocab_size).double().eval()
    torch.manual_seed(9)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.7)
    return Scrambled(network)


def random_sources() -> tuple[Tensor, Tensor]:
    """Return five sources, with random ids in the padding, and their mask."""
    source_ids = torch.randint(0, 23, (len(LENGTHS), SOURCES), generator=torch.Generator().manual_seed(1))
    return source_ids, torch.arange(SOURCES) < torch.tensor(LENGTHS)[:, None]


def each_alone() -> Iterator[Tensor]:
    source_ids, _ = random_sources()
    for row, length in enumerate(LENGTHS):
        yield source_ids[row : row + 1, :length]


class Table:
    """A hand-made network: tables of the next token for each last token. A source is one id, the number of a table."""

    def __init__(self, *tables: dict[int, dict[int, float]], context_length: int = CONTEXT) -> None:
        """Make a network. tables: for each last token, the probabilities of the next token."""
        self.context_length = context_length
        self.probabilities = torch.full((len(tables), 6, 6), 1e-30)
        for number, table in enumerate(tables):
            for last, following in table.items():
                assert sum(following.values()) == pytest.approx(1)
                for token, probability in following.items():
                    self.probabilities[number, last, token] = probability
        self.rows: list[int] = []

    def encode(self, source_ids: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return source_ids[..., None].double()

    def decode(self, token_ids: Tensor, memory: Tensor, source_mask: Tensor | None = None, cache: Any = None) -> Tensor:
        assert len(token_ids) == len(memory) == len(cache.append(token_ids))
        self.rows.append(len(token_ids))
        return self.probabilities[memory[:, :1, 0].long(), token_ids].log()

    def new_cache(self) -> WrittenTokens:
        return WrittenTokens()


class Finding(list[list[Translation]]):
    """The translations of each source, for comparing: ids exactly, scores with a tolerance."""

    @property
    def ids(self) -> list[list[list[int]]]:
        return [[translation.token_ids for translation in found] for found in self]

    @property
    def scores(self) -> list[float]:
        return [translation.score for found in self for translation in found]


def find(
    network: Any,
    source_ids: Tensor | list[int],
    source_mask: Tensor | None = None,
    max_tokens: int | None = None,
    **options: Any,
) -> Finding:
    if max_tokens is not None:
        network.context_length = max_tokens
    if isinstance(source_ids, list):
        source_ids = torch.tensor(source_ids)[:, None]
    return Finding(translate(network, source_ids, source_mask, Search(BEGIN, END, **options)))


def assert_same(one: Finding, other: Finding) -> None:
    assert one.ids == other.ids
    assert one.scores == pytest.approx(other.scores, abs=1e-4)


@torch.no_grad()
def log_probability(network: Scrambled, source_ids: Tensor, token_ids: list[int]) -> float:
    """Return the log probability of a translation and its [END], given one source, without a cache."""
    logits = network.decode(torch.tensor([[BEGIN, *token_ids]]), network.encode(source_ids))
    return logits.log_softmax(dim=2)[0, range(len(token_ids) + 1), [*token_ids, END]].sum().item()


def penalised(log_probability: float, length: int, alpha: float) -> float:
    return log_probability / ((5 + length) / 6) ** alpha


@torch.no_grad()
def greedy(network: Scrambled, source_ids: Tensor, limit: int) -> list[int]:
    """Return the greedy translation, with all tokens read again at each step."""
    written = [BEGIN]
    while len(written) < limit:
        newest = network.decode(torch.tensor([written]), network.encode(source_ids))[0, -1].argmax().item()
        if newest == END:
            break
        written.append(newest)
    return written[1:]


@pytest.mark.parametrize("limit", [1, 5, CONTEXT])
@pytest.mark.parametrize("positions", Positions)
def test_a_beam_of_one_is_greedy(positions: Positions, limit: int) -> None:
    network = make_network(positions=positions)
    expected = [greedy(network, source_ids, limit) for source_ids in each_alone()]
    found = find(network, *random_sources(), max_tokens=limit)
    assert found.ids == [[token_ids] for token_ids in expected]


every_beam = pytest.mark.parametrize("beam_size", [1, 2, 5])


@every_beam
def test_a_padded_batch_has_the_translations_of_each_source_alone(beam_size: int) -> None:
    network = make_network()
    source_ids, mask = random_sources()
    together = find(network, source_ids, mask, beam_size=beam_size)
    assert torch.equal(source_ids, random_sources()[0])
    assert network.rows == sorted(network.rows, reverse=True)
    assert len(set(network.rows)) >= 3  # sentences leave the batch at different times
    best = [ids[0] for ids in together.ids]
    assert len({len(ids) for ids in best}) >= 3  # so they do not agree by chance
    alone = [find(network, source_ids, beam_size=beam_size)[0] for source_ids in each_alone()]
    assert_same(together, Finding(alone))


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.5])
def test_a_beam_with_room_for_all_finds_the_best_of_all_translations_and_all_others_in_their_order(length_penalty):
    """Three words and at most four tokens give 1 + 3 + 9 + 27 translations, and a wider beam finds no others."""
    network = make_network(vocab_size=5)
    found = find(network, *random_sources(), beam_size=47, max_tokens=4, never=(BEGIN,), length_penalty=length_penalty)
    for translations, source_ids in zip(found, each_alone(), strict=True):
        every = [list(words) for count in range(4) for words in itertools.product((2, 3, 4), repeat=count)]
        expected = [
            Translation(ids, penalised(log_probability(network, source_ids, ids), len(ids) + 1, length_penalty))
            for ids in every
        ]
        expected.sort(key=lambda translation: -translation.score)
        assert_same(Finding([translations]), Finding([expected]))


# 2 is the likelier beginning and leads nowhere; 3 is the better one
DETOUR = {BEGIN: {2: 0.55, 3: 0.45}, 2: {END: 0.4, 4: 0.3, 5: 0.3}, 3: {END: 0.9, 4: 0.1}, 4: {END: 1.0}, 5: {END: 1.0}}


def test_a_beam_of_two_finds_what_greedy_misses() -> None:
    (narrow,) = find(Table(DETOUR), [0], length_penalty=0.0)
    assert narrow == [([2], pytest.approx(math.log(0.55 * 0.4)))]
    (wide,) = find(Table(DETOUR), [0], beam_size=2, length_penalty=0.0)
    assert wide == [([3], pytest.approx(math.log(0.45 * 0.9))), ([2], pytest.approx(math.log(0.55 * 0.4)))]


# by a word that comes again and again, until something else is better
AGAIN = {BEGIN: {2: 0.5, 3: 0.4, END: 0.1}, 2: {2: 0.9, END: 0.1}, 3: {END: 0.9, 2: 0.1}}


def test_a_search_goes_on_while_something_unfinished_is_still_better_than_the_best_that_ended() -> None:
    """[3] has the probability 0.36. The unfinished [2, 2, …] has 0.45, 0.405, 0.3645 and, after five tokens, 0.328."""
    network = Table(AGAIN)
    (found,) = find(network, [0], beam_size=2, length_penalty=0.0)
    assert network.rows == [2] * 5
    assert found[0] == ([3], pytest.approx(math.log(0.36)))


def test_what_goes_on_is_compared_by_its_score_too() -> None:
    """With the penalty, the unfinished translation always has the better score, so only the limit ends it."""
    network = Table(AGAIN)
    (found,) = find(network, [0], beam_size=2, length_penalty=1.0, max_tokens=11)
    assert network.rows == [2] * 11
    assert found[0] == ([3], pytest.approx(penalised(math.log(0.36), 2, 1.0)))


def test_a_search_goes_on_until_as_many_have_ended_as_there_are_beams() -> None:
    first = {BEGIN: {END: 0.6, 2: 0.4}, 2: {2: 0.5, END: 0.5}}
    for beam_size, steps in ((1, 1), (2, 2), (3, 3)):
        network = Table(first)
        (found,) = find(network, [0], beam_size=beam_size, length_penalty=0.0)
        assert [translation.token_ids for translation in found] == [[2] * length for length in range(steps)]
        assert len(network.rows) == steps


def test_an_end_that_is_not_among_the_best_does_not_count() -> None:
    """With two beams, only [2, 2] and [3, 2] are kept. [2] and [3], which end, have lower probabilities."""
    network = Table({BEGIN: {2: 0.6, 3: 0.4}, 2: {2: 0.9, END: 0.1}, 3: {2: 0.9, END: 0.1}})
    (found,) = find(network, [0], beam_size=2, length_penalty=0.0, max_tokens=3)
    assert [translation.token_ids for translation in found] == [[2, 2], [3, 2]]


def test_what_has_ended_is_replaced_by_the_next_best_that_goes_on() -> None:
    """Both beams stay in use: [4, 5] extends the third best hypothesis."""
    network = Table(
        {BEGIN: {END: 0.4, 2: 0.35, 4: 0.25}, 2: {3: 0.6, END: 0.4}, 3: {END: 0.1, 2: 0.9}, 4: {5: 1.0}, 5: {END: 1.0}}
    )
    (found,) = find(network, [0], beam_size=2, length_penalty=0.0)
    assert [translation.token_ids for translation in found] == [[], [4, 5]]


@every_beam
def test_what_is_never_written_is_not_written(beam_size: int) -> None:
    network = make_network()
    free = find(network, *random_sources(), beam_size=beam_size)
    never = (3, 7, 9)
    assert {token for found in free.ids for ids in found for token in ids} >= set(never)
    bound = find(network, *random_sources(), beam_size=beam_size, never=never)
    assert not {token for found in bound.ids for ids in found for token in ids} & set(never)


ENDLESS = {last: {2: 0.4, 3: 0.3, 4: 0.2, 5: 0.1} for last in (BEGIN, 2, 3, 4, 5)}


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("tokens", [3, 7])
def test_a_sentence_that_never_ends_is_ended_at_the_limit(tokens: int, beam_size: int) -> None:
    """The limit is the context length. The score includes the probability of [END]."""
    network = Table(ENDLESS, context_length=tokens)
    (found,) = find(network, [0], beam_size=beam_size, length_penalty=0.0)
    words = tokens - 1
    assert found[0] == ([2] * words, pytest.approx(words * math.log(0.4) + math.log(1e-30), abs=1e-4))
    assert len(found) == beam_size
    assert len(network.rows) == tokens


def test_no_sources_have_no_translations() -> None:
    assert find(make_network(), torch.empty(0, 5, dtype=torch.long), beam_size=3) == []


def test_nothing_is_kept_for_gradients_and_gradients_stay_on_elsewhere() -> None:
    network, graphs = make_network(), []
    network.network.head.register_forward_hook(lambda _, __, logits: graphs.append(logits.requires_grad))
    find(network, *random_sources(), beam_size=2)
    assert not any(graphs)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    sources = random_sources()[0]
    network.network(sources, sources % 11).sum().backward()  # translating does not prevent training


def test_scores_that_are_no_numbers_are_an_error_and_not_an_empty_translation() -> None:
    network = Table({})
    network.probabilities.fill_(math.nan)
    with pytest.raises(ValueError, match="the network's scores are NaN"):
        find(network, [0, 0], beam_size=2)
