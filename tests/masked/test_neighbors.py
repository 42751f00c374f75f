import numpy as np
import pytest

from firstlight.masked import baseline
from firstlight.masked.baseline import AT_ONCE, HIDDEN, count_pairs
from firstlight.text.ragged import RaggedIds

TEXTS = RaggedIds.from_rows([[2, 3, 4], [2, 3], [], [5, 3, 4, 2]])
VOCABULARY, END = 7, 7
PAIRS = count_pairs(TEXTS, VOCABULARY)
FOLLOWING = {0: 0, 1: 0, 2: 3, 3: 3, 4: 2, 5: 1, 6: 0, END: 4}
FREQUENCY = {word: (count + 1) / (13 + 8) for word, count in FOLLOWING.items()}


def probabilities(left: int, right: int, num_neighbors: int) -> np.ndarray:
    (found,) = baseline.probabilities(PAIRS, np.array([left]), np.array([right]), num_neighbors)
    return found[0]


def test_pairs_are_counted_within_texts_and_with_their_ends() -> None:
    pairs = [(END, 2), (2, 3), (3, 4), (4, END), (END, 2), (2, 3), (3, END), (END, END), (END, 5), (5, 3), (3, 4)]
    pairs += [(4, 2), (2, END)]
    expected = np.zeros((8, 8), int)
    np.add.at(expected, tuple(zip(*pairs, strict=True)), 1)
    assert PAIRS.toarray().tolist() == expected.tolist()
    assert PAIRS.nnz == len(set(pairs))


@pytest.mark.parametrize("sides", [(2, 4), (HIDDEN, HIDDEN)])
def test_without_a_neighbor_it_is_the_frequency(sides: tuple[int, int]) -> None:
    expected = np.array([FREQUENCY[word] for word in range(VOCABULARY)])
    assert probabilities(*sides, 0) == pytest.approx(expected / expected.sum())
    if sides == (HIDDEN, HIDDEN):
        assert probabilities(*sides, 2) == pytest.approx(expected / expected.sum())


def after(word: int, following: int) -> float:
    """Return P(following | word), computed by hand."""
    row = PAIRS.toarray()[word]
    types = max((row > 0).sum(), 1)
    return (row[following] + types * FREQUENCY[following]) / (row.sum() + types)


def test_the_left_neighbor_is_interpolated_with_the_frequency() -> None:
    expected = np.array([after(2, word) for word in range(VOCABULARY)])
    assert probabilities(2, 4, 1) == pytest.approx(expected / expected.sum())
    assert probabilities(2, 4, 1).argmax() == 3


@pytest.mark.parametrize(("left", "right"), [(2, 4), (END, 3), (5, END), (HIDDEN, 2), (3, HIDDEN)])
def test_both_neighbors_decide_as_in_a_markov_chain(left: int, right: int) -> None:
    expected = np.array(
        [
            (FREQUENCY[word] if left == HIDDEN else after(left, word)) * (1 if right == HIDDEN else after(word, right))
            for word in range(VOCABULARY)
        ]
    )
    assert probabilities(left, right, 2) == pytest.approx(expected / expected.sum())


def test_many_places_come_in_parts() -> None:
    left = np.random.default_rng(1).integers(HIDDEN, END + 1, 2 * AT_ONCE + 3)
    found = list(baseline.probabilities(PAIRS, left, left[::-1], 2))
    assert [len(part) for part in found] == [AT_ONCE, AT_ONCE, 3]
    one = probabilities(int(left[AT_ONCE]), int(left[::-1][AT_ONCE]), 2)
    assert found[1][0] == pytest.approx(one)
    assert np.concatenate(found).sum(axis=1) == pytest.approx(1)
