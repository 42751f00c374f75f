"""Tokenizers that keep every character of a text, for generators: of characters, and of byte pairs."""

import codecs
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from firstlight.errors import UserError
from firstlight.text.options import NUM_BYTES
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import CONTINUATION, PAD_ID, UNKNOWN_ID, Tokenizer

CHARACTERS, BYTE_PAIRS = "characters", "byte_pairs"  # what a tokenizer's JSON calls its kind
NOT_IN_VOCABULARY = -1


class TextTokenizer(Protocol):
    """What a generator needs of a tokenizer.

    words: the tokens as people read them; unknown_id: what stands for a character that no token has, or None where
    there is none such; unwritten: the ids that a generator never writes.
    """

    @property
    def words(self) -> list[str]: ...

    @property
    def unknown_id(self) -> int | None: ...

    @property
    def unwritten(self) -> Sequence[int]: ...

    @property
    def vocab_size(self) -> int: ...

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds: ...

    def stream(self) -> "Decoder": ...

    def characters_per_token(self) -> NDArray[np.int64] | None:
        """(vocab_size,), or None where a token does not stand for certain characters."""
        ...

    def to_json(self) -> str: ...


class Decoder(Protocol):
    """Ids to text, one at a time; what is not yet a whole character is kept back."""

    def write(self, token_id: int) -> str: ...

    def end(self) -> str: ...


class CharacterTokenizer:
    """One id for each character, in the order of their code points; the unknown symbol, if there is one, is id 0."""

    def __init__(self, characters: str, unknown_symbol: str | None) -> None:
        self.characters, self.unknown_symbol = characters, unknown_symbol
        self.words = ([] if unknown_symbol is None else [unknown_symbol]) + list(characters)
        self.unknown_id = None if unknown_symbol is None else 0
        self.unwritten = [] if unknown_symbol is None else [0]
        codes = [ord(character) for character in characters]
        missing = NOT_IN_VOCABULARY if self.unknown_id is None else self.unknown_id
        self._id_of_code = np.full(max(codes, default=0) + 2, missing, dtype=np.int32)  # the last: all that is above
        self._id_of_code[codes] = np.arange(len(codes)) + len(self.words) - len(codes)

    @classmethod
    def train(cls, texts: Iterable[str], unknown_symbol: str | None) -> Self:
        """Make a vocabulary of all characters of the texts."""
        found: set[str] = set()
        for text in texts:
            found.update(text)
        return cls("".join(sorted(found - {unknown_symbol})), unknown_symbol)

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> NDArray[np.int32]:
        """The id of each character: (characters,), by one look-up for all.

        Raises UserError for a character outside the vocabulary where there is no unknown symbol.
        """
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        ids = self._id_of_code[np.minimum(codes, len(self._id_of_code) - 1)]
        if self.unknown_id is None and (ids == NOT_IN_VOCABULARY).any():
            strange = text[int((ids == NOT_IN_VOCABULARY).argmax())]
            raise UserError(
                f"the character {strange!r} is not in the vocabulary, which has no unknown symbol; remove it"
            )
        return ids

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """The ids of many texts, each as long as its text."""
        texts = list(texts)
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return RaggedIds(self.encode("".join(texts)), offsets)

    def stream(self) -> "Decoder":
        return _Words(self.words)

    def characters_per_token(self) -> NDArray[np.int64]:
        return np.ones(self.vocab_size, dtype=np.int64)

    def to_json(self) -> str:
        return json.dumps({"kind": CHARACTERS, "characters": self.characters, "unknown_symbol": self.unknown_symbol})


