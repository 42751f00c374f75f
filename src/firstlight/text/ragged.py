"""Rows of different lengths, stored in two arrays."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RaggedIds:
    """The token ids of many texts of different lengths, stored end to end.

    Args:
        ids: (total,) int, the ids of all texts.
        offsets: (num_texts + 1,) int64; text i is ids[offsets[i] : offsets[i + 1]].

    Example:
        >>> import numpy as np
        >>> from firstlight.text import RaggedIds
        >>> rows = RaggedIds.from_rows([[5, 3], [], [7]])
        >>> len(rows), rows.lengths
        (3, array([2, 0, 1]))
        >>> rows[0]
        array([5, 3], dtype=int32)
        >>> rows.select(np.array([2, 0])).ids
        array([7, 5, 3], dtype=int32)
        >>> rows.cut(1).ids
        array([5, 7], dtype=int32)
    """

    ids: NDArray[np.integer]
    offsets: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[int]]) -> Self:
        """Return the rows in two arrays. rows: rows of ids, which are read one at a time."""
        ids, offsets = array("i"), array("q", [0])
        for row in rows:
            ids.fromlist(list(row))
            offsets.append(len(ids))
        return cls(np.array(ids, dtype=np.int32), np.array(offsets, dtype=np.int64))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each text: (num_texts,)."""
        return np.diff(self.offsets)

    def select(self, rows: NDArray[np.int64]) -> Self:
        """Return some of the texts, in the order of `rows`, (n,) int."""
        return self._taken(self.offsets[rows], self.lengths[rows])

    def cut(self, most: int) -> Self:
        """Return the texts, each cut to its first `most` ids."""
        return self._taken(self.offsets[:-1], self.lengths.clip(max=most))

    def _taken(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Self:
        """Return texts that begin at some places and have some lengths, (n,) each."""
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return type(self)(self.ids[places], offsets)

    def followed_by(self, others: Self) -> Self:
        """Return these texts and then the others."""
        ids = np.concatenate((self.ids, others.ids))
        return type(self)(ids, np.concatenate((self.offsets, self.offsets[-1] + others.offsets[1:])))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.integer]:
        """Return the ids of one text as a view, (length,). Raises IndexError if the text does not exist."""
        index = range(len(self))[index]  # -1 is the last text
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


def window_starts(lengths: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of windows of each text, (texts,), and the first token of each window, (windows,).

    These are the fewest windows of `size` tokens that contain all tokens of a text. Their distances are equal. A text
    of at most `size` tokens is one window. lengths: (texts,) in tokens.
    """
    room = (lengths - size).clip(min=0)
    counts = 1 + -(-room // size)
    numbers = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    return counts, numbers * np.repeat(room, counts) // np.repeat((counts - 1).clip(min=1), counts)
