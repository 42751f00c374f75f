"""Pairs of texts that are fitted into the context of a network."""

import numpy as np

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
    rows = np.repeat(np.arange(len(ids)), ids.lengths)  # (tokens,), the row of each token
    is_delimiter = ids.ids == DELIMITER_ID
    assert (rows[is_delimiter] == np.arange(len(ids))).all(), "a row is not a pair"
    delimiters = np.flatnonzero(is_delimiter) - ids.offsets[:-1]  # (rows,)
    first, second = delimiters - 1, ids.lengths - delimiters - 2  # (rows,), the tokens of each text
    budget = context_length - NUM_MARKS
    keep_first = np.minimum(first, np.maximum(budget - second, (budget + 1) // 2))
    keep_second = np.minimum(second, budget - keep_first)
    places = np.arange(len(ids.ids)) - ids.offsets[rows]
    is_kept = np.ones(len(ids.ids), dtype=bool)
    for begins, lengths, kept in ((1, first, keep_first), (delimiters + 1, second, keep_second)):
        cuts = begins + truncation.tokens_of_head(kept)  # (rows,), the first token that is left out
        is_kept &= (places < cuts[rows]) | (places >= (cuts + lengths - kept)[rows])
    offsets = np.concatenate([[0], np.cumsum(keep_first + keep_second + NUM_MARKS)])
    return RaggedIds(places[is_kept], offsets)
