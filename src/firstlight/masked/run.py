"""Trained masked language models: what can be done with a run, and its figures' texts and tensors."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn

from firstlight.choices import member
from firstlight.data.options import Truncation
from firstlight.data.tables import count_cuts
from firstlight.errors import UserError
from firstlight.kind.attention import Attention, collect
from firstlight.kind.kind import Measurement
from firstlight.kind.run import SPLIT, PredictingRun, chunks, first_drawable
from firstlight.lit.metadata import Checks, one_of
from firstlight.masked.network import MaskedBatch, MaskedLanguageModel, batch_to_fill_in
from firstlight.masked.options import MaskedConfig
from firstlight.terminal_text import say, write_out
from firstlight.text.tokenizers import CONTINUATION, MASK, SPECIAL, Tokenizer

if TYPE_CHECKING:
    from firstlight.masked.data import MaskedReviewData

TEXTS_AT_ONCE = 256
LONGEST_TEXT = 12  # words of a text that is chosen automatically


class Filling(NamedTuple):
    """A word for a [MASK].

    Attributes:
        word: The word, or the piece of a word of a subword tokenizer.
        probability: Its probability among all words of the vocabulary without [PAD] and [UNK].
    """

    word: str
    probability: float


class FilledText(NamedTuple):
    """A text with the words that a masked language model predicts.

    Attributes:
        text: The text in which each [MASK] is replaced by its most probable word.
        fillings: The most probable words of each [MASK], in descending order of probability.
    """

    text: str
    fillings: list[list[Filling]]


@torch.inference_mode()
def fill_in(
    network: nn.Module,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    count: int = 5,
    truncation: Truncation | str = Truncation.head,
) -> list[FilledText]:
    """Return the most probable words for each [MASK] of some texts, which the network reads as one batch.

    The predictions for one [MASK] do not depend on those for another.

    Args:
        network: a `MaskedLanguageModel`, or a network with the same `forward`, in evaluation mode.
        tokenizer: the tokenizer that the network was trained with.
        texts: texts with one [MASK] or more.
        count: number of words for each [MASK], at least 1.
        truncation: the tokens to read of a text longer than the context.

    Returns:
        Each text with the most probable words, and the most probable words for each [MASK].

    Raises:
        UserError: if a text has no [MASK], if a [MASK] is cut off, or if `count` is below 1.

    Example:
        >>> from firstlight.masked.run import fill_in
        >>> from firstlight.masked.network import MaskedLanguageModel
        >>> from firstlight.masked.options import MaskedConfig
        >>> from firstlight.text import train_word_tokenizer
        >>> tokenizer = train_word_tokenizer(["it broke after one week", "it works after one year"])
        >>> network = MaskedLanguageModel(MaskedConfig(dim=8, num_heads=2), tokenizer.vocab_size)
        >>> (filled,) = fill_in(network.eval(), tokenizer, ["it [MASK] after one [MASK]"], count=3)
        >>> [len(fillings) for fillings in filled.fillings]
        [3, 3]
        >>> filled.text.split()[0], filled.fillings[1][0].word == filled.text.split()[-1]
        ('it', True)
    """
    if count < 1:
        raise UserError(f"count={count} must be at least 1")
    of_network: Any = network
    chosen = member(Truncation, truncation, "truncation")
    batch = batch_to_fill_in(tokenizer, texts, of_network.context_length, chosen)
    words, first = tokenizer.words, len(SPECIAL)  # [PAD] and [UNK] have the first ids
    shares = network(*batch.inputs)[:, first:].float().softmax(dim=1)  # (places, vocab_size - 2)
    best = shares.topk(min(count, len(words) - first), dim=1)
    rows = batch.places // batch.token_ids.shape[1]
    found: list[list[list[Filling]]] = [[] for _ in texts]
    for row, ids, values in zip(rows.tolist(), best.indices.tolist(), best.values.tolist(), strict=True):
        found[row].append([Filling(words[first + i], value) for i, value in zip(ids, values, strict=True)])
    return [
        FilledText(with_words(text, [each[0].word for each in fillings]), fillings)
        for text, fillings in zip(texts, found, strict=True)
    ]


def with_words(text: str, words: Sequence[str]) -> str:
    """Return a text with its masks replaced by words. A piece that continues a word is joined to the word before."""
    filled, *others = text.split(MASK)
    for word, following in zip(words, others, strict=True):
        if word.startswith(CONTINUATION):
            filled, word = filled.rstrip(), word.removeprefix(CONTINUATION)
        filled += word + following
    return filled


def listed(fillings: list[Filling]) -> str:
    """Return the words for one [MASK] and their probabilities as text."""
    return ", ".join(f"{filling.word} {filling.probability:.3f}" for filling in fillings)


class MaskedRun(PredictingRun):
    """Trained masked language model, which fills in the masked words of a text.

    It has the attributes of every run (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(token_ids, padding_mask)` accepts two (batch, length) tensors and returns logits (batch, length,
    vocabulary).

    Attributes:
        tokenizer: the tokenizer; `tokenizer.words` is the vocabulary. The id of [MASK] is the size of the vocabulary.

    >>> run = firstlight.load("latest")
    >>> run.fill_in("It [MASK] after a week").text
    """

    kind = "masked"
    config_type = MaskedConfig
    metadata_checks: ClassVar[Checks] = {"config.data.truncation": one_of(Truncation.__members__)}
    choice_note = "the text is from the validation split, with its longest word masked"

    network: MaskedLanguageModel
    tokenizer: Tokenizer

    def fill_in(self, text: str, count: int = 5) -> FilledText:
        """Return a text with the most probable word in place of each [MASK], and the `count` best words for each.

        A text that is longer than the context is cut as in training, with a warning. Raises UserError for a text
        without [MASK], and for a text with a [MASK] after the cut.

        >>> filled = run.fill_in("It [MASK] after a week", count=3)
        >>> [(filling.word, filling.probability) for filling in filled.fillings[0]]
        """
        return next(self.fill_in_many([text], count))

    def fill_in_many(self, texts: Iterable[str], count: int = 5) -> Iterator[FilledText]:
        """Yield the result of `fill_in` for each text, in order. A few hundred texts are read at a time.

        >>> [filled.text for filled in run.fill_in_many(["It [MASK].", "I [MASK] it."])]
        """
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            yield from fill_in(self.network, self.tokenizer, chunk, count, self.truncation)

    def batch(self, text: str) -> MaskedBatch:
        """Return a batch with one text, cut as in training, and with the positions of its masks.

        >>> batch = run.batch("It [MASK] after a week")
        >>> run.network(batch.token_ids, batch.padding_mask).shape
        """
        return batch_to_fill_in(self.tokenizer, [text], self.network.context_length, self.truncation)

    @property
    def truncation(self) -> Truncation:
        """Which part of a longer text fits the context: its head, its tail, or its first and last half.

        >>> run.truncation.name
        """
        return Truncation[self.config["data"]["truncation"]]

    # --- predict ---

    columns = ("filled", "fillings")

    def rows(self, texts: Iterable[str]) -> Iterator[list[Any]]:
        for filled in self.fill_in_many(texts):
            yield [filled.text, "; ".join(map(listed, filled.fillings))]

    def show(self, texts: list[str]) -> None:
        for text in texts:
            filled = self.fill_in(text)
            write_out(filled.text)
            for number, fillings in enumerate(filled.fillings, start=1):
                of_many = f" {number}" if len(filled.fillings) > 1 else ""
                say(f"  [MASK]{of_many}: {listed(fillings)}")

    # --- evaluate ---

    def measure(self, data: "MaskedReviewData", split: str) -> Measurement:
        from firstlight.callbacks.token_metrics import measure_tokens  # and Lightning

        rows = data.rows(split)  # their masked positions are those of the validation of the training
        if not len(rows):
            raise UserError(f"{data.source.where} has no {split} rows; choose another --split")
        size = {"rows": len(rows), "cut": count_cuts(data.encoded.ids.lengths[rows], data.options.context_length)}
        return Measurement(measure_tokens(self, data.evaluation_loader(rows)), size)

    # --- explore ---

    def some_text(self, data: "MaskedReviewData") -> str:
        rows = data.rows(SPLIT)
        row = rows[[first_drawable(data.encoded.ids.lengths[rows])]]
        (text,) = data.source.texts(data.options.text_columns, row.tolist())
        words = data.tokenizer.split(text)[:LONGEST_TEXT]
        longest = int(np.argmax([len(word) for word in words]))
        return " ".join([*words[:longest], MASK, *words[longest + 1 :]])

    def made_up_text(self) -> str:
        return f"It {MASK} after a week and nobody answered."

    def _attention(self, text: str) -> Attention:
        batch = self.batch(text)
        words = [*self.tokenizer.words, MASK]
        tokens = [words[token_id].replace(CONTINUATION, "·") for token_id in batch.token_ids[0].tolist()]
        return Attention(collect(self.network, (batch.token_ids, batch.padding_mask), tokens, tokens))
