import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstlight.text.ragged import RaggedIds


@pytest.fixture
def rows() -> RaggedIds:
    return RaggedIds.from_rows([[2, 3, 5], [], [7]])


def test_rows_come_back_as_they_were(rows):
    assert [row.tolist() for row in rows] == [[2, 3, 5], [], [7]]
    assert rows[-1].tolist() == [7]
    assert (len(rows), rows.lengths.tolist()) == (3, [3, 0, 1])
    assert (rows.ids.dtype, rows.offsets.dtype) == (np.int32, np.int64)
    assert np.shares_memory(rows[0], rows.ids)
    assert len(RaggedIds.from_rows([])) == 0
    with pytest.raises(IndexError):
        rows[3]


texts = st.lists(st.lists(st.integers(0, 996), max_size=5), max_size=7)


@given(texts=texts, choices=st.lists(st.integers(0, 10**6), max_size=9))
def test_selected_texts_are_those_of_the_given_rows_in_the_given_order(texts, choices):
    """Rows may be left out, reordered or repeated."""
    rows = [choice % len(texts) for choice in choices] if texts else []
    selected = RaggedIds.from_rows(texts).select(np.array(rows, dtype=np.int64))
    assert [row.tolist() for row in selected] == [texts[row] for row in rows]
    assert (selected.ids.dtype, selected.offsets.dtype) == (np.int32, np.int64)
    assert selected.offsets[-1] == len(selected.ids)


@given(first=texts, second=texts)
def test_texts_followed_by_others_are_all_of_them_in_order(first, second):
    both = RaggedIds.from_rows(first).followed_by(RaggedIds.from_rows(second))
    assert [row.tolist() for row in both] == first + second
    assert both.lengths.tolist() == [len(text) for text in first + second]
    assert (both.ids.dtype, both.offsets.dtype) == (np.int32, np.int64)