class BytePairTokenizer:
    """Pieces of the text's bytes, merged by frequency (GPT-2's byte-level encoding); any text can be written in it."""

    unknown_id = None
    unwritten: Sequence[int] = ()

    def __init__(self, backend: Backend) -> None:
        ids = backend.get_vocab()
        self._backend = backend
        self.words = sorted(ids, key=ids.__getitem__)
        self._bytes = [bytes(BYTE_OF_SYMBOL[symbol] for symbol in word) for word in self.words]

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Self:
        """Make a vocabulary of the 256 bytes and the merges most often found, vocab_size in all."""
        assert vocab_size >= NUM_BYTES, f"{vocab_size} cannot hold {NUM_BYTES} bytes"
        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            initial_alphabet=sorted(BYTE_OF_SYMBOL),
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        return cls(backend)

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """The ids of many texts; half a surrogate pair, which no UTF-8 can hold, becomes "?"."""
        whole = [text.encode("utf-8", "replace").decode() for text in texts]
        return RaggedIds.from_rows(encoding.ids for encoding in self._backend.encode_batch_fast(whole))

    def stream(self) -> "Decoder":
        return _Bytes(self._bytes)

    def characters_per_token(self) -> NDArray[np.int64]:
        """The characters that begin in each token."""
        return np.array([sum(byte & 0xC0 != 0x80 for byte in token) for token in self._bytes], dtype=np.int64)

    def to_json(self) -> str:
        return json.dumps({"kind": BYTE_PAIRS, "backend": json.loads(self._backend.to_str())})


class WordText:
    """A tokenizer of words or subwords as a generator's: it reads simplified words, and writes them apart."""

    unknown_id: int | None = UNKNOWN_ID
    unwritten: Sequence[int] = (UNKNOWN_ID,)

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.words = tokenizer, tokenizer.words

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """The ids of many texts."""
        return self.tokenizer.encode_batch(texts)

    def stream(self) -> "Decoder":
        spaced = [
            word.removeprefix(CONTINUATION) if word.startswith(CONTINUATION) else f" {word}" for word in self.words
        ]
        spaced[PAD_ID] = "\n"  # which stands between texts
        return _Words(spaced)

    def characters_per_token(self) -> None:
        """Unknown: [UNK] may be any word."""

    def to_json(self) -> str:
        return self.tokenizer.to_json()


def decode(tokenizer: TextTokenizer, ids: Iterable[int]) -> str:
    """The text of some ids."""
    decoder = tokenizer.stream()
    return "".join(map(decoder.write, ids)) + decoder.end()


def writer_of(tokenizer: "Tokenizer | CharacterTokenizer | BytePairTokenizer") -> TextTokenizer:
    """A tokenizer as a generator needs it."""
    return WordText(tokenizer) if isinstance(tokenizer, Tokenizer) else tokenizer


def first_id(tokenizer: TextTokenizer, separator_id: int | None) -> int:
    """What a text without a beginning begins after: the separator of documents, a new line, or else any token."""
    if separator_id is not None:
        return separator_id
    new_lines = (i for i, word in enumerate(tokenizer.words) if word in ("\n", "Ċ"))  # Ċ: of byte pairs
    written = (i for i in range(tokenizer.vocab_size) if i not in tokenizer.unwritten)
    return next(new_lines, next(written))


class _Words:
    """Each id is a text of its own."""

    def __init__(self, words: list[str]) -> None:
        self._words = words

    def write(self, token_id: int) -> str:
        return self._words[token_id]

    def end(self) -> str:
        return ""


class _Bytes:
    """Each id is some bytes, and a character may end in the next one."""

    def __init__(self, tokens: list[bytes]) -> None:
        self._tokens = tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def write(self, token_id: int) -> str:
        return self._decoder.decode(self._tokens[token_id])

    def end(self) -> str:
        return self._decoder.decode(b"", final=True)


def _symbols_of_bytes() -> Iterator[tuple[str, int]]:
    """GPT-2's printable symbol for each byte: itself where it is printable, else the next free code point."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    spare = (code for code in range(NUM_BYTES, 2 * NUM_BYTES))
    for byte in range(NUM_BYTES):
        yield chr(byte if byte in printable else next(spare)), byte


BYTE_OF_SYMBOL = dict(_symbols_of_bytes())
