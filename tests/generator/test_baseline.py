import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstlight.generator.baseline import num_ngrams, token_losses


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


def test_ids_of_one_byte_are_counted_like_any_other():
    text = np.random.default_rng(3).integers(0, 256, size=10_007)
    wide = losses(text, text[:1009], 256, 3)
    assert losses(text.astype(np.uint8), text[:1009].astype(np.uint8), 256, 3) == wide


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
    assert num_ngrams(np.array(training), order) == len(pieces)
