"""Pairs of texts that are fitted into the context of a network."""

import numpy as np
from numpy.typing import NDArray

from firstlight.data.options import SHORTEST_PAIR, Truncation
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import DELIMITER_ID, PAIR_MARKS, Tokenizer

NUM_MARKS = len(PAIR_MARKS)  # [START] before the first text, [DELIMITER] between the texts, [EXTRACT] at the end


def fitted(ids: RaggedIds, tokenizer: Tokenizer, context_length: int, truncation: Truncation) -> RaggedIds:
    """Return encoded texts of which the pairs fit the context. Single texts are returned unchanged.

    Tokens are removed from the longer text of a pair until both fit. If both are longer than half of the context, each
    keeps a half, and the first one an odd token. truncation: the tokens of a text that are kept.
    """
    if not tokenizer.reads_pairs or not len(ids) or int(ids.lengths.max()) <= context_length:
        return ids
    places = kept_places(ids, context_length, truncation)
    starts = np.repeat(ids.offsets[:-1], places.lengths)
    return RaggedIds(ids.ids[starts + places.ids], places.offsets)


def kept_places(ids: RaggedIds, context_length: int, truncation: Truncation) -> RaggedIds:
    """Return the places, counted from 0 in each row, of the tokens of pairs that are kept in the context.

    ids: pairs, each as [START], the first text, [DELIMITER], the second text, [EXTRACT].
    """
    if context_length < SHORTEST_PAIR:
        raise UserError(f"context_length={context_length} is too short for pairs of texts; use {SHORTEST_PAIR} or more")
    rows = np.repeat(np.arange(len(ids)), ids.lengths)
    is_delimiter = ids.ids == DELIMITER_ID
    assert (rows[is_delimiter] == np.arange(len(ids))).all(), "a row is not a pair"
    delimiters = np.flatnonzero(is_delimiter) - ids.offsets[:-1]  # (rows,)
    first, second = delimiters - 1, ids.lengths - delimiters - 2  # (rows,), the tokens of each text
    budget = context_length - NUM_MARKS
    most_first = np.maximum(budget - second, (budget + 1) // 2)
    keep_first = np.minimum(first, most_first)
    keep_second = np.minimum(second, budget - keep_first)
    offsets = np.concatenate([[0], np.cumsum(keep_first + keep_second + NUM_MARKS)])
    lengths = np.diff(offsets)
    columns = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    # Columns 0 and 1 + keep_first have the marks before the texts. The last mark follows the second text.
    whole_first, whole_second, kept_first, kept_second = (
        np.repeat(each, lengths) for each in (first, second, keep_first, keep_second)
    )
    in_second = columns - kept_first - 2  # the place in the second text; negative in the first one
    skipped = np.where(
        in_second < 0,
        _skipped(columns - 1, whole_first, kept_first, truncation),
        whole_first - kept_first + _skipped(in_second, whole_second, kept_second, truncation),
    )
    return RaggedIds(columns + skipped, offsets)


def _skipped(
    place: NDArray[np.int64], length: NDArray[np.int64], kept: NDArray[np.int64], truncation: Truncation
) -> NDArray[np.int64]:
    """Return how many tokens of a text are left out before a place of its kept tokens. All arguments: (tokens,).

    Place -1 is the mark before the text, and place `kept` the mark after it.
    """
    match truncation:
        case Truncation.head:
            is_after = place >= kept
        case Truncation.tail:
            is_after = place >= 0
        case Truncation.head_tail:
            is_after = place >= (kept + 1) // 2
    return (length - kept) * is_after
