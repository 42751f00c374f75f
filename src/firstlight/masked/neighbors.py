"""A model of a word between its neighbors, from counts, as a baseline for masked language models."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from firstlight.text.ragged import RaggedIds

HIDDEN = -1  # the id of a neighbor that is also masked
AT_ONCE = 256  # positions in a batch


@dataclass(frozen=True, eq=False)
class NeighborCounts:
    """Counts of the pairs of neighboring words in texts.

    The beginning and the end of a text also count as a word, with the id `vocab_size`.

    pairs: (vocab_size + 1, vocab_size + 1) counts of (word, next word).
    """

    pairs: csr_array

    @classmethod
    def of(cls, texts: RaggedIds, vocab_size: int) -> "NeighborCounts":
        """Return the counts of the pairs of words in texts."""
        ends = np.insert(
            texts.ids.astype(np.int64), texts.offsets, vocab_size
        )  # before each text, and after the last one
        ones = np.ones(len(ends) - 1, np.int64)
        pairs = csr_array((ones, (ends[:-1], ends[1:])), shape=(vocab_size + 1, vocab_size + 1))
        return cls(pairs)

    @property
    def size(self) -> int:
        """The number of different pairs."""
        return int(self.pairs.nnz)

    def probabilities(
        self, left: NDArray[np.int64], right: NDArray[np.int64], num_neighbors: int
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the probabilities of all words, (positions, vocab_size), in batches of AT_ONCE positions.

        Without neighbors, the probability is the frequency of the word. With one neighbor, it depends on the word to
        the left. With two neighbors, P(word | left, right) ∝ P(word | left) · P(right | word), as in a Markov chain.
        Each factor is interpolated with the frequency, weighted by the number of different words that follow (Witten
        & Bell 1991).

        left, right: (positions,) ids of the words on either side; `vocab_size` at an end of the text, HIDDEN if the
        neighbor is masked; num_neighbors: 0, 1 or 2.
        """
        following = np.asarray(self.pairs.sum(axis=0), np.float64).ravel()  # (vocab_size + 1,)
        totals = np.asarray(self.pairs.sum(axis=1), np.float64).ravel()
        types = np.diff(self.pairs.indptr).clip(min=1).astype(np.float64)  # 1 for a word that never occurs
        frequency = (following + 1) / (following + 1).sum()
        by_left, by_right = self.pairs, self.pairs.T.tocsr()
        for first in range(0, len(left), AT_ONCE):
            chosen = slice(first, first + AT_ONCE)
            shares = np.tile(frequency, (len(left[chosen]), 1))  # (places, vocab_size + 1)
            if num_neighbors:
                known, rows = left[chosen] != HIDDEN, left[chosen][left[chosen] != HIDDEN]
                shares[known] = (by_left[rows].toarray() + types[rows, None] * frequency) / (totals + types)[rows, None]
            if num_neighbors > 1:
                known, rows = right[chosen] != HIDDEN, right[chosen][right[chosen] != HIDDEN]
                counts = by_right[rows].toarray() + types * frequency[rows, None]
                shares[known] *= counts / (totals + types)
            words = shares[:, :-1]
            yield words / words.sum(axis=1, keepdims=True)
