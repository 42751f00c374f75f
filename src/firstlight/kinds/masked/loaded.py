"""A trained masked language model that fills in masked words, without its data set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstlight.data.masked_reviews import MaskedBatch, TextsToFillIn
from firstlight.data.options import Truncation
from firstlight.kinds.chunks import chunks
from firstlight.kinds.loaded import LoadedRun, OfAllRuns
from firstlight.lit.filling import FilledText, fill_in, fill_in_together
from firstlight.networks.masked import MaskedLanguageModel
from firstlight.text.tokenizers import Tokenizer

TEXTS_AT_ONCE = 256


@dataclass(frozen=True, repr=False, eq=False)
class LoadedMasked(LoadedRun):
    """A trained masked language model: fills in the masked words of a text.

    It has what every loaded run has (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(token_ids, padding_mask)` takes two (batch, length) tensors and returns logits (batch, length, vocabulary).

    Attributes:
        tokenizer: what turns a text into ids; `tokenizer.words` is the vocabulary. [MASK] has the id after the last.

    >>> run = firstlight.load("latest")
    >>> run.fill_in("It [MASK] after a week").text
    """

    kind: ClassVar[str] = "masked"

    network: MaskedLanguageModel
    tokenizer: Tokenizer

    def _facts(self) -> dict[str, str]:
        return {"vocabulary": f"{self.tokenizer.vocab_size:,} tokens, context length {self.network.context_length}"}

    def fill_in(self, text: str, count: int = 5) -> FilledText:
        """Return a text with the most probable word in place of each [MASK], and `count` words for each of them.

        A text that is longer than the context is cut as in training, with a warning. Raises UserError for a text
        without [MASK], or one of which a [MASK] is cut off.

        >>> filled = run.fill_in("It [MASK] after a week", count=3)
        >>> [(filling.word, filling.probability) for filling in filled.fillings[0]]
        """
        return fill_in(self.network, self.tokenizer, text, count, self.truncation)

    def fill_in_many(self, texts: Iterable[str], count: int = 5) -> Iterator[FilledText]:
        """Yield what `fill_in` returns for each of many texts, in their order; some hundred are read together.

        >>> [filled.text for filled in run.fill_in_many(["It [MASK].", "I [MASK] it."])]
        """
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            yield from fill_in_together(self.network, self.tokenizer, chunk, count, self.truncation)

    def batch(self, text: str) -> MaskedBatch:
        """Return a text as the network reads it: cut as in training, with the places of its masks.

        >>> batch = run.batch("It [MASK] after a week")
        >>> run.network(batch.token_ids, batch.padding_mask).shape
        """
        given = TextsToFillIn(self.tokenizer, [text], self.network.context_length, self.truncation)
        return given.look_up(given[np.zeros(1, np.int64)])

    @property
    def truncation(self) -> Truncation:
        """Which part of a text longer than the context is read: its head, its tail, or its first and last half.

        >>> run.truncation.name
        """
        return Truncation[self.config["data"]["truncation"]]


def from_card(of_all: OfAllRuns, card: dict[str, Any], tokenizer: Any, reader: Any) -> LoadedMasked:  # noqa: ARG001
    """Return the run of a checkpoint. card: of the checkpoint; reader: the tokenizer of what is read."""
    return LoadedMasked(*of_all, tokenizer)
