"""Tokenizers for generators. Those of characters, byte pairs and words of a text keep every character."""

import codecs
import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from firstlight.errors import UserError
from firstlight.text.normalize import encodable
from firstlight.text.options import NUM_BYTES
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import TextTokenizer, Tokenizer, tokens_of

READABLE = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥"})
CHARACTERS, BYTE_PAIRS, TEXT_WORDS = "characters", "byte_pairs", "text_words"  # the kind in a tokenizer's JSON
LONGEST_WORD = 50  # letters; a longer word is several tokens
TEXT_PATTERN = (  # a word or up to three equal marks, with the space before it; one or two new lines; other white space
    rf" ?[\p{{L}}\p{{M}}\p{{N}}_]{{1,{LONGEST_WORD}}}| ?([^\p{{L}}\p{{M}}\p{{N}}_\s])\1{{0,2}}|\n{{1,2}}|\s"
)
MOST_WORDS = 2**31 - 1  # of a vocabulary without a limit
NOT_IN_VOCABULARY = -1


# A decoder of the pieces of tokens, one at a time. It keeps the bytes of an incomplete character until it is complete.
PieceDecoder = partial(codecs.getincrementaldecoder("utf-8"), "replace")


class CharacterTokenizer(TextTokenizer):
    """A tokenizer with one id for each character, in the order of their code points (post 2: Shakespeare, 2024).

    If there is an unknown symbol, its id is 0. Use `train` to collect the characters of texts.

    Args:
        characters: the characters of the vocabulary.
        unknown_symbol: the character that replaces all others; None: a character outside the vocabulary is an error.

    Attributes:
        words: the characters, in the order of their ids.
        vocab_size: number of token ids.
        unknown_id: 0, or None without an unknown symbol.

    Example:
        >>> from firstlight.text import CharacterTokenizer, decode
        >>> tokenizer = CharacterTokenizer.train(["to be"], unknown_symbol="Ø")
        >>> tokenizer.words
        ['Ø', ' ', 'b', 'e', 'o', 't']
        >>> tokenizer.encode("tab")
        array([5, 0, 2], dtype=int32)
        >>> decode(tokenizer, [5, 0, 2])
        'tØb'
    """

    def __init__(self, characters: str, unknown_symbol: str | None) -> None:
        self.characters, self.unknown_symbol = characters, unknown_symbol
        self.words = ([] if unknown_symbol is None else [unknown_symbol]) + list(characters)
        self.pieces = [encodable(word).encode() for word in self.words]
        self.unknown_id = None if unknown_symbol is None else 0
        self.unwritten = [] if unknown_symbol is None else [0]
        codes = [ord(character) for character in characters]
        missing = NOT_IN_VOCABULARY if self.unknown_id is None else self.unknown_id
        size = max(codes, default=0) + 2  # the last entry is for all higher codes
        self._id_of_code = np.full(size, missing, dtype=np.int32)
        self._id_of_code[codes] = np.arange(len(codes)) + len(self.words) - len(codes)

    @classmethod
    def train(cls, texts: Iterable[str], unknown_symbol: str | None) -> Self:
        """Return a tokenizer of all characters of some texts, which are read once."""
        found: set[str] = set()
        for text in texts:
            found.update(text)
        return cls("".join(sorted(found - {unknown_symbol})), unknown_symbol)

    def encode(self, text: str) -> NDArray[np.int32]:
        """Return the id of each character: (characters,) int32.

        Raises UserError for a character outside the vocabulary if the tokenizer has no unknown symbol.
        """
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        ids = self._id_of_code[np.minimum(codes, len(self._id_of_code) - 1)]
        if self.unknown_id is None and (ids == NOT_IN_VOCABULARY).any():
            strange = text[int((ids == NOT_IN_VOCABULARY).argmax())]
            problem = f"the character {strange!r} is not in the vocabulary, which has no unknown symbol"
            raise UserError(f"{problem}; remove it")
        return ids

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """Return the ids of many texts, one for each character."""
        texts = list(texts)
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return RaggedIds(self.encode("".join(texts)), offsets)

    def to_json(self) -> str:
        """Return the tokenizer as JSON."""
        return json.dumps({"kind": CHARACTERS, "characters": self.characters, "unknown_symbol": self.unknown_symbol})


