from itertools import chain, islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from firstlight.data.batches import (
    POOL_OF_BATCHES,
    EvaluationBatches,
    LengthBatches,
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


def uninterrupted(passes: int, **options) -> list[list[int]]:
    batches = training(**options)
    return [batch.tolist() for epoch in range(passes) for batch in batches.epoch_batches(epoch)]


ORDERS = pytest.mark.parametrize("options", [{}, {"lengths": LENGTHS}], ids=["shuffled", "bucketed"])


# --- training ---


@ORDERS
def test_every_row_comes_once_a_pass(options):
    batches = taken(training(**options))
    assert sorted(chain(*batches)) == ROWS.tolist()
    assert sorted(map(len, batches)) == [103 % SIZE] + [SIZE] * (103 // SIZE)
    assert len(batches) == len(training(**options)) == 15


@ORDERS
def test_the_order_depends_on_the_seed_and_the_pass_and_on_nothing_else(options):
    first = training(**options).epoch_batches(3)
    np.random.seed(0)
    training(**options).epoch_batches(2)
    again = training(**options).epoch_batches(3)
    assert all(map(np.array_equal, first, again))
    for other in (training(**options).epoch_batches(4), training(seed=12, **options).epoch_batches(3)):
        assert not all(map(np.array_equal, first, other))


def test_the_rows_are_shuffled():
    batches = taken(training())
    assert all(batch != sorted(batch) for batch in batches)


@ORDERS
@pytest.mark.parametrize("start", [0, 1, 6, 14, 15, 16, 29, 41])
def test_starting_in_the_middle_gives_the_batches_of_an_uninterrupted_training(options, start):
    assert taken(training(start=start, **options)) == uninterrupted(5, **options)[start : start + 15]


def test_a_start_is_used_once():
    batches = training(start=6)
    list(batches)
    assert taken(batches) == uninterrupted(1)


@pytest.mark.parametrize("world_size", [2, 3, 5])
@ORDERS
def test_processes_share_the_batches_of_one_process_with_as_many_times_the_batch_size(options, world_size):
    rows = ROWS[: 103 // world_size * world_size]
    options = {name: lengths[: len(rows)] for name, lengths in options.items()}
    whole = taken(training(rows, size=SIZE * world_size, start=4, **options))
    shares = [taken(training(rows, rank=rank, world_size=world_size, start=4, **options)) for rank in range(world_size)]
    for batch, *parts in zip(whole, *shares, strict=True):
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


@given(num_rows=st.integers(1, 61), size=st.integers(1, 13), start=st.integers(0, 97), bucketed=st.booleans())
def test_any_training_can_be_taken_up_anywhere(num_rows, size, start, bucketed):
    rows, lengths = ROWS[:num_rows], LENGTHS[:num_rows] if bucketed else None
    resumed = training(rows, size=size, start=start, lengths=lengths)
    epoch, position = divmod(start, len(resumed))
    rest = [batch.tolist() for batch in resumed.epoch_batches(epoch)[position:]]
    assert list(map(np.ndarray.tolist, islice(resumed, len(rest)))) == rest


# --- bucketing and balancing ---


def spread(batches: list[list[int]]) -> float:
    """Return the mean range of the lengths within a batch."""
    return float(np.mean([np.ptp(LENGTHS[np.array(batch) - 1000]) for batch in batches]))


def test_a_bucketed_batch_has_rows_of_like_length():
    assert spread(taken(training(lengths=LENGTHS))) < 7 < 40 < spread(taken(training()))


def test_bucketed_batches_are_not_in_the_order_of_length():
    longest = [max(LENGTHS[np.array(batch) - 1000]) for batch in taken(training(lengths=LENGTHS))]
    assert longest != sorted(longest)


def test_a_bucketed_row_meets_other_rows_in_the_next_pass():
    lengths = np.full(4 * POOL_OF_BATCHES * SIZE, 5)
    batches = training(np.arange(len(lengths)), lengths=lengths)
    together = [{frozenset(batch.tolist()) for batch in batches.epoch_batches(epoch)} for epoch in range(2)]
    assert not together[0] & together[1]


def test_sampling_by_weight_balances_classes():
    is_rare = np.arange(len(ROWS)) < 7
    batches = training(weights=np.where(is_rare, 1 / 7, 1 / 96))
    drawn = np.concatenate([batch for epoch in range(101) for batch in batches.epoch_batches(epoch)])
    assert np.mean(drawn < 1007) == pytest.approx(0.5, abs=0.02)
    assert set(drawn.tolist()) == set(ROWS.tolist())


def test_a_pass_of_weighted_sampling_is_as_long_as_any_other_and_can_be_taken_up():
    weights = np.arange(1, 104, dtype=float)
    assert sum(map(len, taken(training(weights=weights)))) == 103
    assert taken(training(weights=weights, start=8)) == uninterrupted(2, weights=weights)[8:23]


# --- batches of equally many tokens ---

TOKENS = 97


def by_tokens(
    rows: np.ndarray = ROWS,
    lengths: np.ndarray = LENGTHS,
    *,
    start: int = 0,
    tokens: int = TOKENS,
    seed: int = 11,
    rank: int = 0,
    world_size: int = 1,
) -> LengthBatches:
    batches = LengthBatches(rows, lengths, tokens, seed, rank=rank, world_size=world_size)
    batches.start = start
    return batches


def padded_tokens(batch: list[int], lengths: np.ndarray = LENGTHS) -> int:
    """Return the number of tokens of a padded batch of ROWS: rows times the longest length."""
    return len(batch) * int(lengths[np.array(batch) - 1000].max())


def passes(count: int, **options) -> list[list[int]]:
    return [batch.tolist() for epoch in range(count) for batch in by_tokens(**options).epoch_batches(epoch)]


def test_every_row_comes_once_a_pass_of_batches_of_tokens():
    assert len(by_tokens()) == len(taken(by_tokens())) > 20
    for epoch in range(3):
        assert sorted(chain(*by_tokens().epoch_batches(epoch))) == ROWS.tolist()
    assert sorted(chain(*taken(by_tokens()))) == ROWS.tolist()


def test_no_batch_has_more_tokens_than_asked_padding_included():
    assert max(map(padded_tokens, passes(5))) <= TOKENS


def test_a_batch_is_as_full_as_the_next_longer_row_allows():
    lengths = np.array([3, 3, 4, 5, 5, 6, 7, 9, 9])
    rows = np.arange(1000, 1009)
    batches = by_tokens(rows, lengths, tokens=15).epoch_batches(0)
    assert sorted(sorted(lengths[batch - 1000].tolist()) for batch in batches) == [[3, 3, 4], [5, 5], [6, 7], [9], [9]]
    (everything,) = by_tokens(rows, lengths, tokens=81).epoch_batches(0)
    assert sorted(everything) == rows.tolist()
    assert len(by_tokens(rows, lengths, tokens=80)) == 2


def test_a_row_longer_than_a_batch_may_be_stands_alone():
    lengths = np.where(np.arange(103) % 13 == 5, TOKENS + 7 + np.arange(103), LENGTHS)
    for batch in by_tokens(lengths=lengths).epoch_batches(3):
        assert len(batch) == 1 or padded_tokens(batch.tolist(), lengths) <= TOKENS
    alone = {int(batch[0]) for batch in by_tokens(lengths=lengths).epoch_batches(3) if len(batch) == 1}
    assert alone >= {1000 + row for row in range(103) if row % 13 == 5}
    assert all(len(batch) == 1 for batch in by_tokens(lengths=lengths.clip(min=1), tokens=1))


def test_rows_without_tokens_take_the_room_of_one():
    assert sorted(map(len, by_tokens(lengths=np.zeros(103, dtype=int), tokens=25))) == [3, 25, 25, 25, 25]


def test_every_pass_has_as_many_batches_of_the_same_lengths():
    assert len({len(by_tokens().epoch_batches(epoch)) for epoch in range(7)}) == 1
    sizes = [sorted(map(padded_tokens, map(np.ndarray.tolist, by_tokens().epoch_batches(epoch)))) for epoch in range(3)]
    assert sizes[0] == sizes[1] == sizes[2]
    assert len(by_tokens(seed=12)) == len(by_tokens())


def test_batches_of_tokens_depend_on_the_seed_and_the_pass_and_on_nothing_else():
    first = by_tokens().epoch_batches(3)
    np.random.seed(0)
    by_tokens().epoch_batches(2)
    again = by_tokens().epoch_batches(3)
    assert all(map(np.array_equal, first, again))
    for other in (by_tokens().epoch_batches(4), by_tokens(seed=12).epoch_batches(3)):
        assert not all(map(np.array_equal, first, other))


@pytest.mark.parametrize("start", [0, 1, 6, 33, 34, 35, 36, 71, 101])
def test_starting_in_the_middle_gives_the_batches_of_tokens_of_an_uninterrupted_training(start):
    per_pass = len(by_tokens())
    assert taken(by_tokens(start=start)) == passes(6)[start : start + per_pass]


def test_batches_of_tokens_come_in_no_order_of_length():
    longest = [max(LENGTHS[np.array(batch) - 1000]) for batch in taken(by_tokens())]
    assert sorted(longest) != longest != sorted(longest, reverse=True)
    firsts = {max(LENGTHS[by_tokens().epoch_batches(epoch)[0] - 1000]) for epoch in range(7)}
    assert len(firsts) > 3


def test_a_batch_of_tokens_has_rows_of_like_length():
    assert spread(taken(by_tokens())) < 7 < 40 < spread(taken(training()))


def test_a_row_meets_other_rows_of_its_length_in_the_next_pass():
    rows = np.arange(1009)
    batches = by_tokens(rows, np.full(1009, 5), tokens=35)
    together = [{frozenset(batch.tolist()) for batch in batches.epoch_batches(epoch)} for epoch in range(2)]
    assert len(together[0]) == 145
    assert not together[0] & together[1]


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_processes_share_batches_of_as_many_times_the_tokens(world_size):
    rows = ROWS[: 103 // world_size * world_size]
    lengths = LENGTHS[: len(rows)]
    whole = passes(2, rows=rows, lengths=lengths, world_size=world_size)[4:]
    shares = [taken(by_tokens(rows, lengths, rank=rank, world_size=world_size, start=4)) for rank in range(world_size)]
    assert len({len(share) for share in shares}) == 1
    for batch, *parts in zip(whole[: len(shares[0])], *shares, strict=True):
        assert sorted(chain(*parts)) == sorted(batch)  # each row exactly once
        assert len({len(part) for part in parts}) == 1
    assert max(len(batch) for batch in whole) > TOKENS // 61 * world_size


@pytest.mark.parametrize(("num_rows", "world_size"), [(103, 2), (103, 4), (101, 7), (7, 4), (2, 5), (1, 3)])
def test_processes_take_as_many_rows_each_within_their_tokens_even_where_a_row_must_come_twice(num_rows, world_size):
    rows, lengths = ROWS[:num_rows], np.sort(LENGTHS[:num_rows] % 7 + 1)[::-1]
    for epoch in range(11):
        whole = by_tokens(rows, lengths, tokens=14, world_size=world_size).epoch_batches(epoch)
        assert all(len(batch) % world_size == 0 for batch in whole)
        assert set(np.concatenate(whole).tolist()) == set(rows.tolist())
        assert sum(map(len, whole)) - num_rows < world_size
        for batch in whole:
            for rank in range(world_size):
                assert padded_tokens(batch[rank::world_size].tolist(), lengths) <= 14


def test_the_row_that_comes_twice_for_the_processes_makes_no_batch_too_large():
    """The repeated row is the longest one, since a longer row than expected would overfill the next batch."""
    batches = by_tokens(ROWS[:5], np.array([2, 2, 1, 1, 1]), tokens=2, world_size=2)
    for epoch in range(23):
        for batch in batches.epoch_batches(epoch):
            assert padded_tokens(batch.tolist(), np.array([2, 2, 1, 1, 1])) <= 4


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
    for batch in whole:
        assert len(batch) % world_size == 0
        assert len(batch) == world_size or padded_tokens(batch.tolist(), array) <= tokens * world_size
    rest = [batch[::world_size].tolist() for batch in whole[position:]]
    assert list(map(np.ndarray.tolist, islice(resumed, len(rest)))) == rest


# --- evaluation ---


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["in order", "by length"])
@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_evaluation_takes_every_row_once(lengths, world_size):
    shares = [
        EvaluationBatches(ROWS, SIZE, lengths=lengths, rank=rank, world_size=world_size) for rank in range(world_size)
    ]
    rows = [row for share in shares for batch in share for row in batch.tolist()]
    assert sorted(rows) == ROWS.tolist()
    assert all(len(share) == len(list(share)) for share in shares)


def test_evaluation_takes_rows_of_like_length_together():
    by_length = [batch.tolist() for batch in EvaluationBatches(ROWS, SIZE, lengths=LENGTHS)]
    assert spread(by_length) < 7


def test_nothing_to_evaluate_is_no_batch():
    assert list(EvaluationBatches(ROWS[:0], SIZE, lengths=LENGTHS[:0])) == []


# --- the loader ---


def test_a_loader_reads_its_position_off_the_training_whenever_it_starts():
    position = 0
    lengths = np.arange(1200)
    loader = ResumableLoader(Rows(lengths), training(), lambda: position)
    expected = uninterrupted(4)
    for position in (0, 4, 21):  # the loader calls it
        assert [batch.rows.tolist() for batch in loader] == expected[position : position + 15]


def test_a_loader_keeps_no_position_of_its_own():
    loader = ResumableLoader(Rows(np.arange(1200)), training(), lambda: 0)
    assert loader.state_dict() == {"position": "global_step"}
    loader.load_state_dict({"position": "elsewhere"})
    assert [batch.rows.tolist() for batch in loader] == uninterrupted(1)


def test_a_batch_of_rows_knows_its_longest_row_and_its_tokens():
    batch = Rows(np.array([3, 0, 7, 5]))[np.array([0, 3])]
    assert torch.equal(batch.rows, torch.tensor([0, 3]))
    assert (batch.longest, batch.num_tokens) == (5, 8)


def test_a_batch_of_empty_rows_is_one_token_long():
    batch = Rows(np.array([0, 0, 7]))[np.array([0, 1])]
    assert (batch.longest, batch.num_tokens) == (1, 0)


# --- counting ---


@pytest.mark.parametrize(
    ("limit", "expected"), [(1.0, 103), (0.5, 51), (0.0, 0), (7, 7), (103, 103), (1009, 103), (0.019, 1)]
)
def test_an_epoch_may_be_limited_to_a_number_or_to_a_share_of_the_batches(limit, expected):
    assert batches_per_epoch(103, limit) == expected


@pytest.mark.parametrize(
    ("steps", "per_epoch", "per_step", "expected"),
    [
        (0, 7, 1, 0),
        (5, 7, 1, 5),
        (7, 7, 1, 7),
        (17, 7, 1, 17),
        (2, 7, 3, 6),
        (3, 7, 3, 7),  # the last step of an epoch has the one remaining batch
        (4, 7, 3, 10),
        (6, 7, 3, 14),
        (2, 7, 11, 14),  # every step is an epoch
        (5, 6, 3, 15),  # the number of batches is divisible
    ],
)
def test_batches_taken_are_counted_from_the_steps(steps, per_epoch, per_step, expected):
    assert batches_taken(steps, per_epoch, per_step) == expected


@given(st.integers(1, 13), st.integers(1, 13), st.integers(0, 97))
def test_counting_batches_agrees_with_going_through_them(per_epoch, per_step, steps):
    batches = done = 0
    while done < steps:
        batches += 1
        in_epoch = (batches - 1) % per_epoch + 1
        done += in_epoch == per_epoch or in_epoch % per_step == 0
    assert batches_taken(steps, per_epoch, per_step) == batches
