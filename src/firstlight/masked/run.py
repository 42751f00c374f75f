"""Trained masked language models that fill in masked words without their data set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstlight.data.options import Truncation
from firstlight.kind.chunks import chunks
from firstlight.kind.loaded import LoadedRun, OfAllRuns
from firstlight.kind.predictor import Predictor
from firstlight.masked.data import MaskedBatch, TextsToFillIn
from firstlight.masked.filling import FilledText, Filling, fill_in, fill_in_together
from firstlight.masked.network import MaskedLanguageModel
from firstlight.terminal_text import say, write_out
from firstlight.text.tokenizers import Tokenizer

TEXTS_AT_ONCE = 256


@dataclass(frozen=True, repr=False, eq=False)
class LoadedMasked(LoadedRun):
    """Trained masked language model, which fills in the masked words of a text.

    It has the attributes of every loaded run (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(token_ids, padding_mask)` accepts two (batch, length) tensors and returns logits (batch, length,
    vocabulary).

    Attributes:
        tokenizer: the tokenizer; `tokenizer.words` is the vocabulary. The id of [MASK] is the size of the vocabulary.

    >>> run = firstlight.load("latest")
    >>> run.fill_in("It [MASK] after a week").text
    """

    kind: ClassVar[str] = "masked"

    network: MaskedLanguageModel
    tokenizer: Tokenizer

    def _facts(self) -> dict[str, str]:
        return {"vocabulary": f"{self.tokenizer.vocab_size:,} tokens, context length {self.network.context_length}"}

    def fill_in(self, text: str, count: int = 5) -> FilledText:
        """Return a text with the most probable word in place of each [MASK], and the `count` best words for each.

        A text that is longer than the context is cut as in training, with a warning. Raises UserError for a text
        without [MASK], and for a text with a [MASK] after the cut.

        >>> filled = run.fill_in("It [MASK] after a week", count=3)
        >>> [(filling.word, filling.probability) for filling in filled.fillings[0]]
        """
        return fill_in(self.network, self.tokenizer, text, count, self.truncation)

    def fill_in_many(self, texts: Iterable[str], count: int = 5) -> Iterator[FilledText]:
        """Yield the result of `fill_in` for each text, in order. A few hundred texts are read at a time.

        >>> [filled.text for filled in run.fill_in_many(["It [MASK].", "I [MASK] it."])]
        """
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            yield from fill_in_together(self.network, self.tokenizer, chunk, count, self.truncation)

    def batch(self, text: str) -> MaskedBatch:
        """Return a batch with one text, cut as in training, and with the positions of its masks.

        >>> batch = run.batch("It [MASK] after a week")
        >>> run.network(batch.token_ids, batch.padding_mask).shape
        """
        given = TextsToFillIn(self.tokenizer, [text], self.network.context_length, self.truncation)
        return given.look_up(given[np.zeros(1, np.int64)])

    @property
    def truncation(self) -> Truncation:
        """Which part of a longer text fits the context: its head, its tail, or its first and last half.

        >>> run.truncation.name
        """
        return Truncation[self.config["data"]["truncation"]]


def from_card(of_all: OfAllRuns, card: dict[str, Any], tokenizer: Any, reader: Any) -> LoadedMasked:  # noqa: ARG001
    """Return the run of a checkpoint. card: the card of the checkpoint; reader: the tokenizer of the inputs."""
    return LoadedMasked(*of_all, tokenizer)


class FillingPredictor(Predictor):
    """Predictor of the masked words of each text, with the candidates and their probabilities."""

    run: LoadedMasked

    def show(self, texts: list[str]) -> None:
        for text in texts:
            filled = self.run.fill_in(text)
            write_out(filled.text)
            for number, fillings in enumerate(filled.fillings, start=1):
                of_many = f" {number}" if len(filled.fillings) > 1 else ""
                say(f"  [MASK]{of_many}: {listed(fillings)}")

    @property
    def columns(self) -> list[str]:
        return ["filled", "fillings"]

    def rows(self, texts: Iterable[str]) -> Iterator[list[Any]]:
        for filled in self.run.fill_in_many(texts):
            yield [filled.text, "; ".join(map(listed, filled.fillings))]


def listed(fillings: list[Filling]) -> str:
    """Return the words for one [MASK] and their probabilities as text."""
    return ", ".join(f"{filling.word} {filling.probability:.3f}" for filling in fillings)
