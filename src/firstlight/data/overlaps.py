"""Rows with the same text in several splits: their number, and their removal."""

import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from firstlight.errors import UserError
from firstlight.text.tokenizers import Text

NAMES = ("training", "validation", "test")  # the splits, by their index in SPLITS


def found(rows: Iterable[Text], splits: NDArray[np.int64], *, remove: bool) -> str:
    """Return a sentence with the number of rows in several splits and what to do, or "" if there are none.

    Rows are the same if they differ only in case, spaces or Unicode form, whatever their labels.

    rows: texts, or tuples of texts, all of which must be the same; splits: (rows,), indices into SPLITS; remove: remove
    the validation rows that are also test rows and the training rows that are also in one of both, in place. The test
    split never changes, and rows that occur several times in one split are kept. Raises UserError if no training row is
    left.
    """
    numbers = np.array([hash(_normal(row)) for row in rows], dtype=np.int64)  # of 64 bits: different rows differ
    parts, has_training = [], (splits == 0).any()
    for split, other in ((2, 1), (2, 0), (1, 0)):
        is_both = (splits == other) & np.isin(numbers, numbers[splits == split])
        if remove:
            splits[is_both] = -1  # in no split
        elif is_both.any():
            own = numbers[splits == split]
            count = np.isin(own, numbers[is_both]).sum()
            parts.append(f"{count:,} of {len(own):,} {NAMES[split]} rows are also {NAMES[other]} rows")
    if has_training and not (splits == 0).any():
        raise UserError(
            "data.deduplicate=true: every training row is also in the validation or test split; set it to false"
        )
    return "; ".join([*parts, "set data.deduplicate=true to remove them from the earlier split"] if parts else [])


def _normal(row: Text) -> str:
    text = row if isinstance(row, str) else "\0".join(row)
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())
