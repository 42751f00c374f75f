"""Masking of the tokens of a text, as a function of a seed, the pass and the row."""

from collections.abc import Iterable
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from firstlight.errors import UserError
from firstlight.masked.options import MaskedReviewOptions
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import MASK, SPECIAL, Tokenizer

LONGEST_QUOTE = 40  # characters of a text in a message


def encode_masked(tokenizer: Tokenizer, texts: Iterable[str]) -> RaggedIds:
    """Return the ids of texts that contain [MASK], whose id is the size of the vocabulary.

    Raises UserError for a text without [MASK].

    Example:
        >>> from firstlight.text import train_word_tokenizer
        >>> from firstlight.masked.masking import encode_masked
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
    return list(chain(tokenizer.encode(first), *([tokenizer.vocab_size, *tokenizer.encode(part)] for part in others)))


MASKED, RANDOM = 0.8, 0.1  # shares of the predicted tokens: replaced by [MASK], and by a random token
KEPT = -1  # instead of an id: the token is unchanged
FIRST_WORD_ID = len(SPECIAL)  # a random token is not [PAD] or [UNK]
PLACE, KIND, WORD = 1, 2, 3  # keys of the random numbers for each purpose

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def draw_masks(
    options: MaskedReviewOptions,
    vocab_size: int,
    rows: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    seed: int,
    epoch: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the tokens of some texts to predict (BERT, Devlin et al. 2018).

    A share of the tokens is chosen, at least one of each text. Most of them are replaced by [MASK], some by a random
    token, and the others are unchanged. The choice does not depend on the other texts of the batch.

    Args:
        options: the options with the shares.
        vocab_size: number of token ids without [MASK], whose id is `vocab_size`.
        rows: (batch,) the numbers of the texts.
        lengths: (batch,) their numbers of tokens.
        seed: the seed of the training.
        epoch: the number of the pass.

    Returns:
        The places, (places,) int64, row · length + column, ascending, in rows that are padded to the longest text, and
        the id to write at each place, (places,) int64: that of [MASK], of a random token, or KEPT.

    Example:
        >>> import numpy as np
        >>> from firstlight.masked.options import MaskedReviewOptions
        >>> from firstlight.masked.masking import draw_masks
        >>> options = MaskedReviewOptions(mask_fraction=0.4)
        >>> places, written = draw_masks(options, 7, np.array([11, 17]), np.array([5, 1]), seed=1, epoch=0)
        >>> places // 5, written
        (array([0, 0, 1]), array([-1,  7,  7]))
    """
    longest = max(int(lengths.max(initial=1)), 1)
    columns = np.arange(longest)
    scores = uniform(seed, epoch, PLACE, rows[:, None], columns)  # (batch, longest)
    scores[columns >= lengths[:, None]] = 2.0  # padding is chosen last
    counts = np.rint(options.mask_fraction * lengths).astype(np.int64).clip(1, lengths)
    highest = np.sort(scores, axis=1)[np.arange(len(rows)), counts - 1]
    chosen_rows, chosen_columns = np.nonzero((scores <= highest[:, None]) & (scores < 1))
    drawn = (rows[chosen_rows], chosen_columns)
    kinds = uniform(seed, epoch, KIND, *drawn)
    words = FIRST_WORD_ID + uniform(seed, epoch, WORD, *drawn) * (vocab_size - FIRST_WORD_ID)
    written = np.full(len(kinds), KEPT, np.int64)
    is_random = kinds < MASKED + RANDOM
    written[is_random] = words[is_random].astype(np.int64)
    written[kinds < MASKED] = vocab_size
    return chosen_rows * longest + chosen_columns, written


def uniform(*keys: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """Return numbers from 0 to below 1 that depend only on integer keys, in the shape to which the keys broadcast.

    The keys are mixed one after the other by the function of SplitMix64 (Steele, Lea & Flood 2014). NumPy would need a
    new generator for each row, which takes longer than a training step.
    """
    state = np.zeros(1, np.uint64)
    for key in keys:
        state = _mixed(state + GOLDEN + np.asarray(key).astype(np.uint64))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return mixed bits, each of which depends on every bit of the state. Products are modulo 2^64."""
    state = (state ^ (state >> SHIFTS[0])) * MULTIPLIERS[0]
    state = (state ^ (state >> SHIFTS[1])) * MULTIPLIERS[1]
    return state ^ (state >> SHIFTS[2])
