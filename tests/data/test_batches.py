from functools import partial
from itertools import chain, islice
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from firstlight.data.batches import (
    POOL_OF_BATCHES,
    EvaluationBatches,
    FinishedBatches,
    LengthBatches,
    RandomSpans,
    ResumableLoader,
    Rows,
    TrainingBatches,
    batches_per_epoch,
    batches_taken,
)

ROWS = np.arange(1000, 1103)  # 103 rows, whose numbers differ from their positions
LENGTHS = np.random.default_rng(5).integers(0, 61, size=len(ROWS))
SIZE = 7


def training(
    rows: np.ndarray = ROWS, *, start: int = 0, size: int = SIZE, seed: int = 11, **options
) -> TrainingBatches:
    batches = TrainingBatches(rows, size, seed, **options)
    batches.start = start
    return batches


def taken(batches: TrainingBatches) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


def by_tokens(
    rows: np.ndarray = ROWS,
    lengths: np.ndarray = LENGTHS,
    *,
    start: int = 0,
    tokens: int = 97,
    seed: int = 11,
    **options,
) -> LengthBatches:
    batches = LengthBatches(rows, lengths, tokens, seed, **options)
    batches.start = start
    return batches


def uninterrupted(passes: int, make=training, **options) -> list[list[int]]:
    batches = make(**options)
    return [batch.tolist() for epoch in range(passes) for batch in batches.epoch_batches(epoch)]


def padded_tokens(batch: list[int], lengths: np.ndarray = LENGTHS) -> int:
    """Return the number of tokens of a padded batch of ROWS: rows times the longest length."""
    return len(batch) * int(lengths[np.array(batch) - 1000].max())


bucketed = partial(training, lengths=LENGTHS)
MAKERS = pytest.mark.parametrize("make", [training, bucketed, by_tokens], ids=["shuffled", "bucketed", "tokens"])


# --- training ---


