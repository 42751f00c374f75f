"""Batches of texts with masked words, and the batch of texts to fill in, without a data module."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from firstlight.data.batches import Rows
from firstlight.data.options import Truncation
from firstlight.data.tables import TokenTable, count_cuts, fitted
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import MASK, Tokenizer

LONGEST_QUOTE = 40  # characters of a text in a message


class MaskedBatch(NamedTuple):
    """A batch of texts with masked words for a masked language model.

    Attributes:
        token_ids: Token ids, (batch, length), int. Shorter texts are padded with 0. The id of [MASK] is the size of the
            vocabulary.
        padding_mask: (batch, length), bool. True where a token is real.
        places: The places of the tokens to predict, (targets,), int, counted through all rows: row · length + column.
            At some of these places, token_ids has a random token or the true token instead of [MASK].
        targets: The true tokens at these places, (targets,), int.
        rows: The row number of each text in its data, (batch,), int.
        num_tokens: The number of real tokens in the batch.
        inputs: The inputs of a network: token_ids, padding_mask, places.
        num_targets: The number of targets.

    Example:
        >>> import torch
        >>> from firstlight.masked.batch import MaskedBatch
        >>> token_ids = torch.tensor([[5, 9, 7], [9, 0, 0]])  # a vocabulary of 9 words
        >>> places, targets = torch.tensor([1, 3]), torch.tensor([2, 4])
        >>> batch = MaskedBatch(token_ids, token_ids != 0, places, targets, torch.arange(2), num_tokens=4)
        >>> batch.token_ids.flatten()[batch.places], batch.num_targets
        (tensor([9, 9]), 2)
    """

    token_ids: Tensor
    padding_mask: Tensor
    places: Tensor
    targets: Tensor
    rows: Tensor
    num_tokens: int

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.token_ids, self.padding_mask, self.places

    @property
    def num_targets(self) -> int:
        return len(self.targets)


def batch_to_fill_in(
    tokenizer: Tokenizer, texts: Sequence[str], context_length: int, truncation: Truncation
) -> MaskedBatch:
    """Return a batch of texts with [MASK], cut as the training texts. Its places are those of [MASK].

    Its targets are all 0. Logs a warning if a text is cut. Raises UserError for a text without [MASK], and if a [MASK]
    is cut off.
    """
    ids = encode_masked(tokenizer, texts)
    count_cuts(ids.lengths, context_length)
    read = fitted(ids, tokenizer, context_length, truncation)
    table = TokenTable(read, np.zeros(len(ids), np.int64), context_length, truncation)
    batch = table(Rows(ids.lengths, context_length)[np.arange(len(ids))])
    is_mask = batch.token_ids == tokenizer.vocab_size
    for row, kept in enumerate(is_mask.sum(dim=1).tolist()):
        if kept < (ids[row] == tokenizer.vocab_size).sum():
            raise UserError(
                f"text {row + 1} has {len(ids[row])} tokens, but only context_length={context_length} of them are "
                f"read, and a {MASK} is cut off; shorten the text"
            )
    places = is_mask.flatten().nonzero().squeeze(1)
    token_ids, targets = batch.token_ids.long(), torch.zeros_like(places)
    return MaskedBatch(token_ids, batch.padding_mask, places, targets, batch.rows, batch.num_tokens)


def encode_masked(tokenizer: Tokenizer, texts: Iterable[str]) -> RaggedIds:
    """Return the ids of texts that contain [MASK], whose id is the size of the vocabulary.

    Raises UserError for a text without [MASK].

    Example:
        >>> from firstlight.text import train_word_tokenizer
        >>> from firstlight.masked.batch import encode_masked
        >>> tokenizer = train_word_tokenizer(["a good film", "Good acting, bad film!"])
        >>> tokenizer.words
        ['[PAD]', '[UNK]', 'film', 'good', 'acting', 'bad']
        >>> encode_masked(tokenizer, ["a good [MASK]!"]).ids
        array([3, 6], dtype=int32)
    """
    return RaggedIds.from_rows(_ids(tokenizer, text) for text in texts)


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of the masks and of the text between them."""
    first, *others = text.split(MASK)
    if not others:
        quoted = text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
        problem = f"the text {quoted!r} does not contain {MASK}"
        raise UserError(f"{problem}; write {MASK} for each word to fill in, as in 'It {MASK} after a week'")
    words = [*tokenizer.marks[:1], *tokenizer.split(first)]
    ids = tokenizer.encode_words(words).ids.tolist()
    for part in others:
        ids += [tokenizer.vocab_size, *tokenizer.encode_words(tokenizer.split(part)).ids.tolist()]
    return ids + tokenizer.encode_words(tokenizer.marks[1:]).ids.tolist()
