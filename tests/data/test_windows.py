from functools import partial
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstlight.data.windows import EveryWindow, RandomWindows, ShuffledDocuments, Stream, join

FIRST, LENGTH, CONTEXT, SIZE = 1000, 1009, 11, 7  # a stream of 1009 tokens, whose positions do not start at 0
LENGTHS = np.random.default_rng(5).integers(0, 13, size=103)  # of documents
OFFSETS = np.cumsum([0, *LENGTHS])
SEPARATOR = int(OFFSETS[-1])
DOCUMENTS = np.flatnonzero(np.random.default_rng(7).random(103) < 0.7)
WORLD_SIZES = pytest.mark.parametrize("world_size", [2, 3, 5])
STARTS = pytest.mark.parametrize("start", [0, 1, 6, 7, 13, 41])


def drawn(*, start: int = 0, size: int = SIZE, seed: int = 11, **options) -> RandomWindows:
    batches = RandomWindows(Stream(range(FIRST, FIRST + LENGTH)), CONTEXT, size, seed, **options)
    batches.start = start
    return batches


def shuffled(*, start: int = 0, size: int = SIZE, seed: int = 11, documents=DOCUMENTS, **options) -> ShuffledDocuments:
    together = partial(join, OFFSETS, separator=SEPARATOR)
    batches = ShuffledDocuments(documents, together, len(together(documents)), CONTEXT, size, seed, **options)
    batches.start = start
    return batches


def taken(batches) -> list[list[list[int]]]:
    return [batch.tolist() for batch in batches]


def joined(offsets: np.ndarray, documents, separator: int) -> list[int]:
    """Return the result of `join`, computed token by token."""
    places = [separator]
    for document in documents:
        places += [*range(offsets[document], offsets[document + 1]), separator]
    return places if len(documents) else [separator]


# --- random windows ---


def test_a_window_begins_anywhere_where_it_ends_within_the_stream():
    batches = RandomWindows(Stream(range(FIRST, FIRST + 61)), CONTEXT, SIZE, 11)
    assert batches.batch(0).shape == (SIZE, CONTEXT + 1)
    assert (np.diff(batches.batch(0)) == 1).all()
    starts = [int(row[0]) for number in range(211) for row in batches.batch(number)]
    assert set(starts) == set(range(FIRST, FIRST + 61 - CONTEXT))  # the last one ends with the last token
    counts = np.bincount(np.array(starts) - FIRST)
    assert counts.min() > 0.3 * counts.mean()
    assert counts.max() < 2 * counts.mean()


def test_a_batch_depends_on_the_seed_and_its_number_and_on_nothing_else():
    first = drawn().batch(17)
    np.random.seed(0)
    list(drawn())
    assert np.array_equal(drawn().batch(17), first)
    numbers = range(101)
    assert len({drawn().batch(number).tobytes() for number in numbers}) == len(numbers)
    assert not np.array_equal(drawn(seed=12).batch(17), first)


@STARTS
def test_windows_drawn_from_the_middle_are_those_of_an_uninterrupted_training(start):
    whole, begun = drawn(), drawn(start=start)
    assert len(whole) == LENGTH // (CONTEXT * SIZE) == 13  # an epoch has as many tokens as the stream
    assert taken(begun) == [whole.batch(number).tolist() for number in range(start, start + 13)]
    assert taken(begun) == taken(drawn())  # a start is used once


# --- shuffled documents ---


def windows_of_epoch(batches: ShuffledDocuments, epoch: int) -> np.ndarray:
    return np.concatenate(batches.epoch_batches(epoch))


def test_documents_are_joined_by_separators_and_cut_into_consecutive_windows():
    windows = windows_of_epoch(shuffled(), 3)
    assert (windows[1:, 0] == windows[:-1, -1]).all()  # the last target of a window is the next one's first token
    text = " ".join(map(str, [windows[0, 0], *windows[:, 1:].ravel()]))
    before, *found, cut_off = (document.split() for document in text.split(str(SEPARATOR)))
    whole = [list(map(str, range(OFFSETS[document], OFFSETS[document + 1]))) for document in DOCUMENTS]
    assert before == []
    assert all(document in whole for document in found)
    assert any(document[: len(cut_off)] == cut_off for document in whole)
    assert found != whole[: len(found)]


