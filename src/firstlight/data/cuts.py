"""A counter of texts longer than the context, which evaluation and prediction cut with a warning."""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)


@dataclass
class Cuts:
    """Counter of the texts that are longer than the context.

    context_length: the number of tokens that a network reads; num_texts: all texts; num_cut: the longer texts.
    """

    context_length: int
    num_texts: int = 0
    num_cut: int = 0

    def count(self, lengths: NDArray[np.int64]) -> None:
        """Count some texts. lengths: (texts,), their numbers of tokens."""
        self.num_texts += len(lengths)
        self.num_cut += int((lengths > self.context_length).sum())

    def warn(self) -> None:
        """Log a warning if a text was cut."""
        if self.num_cut:
            verbs = ("is", "was") if self.num_cut == 1 else ("are", "were")
            log.warning(
                "%d of %d texts %s longer than the context of %d tokens and %s cut",
                *(self.num_cut, self.num_texts, verbs[0], self.context_length, verbs[1]),
            )