class BytePairTokenizer(TextTokenizer):
    """A byte-level byte-pair tokenizer, as in GPT-2 (Sennrich et al. 2016; Radford et al. 2019).

    It can encode any text. Its tokens are the 256 bytes and the most frequent merges of them. Use `train` to learn the
    merges.

    Args:
        backend: a byte-level tokenizer of the library `tokenizers`.

    Attributes:
        words: the tokens, in the order of their ids, with GPT-2's symbols for bytes: a space is written Ġ.
        vocab_size: number of token ids.

    Example:
        >>> from firstlight.text import BytePairTokenizer, decode
        >>> tokenizer = BytePairTokenizer.train(["the theme of the thesis"] * 3, vocab_size=258)
        >>> ids = tokenizer.encode_batch(["the café"])[0]
        >>> [tokenizer.words[token_id] for token_id in ids]
        ['the', 'Ġ', 'c', 'a', 'f', 'Ã', '©']
        >>> decode(tokenizer, ids)
        'the café'
    """

    kind = BYTE_PAIRS

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.words = tokens_of(backend)
        self.pieces = [_bytes_of(word) for word in self.words]

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Self:
        """Return a tokenizer of the 256 bytes and the most frequent merges, at most `vocab_size` tokens in all."""
        assert vocab_size >= NUM_BYTES, f"{vocab_size} is too small for {NUM_BYTES} bytes"
        return cls(train_byte_pairs(texts, vocab_size, add_prefix_space=False))

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """Return the ids of many texts. A lone surrogate, which UTF-8 cannot encode, becomes "?"."""
        encodings = self._backend.encode_batch_fast([encodable(text) for text in texts])
        return RaggedIds.from_rows(encoding.ids for encoding in encodings)

    def to_json(self) -> str:
        """Return the tokenizer as JSON."""
        return json.dumps({"kind": self.kind, "backend": json.loads(self._backend.to_str())})


class TextWordTokenizer(BytePairTokenizer):
    """A tokenizer of the words, marks and line breaks of a text, which keeps every character.

    A token is a word, or up to three equal marks, together with the space before it, or one or two new lines. A word
    outside of the vocabulary is divided into the longest tokens that spell it. The 256 bytes are tokens too, so any
    text can be encoded. Use `train` to count the words.

    Args:
        backend: a byte-level tokenizer of the library `tokenizers`.

    Attributes:
        words: the tokens, in the order of their ids, with GPT-2's symbols for bytes: a space is written Ġ.
        vocab_size: number of token ids.

    Example:
        >>> from firstlight.text import TextWordTokenizer, decode
        >>> tokenizer = TextWordTokenizer.train(["To be, or not to be:\\nThat is"] * 2, vocab_size=300)
        >>> ids = tokenizer.encode_batch(["To be, to bed"])[0]
        >>> [tokenizer.words[token_id] for token_id in ids]
        ['To', 'Ġbe', ',', 'Ġto', 'Ġbe', 'd']
        >>> decode(tokenizer, ids)
        'To be, to bed'
    """

    kind = TEXT_WORDS

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        if missing := BYTE_OF_SYMBOL.keys() - set(self.words):
            raise ValueError(f"{len(missing)} of the {NUM_BYTES} bytes are no tokens")

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None, min_frequency: int = 1) -> Self:
        """Return a tokenizer of the 256 bytes and the most frequent words, at most `vocab_size` tokens in all.

        texts: the training texts, which are read once; vocab_size: None: no limit; min_frequency: the number of times
        that a word must occur. Equally frequent words are in the order of their spelling.
        """
        assert vocab_size is None or vocab_size >= NUM_BYTES, f"{vocab_size} is too small for {NUM_BYTES} bytes"
        words = pre_tokenizers.Split(Regex(TEXT_PATTERN), "isolated")
        split = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        counter = Backend(models.WordLevel())
        counter.pre_tokenizer = split
        most = vocab_size or MOST_WORDS
        trainer = trainers.WordLevelTrainer(vocab_size=most, min_frequency=min_frequency, show_progress=False)
        counter.train_from_iterator(map(encodable, texts), trainer)
        kept = [word for word in tokens_of(counter) if word not in BYTE_OF_SYMBOL]
        tokens = [*sorted(BYTE_OF_SYMBOL), *kept][:vocab_size]
        model = models.WordPiece(
            {token: i for i, token in enumerate(tokens)},
            unk_token=tokens[0],  # the library requires one; no text needs it, since all bytes are tokens
            continuing_subword_prefix="",
            max_input_chars_per_word=4 * LONGEST_WORD + 1,  # bytes, with the space
        )
        backend = Backend(model)
        backend.pre_tokenizer = split
        backend.decoder = decoders.ByteLevel()
        return cls(backend)


