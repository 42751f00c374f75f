import warnings

import numpy as np
import pytest

from firstlight.masked import data
from firstlight.masked.data import KEPT, draw_masks, uniform
from firstlight.masked.options import MaskedReviewOptions

VOCABULARY = 101
ROWS = np.arange(211) * 7 + 3
LENGTHS = np.random.default_rng(5).integers(0, 61, size=len(ROWS))


def drawn(chosen: slice | list[int] = slice(None), *, seed: int = 1, epoch: int = 0, **options: float):
    """Return the id that is written at each masked place, by (row number, column)."""
    rows, lengths = ROWS[chosen], LENGTHS[chosen]
    places, ids = draw_masks(MaskedReviewOptions(**options), VOCABULARY, rows, lengths, seed=seed, epoch=epoch)
    longest = max(lengths.max(initial=1), 1)
    return {
        (int(rows[place // longest]), int(place % longest)): int(written)
        for place, written in zip(places, ids, strict=True)
    }


@pytest.mark.parametrize("fraction", [0.15, 0.01, 0.5, 0.99])
def test_of_each_text_the_share_is_masked_and_at_least_one_token(fraction: float) -> None:
    found = [row for row, _ in drawn(mask_fraction=fraction)]
    for row, length in zip(ROWS.tolist(), LENGTHS.tolist(), strict=True):
        assert found.count(row) == (max(1, round(fraction * length)) if length else 0)


def test_most_become_the_mask_some_a_random_word_and_the_others_are_kept() -> None:
    written = [each for epoch in range(10) for each in drawn(epoch=epoch).values()]
    assert len(written) > 9_000
    masked, kept = (np.mean([each == wanted for each in written]) for wanted in (VOCABULARY, KEPT))
    assert (masked, kept) == pytest.approx((0.8, 0.1), abs=0.015)
    assert all(2 <= each <= VOCABULARY or each == KEPT for each in written)


def test_random_words_are_all_words_of_the_vocabulary_alike_and_no_special_token(monkeypatch) -> None:
    monkeypatch.setattr(data, "MASKED", 0.0)
    monkeypatch.setattr(data, "RANDOM", 1.0)
    counts = np.bincount([each for epoch in range(9) for each in drawn(epoch=epoch, mask_fraction=0.9).values()])
    assert len(counts) == VOCABULARY
    assert counts[:2].tolist() == [0, 0]
    assert counts[2:].min() > 0.75 * counts[2:].mean()
    assert counts[2:].max() < 1.25 * counts[2:].mean()


def test_a_text_is_masked_alike_in_every_batch() -> None:
    everything = drawn()
    some = [5, 200, 31, 7, 8]
    assert drawn(some) == {place: each for place, each in everything.items() if place[0] in ROWS[some]}


@pytest.mark.parametrize("other", [{"seed": 2}, {"epoch": 1}])
def test_another_pass_and_another_seed_mask_other_words(other: dict[str, int]) -> None:
    first, second = drawn(), drawn(**other)
    assert first == drawn()
    assert len(first) == len(second)
    assert len(first.keys() & second.keys()) < 0.3 * len(first)


def test_the_drawn_numbers_are_uniform_and_independent() -> None:
    numbers = uniform(3, np.arange(500)[:, None], np.arange(400))
    assert numbers.shape == (500, 400)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert np.histogram(numbers, bins=10)[0] == pytest.approx(20_000, rel=0.03)
    for one, other in ((numbers[1:], numbers[:-1]), (numbers[:, 1:], numbers[:, :-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.01


def test_any_whole_number_is_a_seed_and_nothing_is_said_of_an_overflow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {float(uniform(seed, 0, np.arange(1))[0]) for seed in (-1, 0, 1, 2**62, -(2**62))}
    assert len(found) == 5
