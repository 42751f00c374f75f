"""The mask token [MASK], which marks a word to fill in. It is not in the vocabulary; its id follows the others."""

from collections.abc import Iterable
from itertools import chain

from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import Tokenizer

MASK = "[MASK]"
LONGEST_QUOTE = 40  # characters of a text in a message


def mask_id_of(tokenizer: Tokenizer) -> int:
    """Return the id of [MASK], which is the size of the vocabulary."""
    return tokenizer.vocab_size


def encode_masked(tokenizer: Tokenizer, texts: Iterable[str]) -> RaggedIds:
    """Return the ids of texts that contain [MASK]. Raises UserError for a text without [MASK].

    Example:
        >>> from firstlight.text import train_word_tokenizer
        >>> from firstlight.masked.mask_token import encode_masked
        >>> tokenizer, _ = train_word_tokenizer(["a good film", "Good acting, bad film!"])
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
        raise UserError(
            f"the text {quoted!r} does not contain {MASK}; write {MASK} for each word to fill in, "
            f"as in 'It {MASK} after a week'"
        )
    mask_id = mask_id_of(tokenizer)
    return list(chain(tokenizer.encode(first), *([mask_id, *tokenizer.encode(part)] for part in others)))
