import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstlight.generator.ngrams import Contexts, count, token_losses


def naive_losses(training: list[int], validation: list[int], vocab_size: int, highest_order: int) -> list[float]:
    """Return the losses by Witten and Bell's interpolation, computed with dictionaries."""
    followers: dict[tuple[int, ...], Counter[int]] = {}
    for place, token in enumerate(training):
        for length in range(min(place, highest_order - 1) + 1):
            followers.setdefault(tuple(training[place - length : place]), Counter())[token] += 1

    def probability(context: tuple[int, ...], token: int) -> float:
        lower = probability(context[1:], token) if context else 1 / vocab_size
        found = followers.get(context, Counter())
        if not found:
            return lower
        return (found[token] + len(found) * lower) / (found.total() + len(found))

    return [
        -sum(
            math.log(probability(tuple(validation[max(0, place - order + 1) : place]), token))
            for place, token in enumerate(validation)
        )
        / len(validation)
        for order in range(1, highest_order + 1)
    ]


def probabilities(training: np.ndarray, validation: np.ndarray, vocab_size: int, order: int) -> np.ndarray:
    """Return the probability of each validation token by the model of an order."""
    probability = np.full(len(validation), 1 / vocab_size)
    contexts = Contexts(training, validation)
    for number in range(order):
        if number:
            contexts.lengthen()
        probability = contexts.interpolate(probability)
    return probability


def losses(training: np.ndarray, validation: np.ndarray, vocab_size: int, highest_order: int) -> list[float]:
    return [float(each.mean()) for each in token_losses(training, validation, vocab_size, highest_order)]


TOKENS = st.integers(0, 4)


@settings(deadline=None)
@given(
    training=st.lists(TOKENS, min_size=1, max_size=61),
    validation=st.lists(TOKENS, min_size=1, max_size=31),
    vocab_size=st.integers(5, 7),
)
def test_the_losses_are_those_of_a_model_of_dictionaries(training, validation, vocab_size):
    ours = losses(np.array(training), np.array(validation), vocab_size, 4)
    assert ours == pytest.approx(naive_losses(training, validation, vocab_size, 4))


@settings(deadline=None)
@given(
    training=st.lists(TOKENS, min_size=1, max_size=61),
    context=st.lists(TOKENS, min_size=3, max_size=3),
    order=st.integers(1, 4),
)
def test_the_probabilities_of_all_tokens_after_a_context_sum_to_one(training, context, order):
    each = [probabilities(np.array(training), np.array([*context, token]), 7, order)[-1] for token in range(7)]
    assert min(each) > 0
    assert sum(each) == pytest.approx(1)


def test_order_two_of_a_cycle_knows_what_comes_next():
    text = np.tile(np.arange(13), 101)
    first, second = losses(text, text[:503], 13, 2)
    assert math.exp(first) == pytest.approx(13)
    assert 1 < math.exp(second) < 1.05


def test_ids_of_one_byte_are_counted_like_any_other():
    text = np.random.default_rng(3).integers(0, 256, size=10_007)
    wide = losses(text, text[:1009], 256, 3)
    assert losses(text.astype(np.uint8), text[:1009].astype(np.uint8), 256, 3) == wide


def test_each_order_is_asked_for_only_when_it_is_needed():
    by_order = token_losses(np.arange(7), np.arange(7), 7, 1009)
    assert next(by_order).mean() == pytest.approx(math.log(7))


def test_the_losses_are_those_of_the_probabilities():
    random = np.random.default_rng(5)
    training, validation = random.integers(0, 5, size=211), random.integers(0, 5, size=37)
    for order, each in enumerate(token_losses(training, validation, 7, 3), start=1):
        assert each == pytest.approx(-np.log(probabilities(training, validation, 7, order)))


def test_tokens_out_of_reach_are_not_read():
    """A text in two parts, of which the second cannot read the first, has the losses of two texts."""
    random = np.random.default_rng(7)
    training, first, second = (random.integers(0, 5, size=size) for size in (211, 37, 23))
    reach = np.concatenate((np.arange(37), np.arange(23)))
    both = list(token_losses(training, np.concatenate((first, second)), 7, 4, reach))
    for part, place in ((first, slice(0, 37)), (second, slice(37, 60))):
        for order, each in enumerate(token_losses(training, part, 7, 4)):
            assert both[order][place] == pytest.approx(each)


@settings(deadline=None)
@given(training=st.lists(TOKENS, min_size=1, max_size=61), order=st.integers(1, 4))
def test_the_counted_ngrams_are_the_different_pieces_of_the_text(training, order):
    pieces = {
        tuple(training[start : start + length])
        for length in range(1, order + 1)
        for start in range(len(training) - length + 1)
    }
    assert count(np.array(training), order) == len(pieces)
