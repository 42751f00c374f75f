"""The options of tokenizers and of word vectors. This module imports nothing heavy."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from firstlight.choices import accept_names

NUM_BYTES = 256
PAIR_SEPARATOR = "|||"  # between two texts that are given as one string
NUM_MARKS = 4  # [PAD], [UNK], [BEGIN] and [END] of translation


class TokenizerKind(Enum):
    """Kind of tokenizer: words, pieces of words by byte-pair encoding, or single characters."""

    word = "word"
    subword = "subword"
    char = "char"


@dataclass
class TokenizerOptions:
    """Options of the tokenizer and of its vocabulary, which is computed from the training split.

    A choice may be given by its name, such as `kind="subword"`.

    Args:
        kind: Unit of the tokens: "word" (whole words), "subword" (byte-pair encoding) or "char" (single characters).
        max_size: Largest number of entries of the vocabulary, [PAD] and [UNK] included; None: no limit. "subword"
            requires a number.
        min_document_frequency: Number of training texts that a word must occur in, at least 1; rarer words become
            [UNK]. For a generator of one text: the number of times that a word must occur; rarer words are spelled.
        punctuation: Whether single letters, digits and marks such as !!! are tokens, only for "word"; None: True for
            "word".
        unknown_symbol: Character that replaces all characters outside the vocabulary, only for "char"; None: such a
            character is an error.

    Raises:
        ValueError: if a value is out of range or values contradict each other; the message names the key and the
            fix.

    Example:
        >>> from firstlight.text import TokenizerOptions
        >>> TokenizerOptions(kind="subword", max_size=4000).kind
        <TokenizerKind.subword: 'subword'>
        >>> TokenizerOptions(kind="words")
        Traceback (most recent call last):
        ValueError: tokenizer.kind='words' must be one of word, subword, char
    """

    kind: TokenizerKind = TokenizerKind.word
    max_size: int | None = 7000
    min_document_frequency: int = 2
    punctuation: bool | None = None
    unknown_symbol: str | None = "\ufffd"

    def __post_init__(self) -> None:
        accept_names(self, "tokenizer.")
        if self.punctuation is None:
            self.punctuation = self.kind is TokenizerKind.word
        if self.max_size is not None and self.max_size < 3:
            raise ValueError(f"tokenizer.max_size={self.max_size} must be at least 3, for [PAD], [UNK] and one word")
        if self.min_document_frequency < 1:
            raise ValueError(f"tokenizer.min_document_frequency={self.min_document_frequency} must be at least 1")
        if self.kind is TokenizerKind.subword and self.max_size is None:
            raise ValueError("tokenizer.max_size=null: byte-pair encoding requires a size; set it, such as to 4000")
        if self.punctuation and self.kind is not TokenizerKind.word:
            raise ValueError("tokenizer.punctuation=true requires whole words; set tokenizer=word, or remove it")
        if self.unknown_symbol is not None and len(self.unknown_symbol) != 1:
            raise ValueError(f"tokenizer.unknown_symbol={self.unknown_symbol} must be one character, or null")


class VectorsKind(Enum):
    """Kind of initial word vectors: random, from counts in the training texts, GloVe, or from a file."""

    random = "random"
    cooccurrence = "cooccurrence"
    glove = "glove"
    file = "file"


class EigenMethod(Enum):
    """The method that finds principal components: Lanczos, or power iteration with deflation (post 3, film reviews)."""

    lanczos = "lanczos"
    power = "power"


@dataclass
class VectorOptions:
    """Options of the initial word vectors of a network.

    A choice may be given by its name, such as `kind="glove"`.

    Args:
        kind: Initial word vectors: "random", "cooccurrence" (counts in the training texts, reduced by PCA, as in post
            3), "glove" (a GloVe file in the folder `glove` of the data) or "file".
        path: Text file of word vectors in the format of GloVe or word2vec, for "file" (required) and "glove".
        window: Largest distance, in words, at which a pair of words is counted, for "cooccurrence"; at least 1.
        method: Method that finds the principal components of "cooccurrence": "lanczos", or "power" (power iteration
            with deflation, as in post 3, film reviews), which is much slower and finds the same components.
        trained: Whether training changes the word vectors; random vectors must be trained.
        std: Standard deviation to which the word vectors are scaled; None: they are not scaled.

    Raises:
        ValueError: if a value is out of range or values contradict each other; the message names the key and the
            fix.

    Example:
        >>> from firstlight.text import VectorOptions
        >>> VectorOptions(kind="cooccurrence", window=2, trained=False).kind
        <VectorsKind.cooccurrence: 'cooccurrence'>
    """

    kind: VectorsKind = VectorsKind.random
    path: str | None = None
    window: int = 1
    method: EigenMethod = EigenMethod.lanczos
    trained: bool = True
    std: float | None = None

    def __post_init__(self) -> None:
        accept_names(self, "vectors.")
        if self.window < 1:
            raise ValueError(f"vectors.window={self.window} must be at least 1, for the words next to each other")
        if self.std is not None and not 0 < self.std < math.inf:
            raise ValueError(f"vectors.std={self.std} must be a finite number above 0, or null")
        if self.kind is VectorsKind.file and self.path is None:
            raise ValueError("vectors=file requires a file; set vectors.path")
        if self.kind is VectorsKind.random and not self.trained:
            remedy = "set vectors=cooccurrence, glove or file"
            raise ValueError(f"vectors.trained=false requires vectors that are not random; {remedy}")
        if self.kind in (VectorsKind.random, VectorsKind.cooccurrence) and self.path is not None:
            raise ValueError(f"vectors={self.kind.value} reads no file; set vectors=file, or remove vectors.path")


def tokenizer_options(given: Any) -> TokenizerOptions:
    """Return the options of a tokenizer, given as `TokenizerOptions`, as a dict, or as the kind of the tokenizer."""
    if isinstance(given, str | TokenizerKind):
        return TokenizerOptions(kind=given)  # type: ignore[arg-type]  # a name is accepted too
    return TokenizerOptions(**given) if isinstance(given, dict) else given