def decode(tokenizer: TextTokenizer, ids: Iterable[int]) -> str:
    """Return the text of token ids.

    Args:
        tokenizer: a `CharacterTokenizer`, a `BytePairTokenizer` or a `TextWordTokenizer`.
        ids: token ids, in the order of the text.

    Returns:
        The text. Bytes that are not valid UTF-8 become U+FFFD.

    Example:
        >>> from firstlight.text import CharacterTokenizer, decode
        >>> tokenizer = CharacterTokenizer.train(["to be"], unknown_symbol=None)
        >>> decode(tokenizer, tokenizer.encode("bet"))
        'bet'
    """
    return b"".join(tokenizer.pieces[token_id] for token_id in ids).decode(errors="replace")


def first_id(tokenizer: TextTokenizer, separator_id: int | None) -> int:
    """Return the id from which a text without a prompt starts.

    It is the separator of documents, else a new line, else the first token that a generator may generate.
    """
    if separator_id is not None:
        return separator_id
    new_lines = (i for i, word in enumerate(tokenizer.words) if word in ("\n", "Ċ"))  # Ċ is the new line of byte pairs
    written = (i for i in range(tokenizer.vocab_size) if i not in tokenizer.unwritten)
    return next(new_lines, next(written))


def readable(tokenizer: TextTokenizer, token_id: int, separator_id: int | None = None) -> str:
    """Return the text of a token, with ␣ for a space, ⏎ for a new line, ⇥ for a tab and [end] for a separator."""
    if token_id == separator_id:
        return "[end]"
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.words[token_id]
    return decode(tokenizer, [token_id]).translate(READABLE)


def train_byte_pairs(texts: Iterable[str], vocab_size: int, *, add_prefix_space: bool) -> Backend:
    """Return byte-level byte-pair encoding of the 256 bytes and the most frequent merges: `vocab_size` tokens."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=2, initial_alphabet=sorted(BYTE_OF_SYMBOL), show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    return backend


def _bytes_of(word: str) -> bytes:
    """Return the bytes that a token writes. One that another program added may have other characters than symbols."""
    symbols = [BYTE_OF_SYMBOL.get(symbol, -1) for symbol in word]
    return word.encode() if -1 in symbols else bytes(symbols)


def _symbols_of_bytes() -> Iterator[tuple[str, int]]:
    """Yield GPT-2's printable symbol for each byte: itself if it is printable, else the next free code point."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    spare = (code for code in range(NUM_BYTES, 2 * NUM_BYTES))
    for byte in range(NUM_BYTES):
        yield chr(byte if byte in printable else next(spare)), byte


BYTE_OF_SYMBOL = dict(_symbols_of_bytes())
