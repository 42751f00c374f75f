"""The words that a masked language model predicts for each [MASK] of a text."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from firstlight.choices import member
from firstlight.data.options import Truncation
from firstlight.errors import UserError
from firstlight.masked.data import batch_to_fill_in
from firstlight.masked.masking import MASK
from firstlight.text.tokenizers import CONTINUATION, SPECIAL, Tokenizer


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
        >>> from firstlight.masked.filling import fill_in
        >>> from firstlight.masked.network import MaskedLanguageModel
        >>> from firstlight.masked.options import MaskedConfig
        >>> from firstlight.text import train_word_tokenizer
        >>> tokenizer, _ = train_word_tokenizer(["it broke after one week", "it works after one year"])
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
