import numpy as np
import pytest
import torch

from firstlight.data.batches import Rows
from firstlight.data.options import Truncation
from firstlight.data.row_options import LongTexts
from firstlight.data.tables import ReviewBatch, StreamTable, TokenTable, fits
from firstlight.data.windows import WindowBatch, Windows
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import PAD_ID

TEXTS = [[11, 12, 13], [], [21, 22, 23, 24, 25, 26, 27], [31]]
TARGETS = np.array([3, 1, 4, 2])


def look_up(*rows: int, context_length: int = 5, truncation: Truncation = Truncation.head, texts=TEXTS) -> ReviewBatch:
    ids = RaggedIds.from_rows(texts)
    targets = TARGETS if texts is TEXTS else np.zeros(len(texts), np.int64)
    table = TokenTable(ids, targets, context_length, truncation)
    return table(Rows(ids.lengths, context_length)[np.array(rows)])


def test_texts_are_padded_to_the_longest_of_their_batch():
    batch = look_up(3, 0)
    assert batch.token_ids.tolist() == [[31, PAD_ID, PAD_ID], [11, 12, 13]]
    assert batch.padding_mask.tolist() == [[True, False, False], [True, True, True]]
    empty = look_up(1, 0, texts=[[], []])
    assert empty.token_ids.tolist() == [[PAD_ID], [PAD_ID]]
    assert not empty.padding_mask.any()
    assert look_up(0, texts=[[5, PAD_ID, 6]]).padding_mask.all()  # [PAD] in a text of the user is not padding


@pytest.mark.parametrize(
    ("truncation", "context_length", "expected"),
    [
        (Truncation.head, 5, [21, 22, 23, 24, 25]),
        (Truncation.tail, 5, [23, 24, 25, 26, 27]),
        (Truncation.head_tail, 5, [21, 22, 23, 26, 27]),
        (Truncation.head_tail, 4, [21, 22, 26, 27]),
        (Truncation.head_tail, 1, [21]),
        (Truncation.tail, 7, [21, 22, 23, 24, 25, 26, 27]),
        (Truncation.head_tail, 11, [21, 22, 23, 24, 25, 26, 27]),
    ],
)
def test_a_long_text_is_cut_to_the_context(truncation, context_length, expected):
    batch = look_up(2, context_length=context_length, truncation=truncation)
    assert batch.token_ids.tolist() == [expected]
    assert batch.padding_mask.all()


def test_the_fewest_windows_contain_every_token_of_a_long_text_at_equal_distances():
    ids = RaggedIds.from_rows([*TEXTS, list(range(40, 53))])
    table = TokenTable(ids, np.array([*TARGETS, 5]), 5, Truncation.tail)
    batch = table(Rows(ids.lengths, 5, LongTexts.windows)[np.array([4, 0, 2])])
    expected = [list(range(start, start + 5)) for start in (40, 44, 48)]
    expected += [[11, 12, 13, PAD_ID, PAD_ID], [21, 22, 23, 24, 25], [23, 24, 25, 26, 27]]
    assert batch.token_ids.tolist() == expected
    assert (batch.rows.tolist(), batch.targets.tolist()) == ([4, 4, 4, 0, 2, 2], [5, 5, 5, 3, 4, 4])
    assert (batch.num_windows.tolist(), batch.num_tokens) == ([3, 1, 2], 28)


@pytest.mark.parametrize("truncation", Truncation)
def test_a_short_text_is_whole_beside_a_long_one(truncation):
    batch = look_up(0, 2, 1, truncation=truncation)
    assert batch.token_ids[0].tolist() == [11, 12, 13, PAD_ID, PAD_ID]
    assert batch.padding_mask.sum(dim=1).tolist() == [3, 5, 0]


def test_a_batch_has_the_targets_and_the_numbers_of_its_rows_and_counts_real_tokens():
    batch = look_up(2, 1, 0)
    assert batch.targets.tolist() == [4, 1, 3]
    assert batch.rows.tolist() == [2, 1, 0]
    assert batch.num_tokens == int(batch.padding_mask.sum()) == 8


def test_a_table_may_take_less_than_a_quarter_of_what_an_accelerator_has_free(monkeypatch):
    table = StreamTable(np.zeros(1009, np.uint8), None)  # one byte per token
    for free, expected in ((4 * 1009, False), (4 * 1009 + 4, True)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 1_000_003))
        assert fits(table, torch.device("cuda")) is expected
    assert fits(table, torch.device("cpu"))
    ids = RaggedIds.from_rows(TEXTS)
    assert not {**table.state_dict(), **TokenTable(ids, TARGETS, 5, Truncation.head).state_dict()}


# --- streams ---


def windows(*positions: list[int]) -> WindowBatch:
    return Windows()[np.array(positions)]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_the_targets_of_a_window_are_its_tokens_shifted_by_one(dtype):
    table = StreamTable(np.array([2, 3, 5, 7, 11, 13], dtype), None)
    batch = table(windows([0, 1, 2, 3], [2, 3, 4, 5]))
    assert batch.token_ids.tolist() == [[2, 3, 5], [5, 7, 11]]
    assert batch.targets.tolist() == [[3, 5, 7], [7, 11, 13]]
    assert (batch.token_ids.dtype, batch.targets.dtype) == (torch.int64, torch.int64)
    assert batch.num_tokens == 6


def test_a_separator_is_the_last_token_of_a_stream():
    table = StreamTable(np.array([2, 3, 5], np.uint8), 7)
    assert table.flat.tolist() == [2, 3, 5, 7]
    assert table.flat.dtype == torch.uint8
    assert table(windows([3, 0, 1])).token_ids.tolist() == [[7, 2]]
    ids = np.array([2, 3, 5], np.int32)
    assert np.shares_memory(StreamTable(ids, None).flat.numpy(), ids)  # without a separator, nothing is copied
