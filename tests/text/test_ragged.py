import numpy as np
import pytest

from firstlight.text.ragged import RaggedIds


@pytest.fixture
def rows() -> RaggedIds:
    return RaggedIds.from_rows([[2, 3, 5], [], [7]])


def test_rows_come_back_as_they_were(rows):
    assert [row.tolist() for row in rows] == [[2, 3, 5], [], [7]]
    assert rows[-1].tolist() == [7]


def test_length_and_lengths(rows):
    assert len(rows) == 3
    assert rows.lengths.tolist() == [3, 0, 1]


def test_ids_and_offsets_have_fixed_types(rows):
    assert (rows.ids.dtype, rows.offsets.dtype) == (np.int32, np.int64)


def test_a_row_is_a_view(rows):
    assert np.shares_memory(rows[0], rows.ids)


def test_a_row_too_far_is_an_index_error(rows):
    with pytest.raises(IndexError):
        rows[3]


def test_no_rows_are_possible():
    assert len(RaggedIds.from_rows([])) == 0