@pytest.mark.parametrize("epoch", [0, 5])
def test_every_token_is_predicted_once_an_epoch_but_for_a_rest_that_makes_no_window(epoch):
    everything = joined(OFFSETS, DOCUMENTS, SEPARATOR)[1:]
    targets = windows_of_epoch(shuffled(), epoch)[:, 1:].ravel().tolist()
    assert len(everything) - len(targets) == len(everything) % CONTEXT
    of_documents = [place for place in targets if place != SEPARATOR]
    assert len(of_documents) == len(set(of_documents))
    assert set(targets) <= set(everything)


def test_the_order_of_documents_depends_on_the_seed_and_the_epoch_and_on_nothing_else():
    first = windows_of_epoch(shuffled(), 3)
    np.random.seed(0)
    windows_of_epoch(shuffled(), 2)
    assert np.array_equal(windows_of_epoch(shuffled(), 3), first)
    assert not np.array_equal(windows_of_epoch(shuffled(), 4), first)
    assert not np.array_equal(windows_of_epoch(shuffled(seed=12), 3), first)


@WORLD_SIZES
def test_processes_share_the_documents_and_take_as_many_windows_each(world_size):
    whole = shuffled(size=SIZE * world_size, start=2)
    shares = [shuffled(rank=rank, world_size=world_size, start=2) for rank in range(world_size)]
    assert {len(share) for share in shares} == {len(whole)}
    doubled = 0
    for batch, *parts in zip(taken(whole), *map(taken, shares), strict=True):
        assert len({len(part) for part in parts}) == 1
        together = list(map(tuple, chain(*parts)))
        assert set(map(tuple, batch)) <= set(together)
        doubled += len(together) - len(batch)
    assert 0 <= doubled < 2 * world_size  # two epochs end here


@given(lengths=st.lists(st.integers(0, 5), max_size=11), data=st.data())
def test_joined_documents_stand_one_after_the_other(lengths, data):
    offsets = np.cumsum([0, *lengths])
    documents = data.draw(st.lists(st.sampled_from(range(len(lengths))), unique=True) if lengths else st.just([]))
    separator = int(offsets[-1])
    places = join(offsets, np.array(documents, np.int64), separator)
    assert places.head().tolist() == joined(offsets, documents, separator)


# --- every window, for validation ---


@pytest.mark.parametrize("world_size", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 11, 12, 13, 22, 23, 24, 233, 1009])
@pytest.mark.parametrize("in_one_piece", [True, False])
def test_every_token_but_the_first_is_predicted_exactly_once(length, world_size, in_one_piece):
    positions = np.arange(length) + FIRST if in_one_piece else np.random.default_rng(3).permutation(length)
    stream = Stream(range(FIRST, FIRST + length) if in_one_piece else positions)
    shares = [EveryWindow(stream, CONTEXT, SIZE, rank=rank, world_size=world_size) for rank in range(world_size)]
    pairs = [pair for share in shares for batch in share for row in batch.tolist() for pair in pairwise(row)]
    assert sorted(pairs) == sorted(pairwise(positions.tolist()))
    assert all(len(share) == len(list(share)) for share in shares)
    counts = [sum(len(batch) for batch in share) for share in shares]
    assert max(counts) - min(counts) <= 1


# --- a stream ---


@pytest.mark.parametrize("positions", [range(3, 3), range(3, 16), np.array([5, 2, 3, 11, 7])], ids=str)
def test_a_stream_knows_where_its_tokens_stand(positions):
    stream = Stream(positions)
    places = list(positions)
    assert len(stream) == len(places)
    assert stream.head().tolist() == places
    for most in (0, 1, 3, 1009):
        assert stream.head(most).tolist() == places[:most]
    if places:
        assert stream[np.array([[0, 1], [4, 2]])].tolist() == [[places[0], places[1]], [places[4], places[2]]]


def test_a_stream_in_one_piece_is_never_spelled_out():
    stream = Stream(range(FIRST, FIRST + 10**15))
    assert stream[np.array([10**15 - 1])].tolist() == [FIRST + 10**15 - 1]
    assert stream.head(3).tolist() == [1000, 1001, 1002]
    windows = EveryWindow(Stream(range(10**9)), 10_007, SIZE)
    assert len(windows) == -(-99_930 // SIZE) + 1
    assert next(iter(windows)).shape == (SIZE, 10_008)
