"""The networks before the first attention head of post 4, and its LSTM, against the post's arithmetic."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.decoding.generate import generate
from firstlight.networks import LSTM, BigramTable, GeneratorConfig, RawAffinities, RunningAverages

VOCABULARY, CONTEXT = 27, 10
EVERY = (BigramTable, RunningAverages, RawAffinities, LSTM)


def made(kind: type[nn.Module], **options: object) -> nn.Module:
    torch.manual_seed(1)
    return kind(GeneratorConfig(dim=12, num_heads=1, context_length=CONTEXT, **options), VOCABULARY).double()


def letters(*shape: int) -> Tensor:
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(2))


def test_a_bigram_table_with_the_logarithms_of_the_shares_has_the_loss_of_counting() -> None:
    text = letters(400)
    counts = torch.ones(VOCABULARY, VOCABULARY, dtype=torch.double)
    counts.index_put_((text[:-1], text[1:]), torch.ones(399, dtype=torch.double), accumulate=True)
    network = made(BigramTable)
    network.embedding.weight.data = counts.log()
    loss = F.cross_entropy(network(text[None, :-1])[0], text[1:])
    shares = counts / counts.sum(dim=1, keepdim=True)
    assert_close(loss, -shares[text[:-1], text[1:]].log().mean())


def test_running_averages_are_the_means_of_the_letters_so_far() -> None:
    network, text = made(RunningAverages), letters(2, 7)
    hidden = network.embedding(text)
    expected = torch.stack([hidden[:, : i + 1].mean(dim=1) for i in range(7)], dim=1)
    assert_close(network(text), network.head(expected))
    lower = torch.ones(7, 7, dtype=torch.double).tril()
    assert_close(network.weights(hidden)[1], lower / lower.sum(dim=1, keepdim=True))


@pytest.mark.parametrize(("scaled", "divisor"), [(False, 1.0), (True, math.sqrt(12))])
def test_raw_affinities_are_weighted_by_dot_products(scaled: bool, divisor: float) -> None:
    network, text = made(RawAffinities, scale_scores=scaled, embedding_std=0.3), letters(2, 7)
    hidden = network.embedding(text)
    for i in range(7):
        powers = [torch.exp((hidden[1, i] * hidden[1, j]).sum() / divisor) for j in range(i + 1)]
        mean = sum(power * hidden[1, j] for j, power in enumerate(powers)) / sum(powers)
        assert_close(network(text)[1, i], network.head(mean))


def test_an_lstm_computes_its_gates() -> None:
    network, text = made(LSTM, dropout=0.5).eval(), letters(1, 4)
    lstm = network.lstm
    hidden = cell = torch.zeros(12, dtype=torch.double)
    for i, letter in enumerate(text[0]):
        gates = lstm.weight_ih_l0 @ network.embedding.weight[letter] + lstm.bias_ih_l0
        gates = gates + lstm.weight_hh_l0 @ hidden + lstm.bias_hh_l0
        enter, forget, new, leave = gates.chunk(4)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        hidden = leave.sigmoid() * cell.tanh()
        assert_close(network(text)[0, i], network.head(hidden))


@pytest.mark.parametrize("kind", EVERY)
def test_later_letters_do_not_change_earlier_logits(kind: type[nn.Module]) -> None:
    network, text = made(kind).eval(), letters(3, 7)
    changed = text.clone()
    changed[:, 4:] = (text[:, 4:] + 1) % VOCABULARY
    assert_close(network(changed)[:, :4], network(text)[:, :4])
    assert not torch.equal(network(changed)[:, 4:], network(text)[:, 4:])


@pytest.mark.parametrize("kind", EVERY)
def test_it_writes_without_a_cache(kind: type[nn.Module]) -> None:
    network, prompt = made(kind).eval(), letters(2, 3)
    written = list(generate(network, prompt, 12, lambda logits: logits.argmax(dim=1)))
    text = torch.cat((prompt, torch.stack(written, dim=1)), dim=1)
    assert_close(text[:, 14], network(text[:, 4:14])[:, -1].argmax(dim=1))
