"""How text becomes ids, as options. Imports nothing heavy."""

import math
from dataclasses import dataclass
from enum import Enum

from firstlight.choices import accept_names

NUM_BYTES = 256
NUM_MARKS = 4  # [PAD], [UNK], [BEGIN] and [END] of translation


class TokenizerKind(Enum):
    """Whole words, pieces of words by byte-pair encoding, or single characters."""

    word = "word"
    subword = "subword"
    char = "char"


@dataclass
class TokenizerOptions:
    """The tokenizer and its vocabulary, counted on the training split."""

    kind: TokenizerKind = TokenizerKind.word
    max_size: int | None = 7000  # entries, [PAD] and [UNK] included; None: no limit
    min_document_frequency: int = 2  # words in fewer reviews are [UNK]
    word_list: str | None = None  # a file with one word a line, instead of counting
    punctuation: bool = False  # of words: single letters, digits and marks such as !!! are words too
    unknown_symbol: str | None = "\ufffd"  # of tokenizer=char; None: a character outside the vocabulary is an error

    def __post_init__(self) -> None:
        accept_names(self, "tokenizer.")
        if self.max_size is not None and self.max_size < 3:
            raise ValueError(f"tokenizer.max_size={self.max_size} must be at least 3: [PAD], [UNK] and a word")
        if self.min_document_frequency < 1:
            raise ValueError(f"tokenizer.min_document_frequency={self.min_document_frequency} must be at least 1")
        if self.kind is TokenizerKind.subword and self.max_size is None:
            raise ValueError("tokenizer.max_size is not set; byte-pair encoding needs a size, such as 4000")
        if self.kind is not TokenizerKind.word and self.word_list is not None:
            raise ValueError("tokenizer.word_list names whole words; use it with tokenizer=word, or remove it")
        if self.punctuation and self.kind is not TokenizerKind.word:
            raise ValueError("tokenizer.punctuation=true is of whole words; use it with tokenizer=word, or remove it")
        if self.unknown_symbol is not None and len(self.unknown_symbol) != 1:
            raise ValueError(f"tokenizer.unknown_symbol={self.unknown_symbol} must be one character, or null")


class VectorsKind(Enum):
    """Where the vectors of words begin: at random, counted in the training texts, or in a file."""

    random = "random"
    cooccurrence = "cooccurrence"
    glove = "glove"
    file = "file"


@dataclass
class VectorOptions:
    """What the vectors of words are before the training, and whether it changes them."""

    kind: VectorsKind = VectorsKind.random
    path: str | None = None  # a text file of GloVe's or word2vec's format
    window: int = 1  # of cooccurrence: how far apart two words are counted
    trained: bool = True  # false: the vectors stay as they are
    std: float | None = None  # what all numbers together deviate by; None: left as they are

    def __post_init__(self) -> None:
        accept_names(self, "vectors.")
        if self.window < 1:
            raise ValueError(f"vectors.window={self.window} must be at least 1: the words next to each other")
        if self.std is not None and not 0 < self.std < math.inf:
            raise ValueError(f"vectors.std={self.std} must be a finite number above 0, or null")
        if self.kind is VectorsKind.file and self.path is None:
            raise ValueError("vectors=file needs the file: set vectors.path")
        if self.kind is VectorsKind.random and not self.trained:
            raise ValueError(
                "vectors.trained=false keeps vectors that mean nothing; set vectors=cooccurrence, glove or file"
            )
        if self.kind in (VectorsKind.random, VectorsKind.cooccurrence) and self.path is not None:
            raise ValueError(f"vectors={self.kind.value} reads no file; set vectors=file, or remove vectors.path")
