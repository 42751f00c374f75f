"""The tokenizer for translation, which keeps capitals and punctuation and can decode its ids."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Self

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from firstlight.text.normalize import encodable
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.ragged import RaggedIds
from firstlight.text.text_tokenizers import BYTE_OF_SYMBOL, train_byte_pairs
from firstlight.text.tokenizers import PAD, PAD_ID, UNK, UNKNOWN_ID, most_frequent, tokens_of

BEGIN, END = "[BEGIN]", "[END]"
BEGIN_ID, END_ID = 2, 3
MARKS = [PAD, UNK, BEGIN, END]
MARK_IDS = (PAD_ID, UNKNOWN_ID, BEGIN_ID, END_ID)
SENTENCES = "sentences"  # the kind in a tokenizer's JSON
PRE_TOKENIZER = pre_tokenizers.ByteLevel(add_prefix_space=True)
SPACE = "Ġ"  # the symbol for a space in byte-level encoding; every word begins with it


class SentenceTokenizer:
    """A tokenizer for translation, of words or of byte-pair encoded pieces (byte-level, as in GPT-2).

    It keeps capitals and punctuation and can decode its ids. The ids 0 to 3 are [PAD], [UNK], [BEGIN] and [END], which
    no text contains. With whole words, a word outside the vocabulary is [UNK]; pieces can encode any text. Use `train`
    to make one.

    Args:
        backend: a tokenizer of the library `tokenizers` whose first ids are the four marks.

    Attributes:
        words: the tokens, in the order of their ids; a space before a word is written Ġ.
        vocab_size: number of token ids.

    Example:
        >>> from firstlight.text import SentenceTokenizer, TokenizerOptions
        >>> options = TokenizerOptions(kind="word", min_document_frequency=1)
        >>> tokenizer = SentenceTokenizer.train(["A dog runs.", "A cat runs."], options)
        >>> ids = tokenizer.encode_batch(["A dog runs."])[0].tolist()
        >>> tokenizer.readable(ids), tokenizer.decode(ids)
        (['A', 'dog', 'runs', '.'], 'A dog runs.')
    """

    unknown_id: int | None = UNKNOWN_ID
    unwritten: Sequence[int] = (PAD_ID, UNKNOWN_ID, BEGIN_ID)  # ids that a translation never contains

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.words = tokens_of(backend)
        assert self.words[: len(MARKS)] == MARKS, f"the first ids are {self.words[: len(MARKS)]}"

    @classmethod
    def train(cls, texts: Iterable[str], options: TokenizerOptions) -> Self:
        """Return a tokenizer trained on texts, with at most `options.max_size` tokens, the four marks included.

        texts: texts, which are read once; options: `kind` must be "word" or "subword". Raises UserError if no word
        remains.
        """
        assert options.kind in (TokenizerKind.word, TokenizerKind.subword), options.kind
        clean, is_word = map(tidy, texts), options.kind is TokenizerKind.word
        backend = Backend(_words(clean, options) if is_word else _pieces(clean, options))
        backend.pre_tokenizer, backend.decoder = PRE_TOKENIZER, decoders.ByteLevel()
        return cls(backend)

    @property
    def vocab_size(self) -> int:
        """The number of token ids."""
        return len(self.words)

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """Return the ids of many texts, without [BEGIN] and [END]."""
        encodings = self._backend.encode_batch_fast([tidy(text) for text in texts])
        return RaggedIds.from_rows(encoding.ids for encoding in encodings)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids. Marks are left out."""
        return str(self._backend.decode([token_id for token_id in ids if token_id >= len(MARKS)])).strip()

    def readable(self, ids: Iterable[int]) -> list[str]:
        """Return the token of each id without the space before it. Marks are returned by name, such as [END]."""
        return [self.words[i] if i < len(MARKS) else str(self._backend.decode([i])).strip() for i in ids]

    def plain_words(self) -> list[str]:
        """Return the tokens of all ids as they are spelled in files of word vectors."""
        return self.readable(range(self.vocab_size))

    def to_json(self) -> str:
        """Return the tokenizer as JSON, which `tokenizer_of_json` reads."""
        return json.dumps({"kind": SENTENCES, "backend": json.loads(self._backend.to_str())})


def tidy(text: str) -> str:
    """Return a text in NFC with single spaces, no spaces at its ends, and "?" for what UTF-8 cannot encode."""
    return encodable(unicodedata.normalize("NFC", " ".join(text.split())))


def _words(texts: Iterable[str], options: TokenizerOptions) -> models.Model:
    distinct = ({word for word, _ in PRE_TOKENIZER.pre_tokenize_str(text)} for text in texts)
    kept = most_frequent(Counter(chain.from_iterable(distinct)), options.min_document_frequency)
    kept = kept if options.max_size is None else kept[: max(options.max_size - len(MARKS), 1)]
    return models.WordLevel({word: i for i, word in enumerate([*MARKS, *kept])}, unk_token=UNK)


def _pieces(texts: Iterable[str], options: TokenizerOptions) -> models.Model:
    """Return trained byte-pair encoding. The marks are not special tokens, so texts never contain them."""
    assert options.max_size is not None
    size = max(options.max_size - len(MARKS), len(BYTE_OF_SYMBOL))
    backend = train_byte_pairs(texts, size, add_prefix_space=True)
    learned: dict[str, Any] = json.loads(backend.to_str())["model"]
    vocabulary = {mark: i for i, mark in enumerate(MARKS)}
    vocabulary |= {piece: i + len(MARKS) for piece, i in learned["vocab"].items()}
    return models.BPE(vocabulary, [(first, second) for first, second in learned["merges"]])
