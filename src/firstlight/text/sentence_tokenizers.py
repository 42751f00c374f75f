"""Tokenizers for translation: of whole sentences, cased and with their punctuation, which they can write again."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.ragged import RaggedIds
from firstlight.text.text_tokenizers import BYTE_OF_SYMBOL
from firstlight.text.tokenizers import PAD, PAD_ID, UNK, UNKNOWN_ID, most_frequent

BEGIN, END = "[BEGIN]", "[END]"
BEGIN_ID, END_ID = 2, 3
MARKS = [PAD, UNK, BEGIN, END]
MARK_IDS = (PAD_ID, UNKNOWN_ID, BEGIN_ID, END_ID)
SENTENCES = "sentences"  # what a tokenizer's JSON calls its kind
SPACE = "Ġ"  # byte-level encoding's symbol for a space, with which every word begins


class SentenceTokenizer:
    """Words with the space before them and punctuation without, or pieces of them by byte-pair encoding (GPT-2's).

    Ids 0 to 3 are [PAD], [UNK], [BEGIN] and [END], which no text contains. A word that the vocabulary does not have is
    [UNK]; pieces can write any text.
    """

    unknown_id: int | None = UNKNOWN_ID
    unwritten: Sequence[int] = (PAD_ID, UNKNOWN_ID, BEGIN_ID)  # what a translation never contains

    def __init__(self, backend: Backend) -> None:
        ids = backend.get_vocab()
        self._backend = backend
        self.words = sorted(ids, key=ids.__getitem__)
        assert self.words[: len(MARKS)] == MARKS, f"the first ids are {self.words[: len(MARKS)]}"

    @classmethod
    def train(cls, texts: Iterable[str], options: TokenizerOptions) -> Self:
        """Make a vocabulary of the most frequent words, or of byte pairs, options.max_size in all.

        Raises UserError if no word remains.
        """
        assert options.kind in (TokenizerKind.word, TokenizerKind.subword), options.kind
        clean = (tidy(text) for text in texts)
        return cls(_backend(_words(clean, options) if options.kind is TokenizerKind.word else _pieces(clean, options)))

    @property
    def kind(self) -> TokenizerKind:
        return TokenizerKind.word if isinstance(self._backend.model, models.WordLevel) else TokenizerKind.subword

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """The ids of many texts, without marks."""
        return RaggedIds.from_rows(
            encoding.ids for encoding in self._backend.encode_batch_fast([tidy(text) for text in texts])
        )

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids; marks are left out."""
        return str(self._backend.decode([token_id for token_id in ids if token_id >= len(MARKS)])).strip()

    def readable(self, ids: Iterable[int]) -> list[str]:
        """Each id as people read it: the word or piece without the space before it, a mark by its name."""
        return [self.words[i] if i < len(MARKS) else str(self._backend.decode([i])).strip() for i in ids]

    def plain_words(self) -> list[str]:
        """Every id as files of vectors spell it."""
        return self.readable(range(self.vocab_size))

    def to_json(self) -> str:
        return json.dumps({"kind": SENTENCES, "backend": json.loads(self._backend.to_str())})

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(Backend.from_str(json.dumps(json.loads(text)["backend"])))


def tidy(text: str) -> str:
    """One space between words, none at the ends, composed letters (NFC), "?" for what no UTF-8 can hold."""
    return unicodedata.normalize("NFC", " ".join(text.split())).encode("utf-8", "replace").decode()


def _words(texts: Iterable[str], options: TokenizerOptions) -> models.Model:
    split = _pre_tokenizer()
    frequency: Counter[str] = Counter()  # word -> number of texts
    for text in texts:
        frequency.update({word for word, _ in split.pre_tokenize_str(text)})
    kept = most_frequent(frequency, options.min_document_frequency)
    kept = kept if options.max_size is None else kept[: max(options.max_size - len(MARKS), 1)]
    return models.WordLevel({word: i for i, word in enumerate([*MARKS, *kept])}, unk_token=UNK)


def _pieces(texts: Iterable[str], options: TokenizerOptions) -> models.Model:
    """Byte pairs, moved up behind the marks: as special tokens of the library they would be found in texts."""
    assert options.max_size is not None
    backend = _backend(models.BPE())
    backend.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=max(options.max_size - len(MARKS), len(BYTE_OF_SYMBOL)),
            min_frequency=2,
            initial_alphabet=sorted(BYTE_OF_SYMBOL),
            show_progress=False,
        ),
    )
    learned: dict[str, Any] = json.loads(backend.to_str())["model"]
    vocabulary = {mark: i for i, mark in enumerate(MARKS)}
    vocabulary |= {piece: i + len(MARKS) for piece, i in learned["vocab"].items()}
    return models.BPE(vocabulary, [(first, second) for first, second in learned["merges"]])


def _backend(model: models.Model) -> Backend:
    backend = Backend(model)
    backend.pre_tokenizer = _pre_tokenizer()
    backend.decoder = decoders.ByteLevel()
    return backend


def _pre_tokenizer() -> pre_tokenizers.ByteLevel:
    return pre_tokenizers.ByteLevel(add_prefix_space=True)