@MAKERS
def test_every_row_comes_once_a_pass_in_shuffled_batches(make):
    for epoch in range(3):
        assert sorted(chain(*make().epoch_batches(epoch))) == ROWS.tolist()
    batches = taken(make())
    assert len(batches) == len(make())
    assert batches != sorted(batches)
    if make is not by_tokens:
        assert sorted(map(len, batches)) == [103 % SIZE] + [SIZE] * (103 // SIZE)


@MAKERS
def test_the_order_depends_on_the_seed_and_the_pass_and_on_nothing_else(make):
    first = make().epoch_batches(3)
    np.random.seed(0)
    make().epoch_batches(2)
    assert all(map(np.array_equal, first, make().epoch_batches(3)))
    for other in (make().epoch_batches(4), make(seed=12).epoch_batches(3)):
        assert not all(map(np.array_equal, first, other))


@MAKERS
@pytest.mark.parametrize("start", [0, 1, 14, 15, 16, 35, 71])
def test_starting_in_the_middle_gives_the_batches_of_an_uninterrupted_training(make, start):
    assert taken(make(start=start)) == uninterrupted(6, make)[start : start + len(make())]


@pytest.mark.parametrize("world_size", [2, 3, 5])
@MAKERS
def test_processes_share_the_batches_of_one_process_with_as_many_times_the_batch_size(make, world_size):
    rows = ROWS[: 103 // world_size * world_size]
    given = {} if make is training else {"lengths": LENGTHS[: len(rows)]}
    if make is by_tokens:
        whole = uninterrupted(2, make, rows=rows, world_size=world_size, **given)[4:]
    else:
        whole = taken(training(rows, size=SIZE * world_size, start=4, **given))
    shares = [taken(make(rows, rank=rank, world_size=world_size, start=4, **given)) for rank in range(world_size)]
    for batch, *parts in zip(whole[: len(shares[0])], *shares, strict=True):
        assert sorted(chain(*parts)) == sorted(batch)  # each row exactly once
        assert len({len(part) for part in parts}) == 1


@pytest.mark.parametrize(("num_rows", "world_size"), [(103, 4), (7, 4), (2, 5), (1, 3)])
def test_processes_take_as_many_rows_each_even_where_a_row_must_come_twice_for_it(num_rows, world_size):
    rows = ROWS[:num_rows]
    shares = [taken(training(rows, rank=rank, world_size=world_size)) for rank in range(world_size)]
    assert len({tuple(map(len, share)) for share in shares}) == 1
    everything = [row for share in shares for batch in share for row in batch]
    assert set(everything) == set(rows.tolist())
    assert len(everything) - num_rows < world_size


def test_the_last_batches_are_of_other_rows_and_each_depends_on_its_number_only():
    last = np.arange(2000, 2011)

    def make(start=0, **share):
        batches = RandomSpans(FinishedBatches(training(**share), training(last, **share), first=20))
        batches.start = start
        return batches

    whole = [make().batch(number).tolist() for number in range(45)]
    rows = [{row for row, _ in batch} for batch in whole]
    assert set().union(*rows[:15]) == set(ROWS)
    assert set().union(*rows[15:20]) < set(ROWS)
    assert set().union(*rows[20:22]) == set(last)
    for start in (0, 13, 19, 20, 23):
        assert taken(make(start)) == whole[start : start + 15]
    draws = [dict(batch) for batch in whole[20:24]]
    assert all({**draws[0], **draws[1]}[row] != {**draws[2], **draws[3]}[row] for row in last)
    shares = [taken(make(16, rank=rank, world_size=2)) for rank in range(2)]
    together = [sorted(one + two) for one, two in zip(*shares, strict=True)]
    assert together == [sorted(make(world_size=2).batch(16 + i).tolist()) for i in range(8)]


# --- bucketing ---


def spread(batches: list[list[int]]) -> float:
    """Return the mean range of the lengths within a batch."""
    return float(np.mean([np.ptp(LENGTHS[np.array(batch) - 1000]) for batch in batches]))


@pytest.mark.parametrize("make", [bucketed, by_tokens], ids=["bucketed", "tokens"])
def test_a_batch_has_rows_of_like_length_and_comes_in_no_order_of_length(make):
    assert spread(taken(make())) < 7 < 40 < spread(taken(training()))
    longest = [max(LENGTHS[np.array(batch) - 1000]) for batch in taken(make())]
    assert sorted(longest) != longest != sorted(longest, reverse=True)


@pytest.mark.parametrize(("make", "count"), [(training, 4 * POOL_OF_BATCHES * SIZE), (by_tokens, 1009)])
def test_a_row_meets_other_rows_of_its_length_in_the_next_pass(make, count):
    batches = make(np.arange(count), lengths=np.full(count, 5))
    together = [{frozenset(batch.tolist()) for batch in batches.epoch_batches(epoch)} for epoch in range(2)]
    assert not together[0] & together[1]


# --- batches of equally many tokens ---


def test_a_batch_is_as_full_as_the_next_longer_row_allows():
    lengths = np.array([3, 3, 4, 5, 5, 6, 7, 9, 9])
    rows = np.arange(1000, 1009)
    batches = by_tokens(rows, lengths, tokens=15).epoch_batches(0)
    assert sorted(sorted(lengths[batch - 1000].tolist()) for batch in batches) == [[3, 3, 4], [5, 5], [6, 7], [9], [9]]
    (everything,) = by_tokens(rows, lengths, tokens=81).epoch_batches(0)
    assert sorted(everything) == rows.tolist()
    assert len(by_tokens(rows, lengths, tokens=80)) == 2


def test_rows_without_tokens_take_the_room_of_one():
    assert sorted(map(len, by_tokens(lengths=np.zeros(103, dtype=int), tokens=25))) == [3, 25, 25, 25, 25]


@given(
    lengths=st.lists(st.integers(0, 29), min_size=1, max_size=61),
    tokens=st.integers(1, 97),
    start=st.integers(0, 97),
    world_size=st.integers(1, 4),
)
def test_any_training_on_batches_of_tokens_keeps_its_promises(lengths, tokens, start, world_size):
    rows, array = ROWS[: len(lengths)], np.array(lengths)
    resumed = by_tokens(rows, array, tokens=tokens, start=start, world_size=world_size)
    epoch, position = divmod(start, len(resumed))
    whole = resumed.epoch_batches(epoch)
    assert len(whole) == len(resumed)
    assert set(np.concatenate(whole).tolist()) == set(rows.tolist())
    assert sum(map(len, whole)) - len(rows) < world_size  # as few rows as possible come twice
    for batch in whole:
        assert len(batch) % world_size == 0
        assert len(batch) == world_size or padded_tokens(batch.tolist(), array) <= tokens * world_size
    rest = [batch[::world_size].tolist() for batch in whole[position:]]
    assert list(map(np.ndarray.tolist, islice(resumed, len(rest)))) == rest


# --- evaluation ---


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["in order", "by length"])
@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_evaluation_takes_every_row_once_those_of_like_length_together(lengths, world_size):
    shares = [
        EvaluationBatches(ROWS, SIZE, lengths=lengths, rank=rank, world_size=world_size) for rank in range(world_size)
    ]
    batches = [batch.tolist() for share in shares for batch in share]
    assert sorted(chain(*batches)) == ROWS.tolist()
    assert all(len(share) == len(list(share)) for share in shares)
    if lengths is not None and world_size == 1:
        assert spread(batches) < 7


# --- the loader ---


def test_a_loader_reads_its_position_off_the_training_whenever_it_starts():
    trainer = SimpleNamespace(limit_train_batches=1.0, accumulate_grad_batches=1, overfit_batches=0)
    loader = ResumableLoader(Rows(np.arange(1200), 100), training(), trainer)
    expected = uninterrupted(4)
    for trainer.global_step in (0, 4, 21):
        assert [batch.rows.tolist() for batch in loader] == expected[trainer.global_step : trainer.global_step + 15]


def test_a_batch_of_rows_knows_its_longest_row_and_its_tokens():
    rows = Rows(np.array([3, 0, 7, 5]), 10)
    batch, empty = rows[np.array([0, 3])], rows[np.array([1])]
    assert torch.equal(batch.rows, torch.tensor([0, 3]))
    assert (batch.longest, batch.num_tokens) == (5, 8)
    assert (empty.longest, empty.num_tokens) == (1, 0)


# --- counting ---


@pytest.mark.parametrize(
    ("limit", "expected"), [(1.0, 103), (0.5, 51), (0.0, 0), (7, 7), (103, 103), (1009, 103), (0.019, 1)]
)
def test_an_epoch_may_be_limited_to_a_number_or_to_a_share_of_the_batches(limit, expected):
    assert batches_per_epoch(103, limit) == expected


@given(st.integers(1, 13), st.integers(1, 13), st.integers(0, 97))
def test_counting_batches_agrees_with_going_through_them(per_epoch, per_step, steps):
    batches = done = 0
    while done < steps:
        batches += 1
        in_epoch = (batches - 1) % per_epoch + 1
        done += in_epoch == per_epoch or in_epoch % per_step == 0
    assert batches_taken(steps, per_epoch, per_step) == batches
