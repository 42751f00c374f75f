"""Tokenizers of words and of subwords for classifiers, based on the library `tokenizers`."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import accumulate, chain
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, models, trainers
from tokenizers import Tokenizer as Backend
from tokenizers.pre_tokenizers import Split, WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from firstlight.errors import UserError
from firstlight.text.normalize import normalizer, words, words_and_marks
from firstlight.text.options import PAIR_SEPARATOR
from firstlight.text.ragged import RaggedIds

PAD, UNK = "[PAD]", "[UNK]"
PAD_ID, UNKNOWN_ID = 0, 1
SPECIAL = [PAD, UNK]
MASK = "[MASK]"  # a word to fill in
PAIR_MARKS = ["[START]", "[DELIMITER]", "[EXTRACT]"]  # around two texts (Radford et al. 2018); no text contains them
START_ID, DELIMITER_ID, EXTRACT_ID = 2, 3, 4
Text = str | tuple[str, ...]  # a text, or a pair of texts; for multiple choice, a context and the answers
CONTINUATION = "##"  # the start of a subword that does not begin a word
LETTER_COVERAGE = 0.9999  # share of the text; letters beyond it are too rare to be learned
WORD_PATTERN = r"[\p{L}\p{N}_]{2,}"  # Python's \w\w+\b; in Hugging Face's library, \w matches more
MARKED_PATTERN = r"[\p{L}\p{N}_]+|([^\p{L}\p{N}_\s])\1{0,2}"  # the pattern of words_and_marks
LONGEST_QUOTE = 40  # characters of a text in a message
NO_WORDS = "the training texts have no words; check data.text_column"


class TextTokenizer:
    """The base class of the tokenizers for generators.

    words: the tokens in readable form; pieces: the bytes that each token writes; unknown_id: the id of a character
    without a token, or None; unwritten: the ids that a generator must not generate.
    """

    words: list[str]
    pieces: list[bytes]
    unknown_id: int | None = None
    unwritten: Sequence[int] = ()

    @property
    def vocab_size(self) -> int:
        """The number of token ids."""
        return len(self.words)

    def encode_batch(self, texts: Iterable[str]) -> RaggedIds:
        """Return the ids of many texts."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the tokenizer as JSON."""
        raise NotImplementedError

    def characters_per_token(self) -> NDArray[np.int64] | None:
        """Return the number of characters that begin in each token, (vocab_size,) int64, or None if it is not fixed."""
        return np.array([sum(byte & 0xC0 != 0x80 for byte in piece) for piece in self.pieces], dtype=np.int64)


class Tokenizer(TextTokenizer):
    """A tokenizer of simplified words or subwords, for classifiers.

    The ids 0 and 1 are [PAD] and [UNK]. A word outside the vocabulary, or a letter outside the alphabet of a subword
    tokenizer, is [UNK]. A tokenizer of pairs encodes two texts as [START] first [DELIMITER] second [EXTRACT]; a pair is
    a tuple, or one string with ||| between the texts. Use `train_word_tokenizer`, `train_subword_tokenizer` or
    `from_json` to make one. The library `tokenizers` reads the same JSON and gives the same ids, except that it does
    not unescape HTML entities.

    Args:
        backend: a tokenizer of the library `tokenizers` whose first ids are [PAD] and [UNK].

    Attributes:
        words: the tokens, in the order of their ids.
        vocab_size: number of token ids.
        kind: "word" or "subword".
        reads_pairs: whether the tokenizer encodes pairs of texts. The ids 2 to 4 are then [START], [DELIMITER] and
            [EXTRACT].
        marks: the tokens around each text, or around the texts of a pair, or [].

    Example:
        >>> from firstlight.text import Tokenizer, train_word_tokenizer
        >>> tokenizer = train_word_tokenizer(["a good film", "Good acting, bad film!"])
        >>> tokenizer.words
        ['[PAD]', '[UNK]', 'film', 'good', 'acting', 'bad']
        >>> tokenizer.encode("A GOOD book"), tokenizer.tokens("A GOOD book")
        ([3, 1], ['good', '[UNK]'])
        >>> Tokenizer.from_json(tokenizer.to_json()).words == tokenizer.words
        True
    """

    unknown_id: int | None = UNKNOWN_ID
    unwritten: Sequence[int] = (UNKNOWN_ID,)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        divided = json.loads(backend.to_str())["pre_tokenizer"]  # whose pattern shows whether marks are words
        has_marks = divided is not None and divided["pattern"]["Regex"] == MARKED_PATTERN
        self.split: Callable[[str], list[str]] = words_and_marks if has_marks else words
        self.words = tokens_of(backend)
        assert self.words[:2] == [PAD, UNK], f"ids 0 and 1 are {self.words[:2]}"
        self.reads_pairs = self.words[START_ID : EXTRACT_ID + 1] == PAIR_MARKS
        self.marks = PAIR_MARKS if self.reads_pairs else []

    @property
    def no_words(self) -> tuple[int, ...]:
        """The ids of [PAD], [UNK] and the marks."""
        return (PAD_ID, UNKNOWN_ID, *map(self.words.index, self.marks))

    @property
    def kind(self) -> Literal["word", "subword"]:
        """ "word" or "subword"."""
        return "word" if isinstance(self._backend.model, models.WordLevel) else "subword"

    @cached_property
    def pieces(self) -> list[bytes]:  # type: ignore[override]  # computed for generators only
        """The bytes that each token writes: a space and a word, and a new line for [PAD], which separates texts."""
        spaced = [f" {word}".replace(f" {CONTINUATION}", "") for word in self.words]
        return [b"\n", *(word.encode() for word in spaced[PAD_ID + 1 :])]

    def characters_per_token(self) -> None:
        """Return None, because [UNK] may stand for any word."""

    def encode(self, text: Text) -> list[int]:
        """Return the ids of a text, or [] if it has no words."""
        return self.encode_batch([text])[0].tolist()

    def tokens(self, text: Text) -> list[str]:
        """Return the tokens of a text: "a zyzzyva flew" → [UNK] flew."""
        return [self.words[token_id] for token_id in self.encode(text)]

    def encode_batch(self, texts: Iterable[Text]) -> RaggedIds:
        """Return the ids of many texts, or pairs of texts, which are read once and one at a time.

        Raises UserError for a pair if the tokenizer encodes single texts, and the other way round.
        """
        if self.kind == "word":  # each word has one id
            id_of = {word: token_id for token_id, word in enumerate(self.words)}.get
            return RaggedIds.from_rows([id_of(word, UNKNOWN_ID) for word in self.words_of(text)] for text in texts)
        ids_of = cache(self._ids_of_word)  # most words of a text have occurred before
        return RaggedIds.from_rows(chain.from_iterable(map(ids_of, self.words_of(text))) for text in texts)

    def words_of(self, text: Text) -> list[str]:
        """Return the words of a text after normalization. For a pair, the three marks are words too."""
        if not self.reads_pairs:
            if not isinstance(text, str):
                raise UserError(f"the network reads single texts, not {text!r}; give one text")
            return self.split(text)
        start, delimiter, extract = PAIR_MARKS
        first, second = pair_of(text)
        return [start, *self.split(first), delimiter, *self.split(second), extract]

    def encode_words(self, words: Sequence[str]) -> RaggedIds:
        """Return the ids of each of the words that `words_of` returns."""
        return RaggedIds.from_rows(map(self._ids_of_word, words))

    def _ids_of_word(self, word: str) -> list[int]:
        if self.reads_pairs and word in PAIR_MARKS:
            return [START_ID + PAIR_MARKS.index(word)]
        return [token.id for token in self._backend.model.tokenize(word)]

    def to_json(self) -> str:
        """Return the tokenizer as JSON, which `from_json` reads."""
        return self._backend.to_str()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the tokenizer of a text that `to_json` returned."""
        return cls(Backend.from_str(text))


def tokens_of(backend: Backend) -> list[str]:
    """Return the tokens of a tokenizer of the library, in the order of their ids."""
    ids = backend.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def pair_of(text: Text) -> tuple[str, str]:
    """Return the two texts of a pair. Raises UserError for anything else than two texts, or one string with |||."""
    parts: Any = [part.strip() for part in text.split(PAIR_SEPARATOR, 1)] if isinstance(text, str) else text
    if not isinstance(parts, Sequence) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        quoted = repr(text) if len(repr(text)) <= LONGEST_QUOTE else repr(text)[: LONGEST_QUOTE - 1] + "…"
        remedy = f"write {PAIR_SEPARATOR} between the two, or give a tuple of two texts"
        raise UserError(f"the network reads pairs of texts, not {quoted}; {remedy}")
    return parts[0], parts[1]


def joined(text: Text) -> str:
    """Return a text, or a pair as one string with ||| between its texts."""
    return text if isinstance(text, str) else f" {PAIR_SEPARATOR} ".join(text)


def train_word_tokenizer(
    texts: Iterable[str],
    *,
    min_document_frequency: int = 1,
    max_size: int | None = None,
    punctuation: bool = False,
    pairs: bool = False,
) -> Tokenizer:
    """Return a tokenizer of the words that occur in the most texts.

    The words are simplified (see `simplify`) and have at least two characters. The words of the most texts have the
    lowest ids; ties are in alphabetical order.

    Args:
        texts: the training texts, which are read once.
        min_document_frequency: number of texts that a word must occur in, at least 1.
        max_size: the largest number of entries, [PAD] and [UNK] included; None: no limit.
        punctuation: whether single letters, digits and marks such as !!! are words too.
        pairs: whether the tokenizer encodes pairs of texts. `texts` are the single texts of the pairs.

    Returns:
        The tokenizer.

    Raises:
        UserError: if no word remains.

    Example:
        >>> from firstlight.text import train_word_tokenizer
        >>> tokenizer = train_word_tokenizer(["a good film", "Good acting, bad film!"], max_size=4)
        >>> ids = tokenizer.encode_batch(["a good film", "Good acting, bad film!"])
        >>> tokenizer.words
        ['[PAD]', '[UNK]', 'film', 'good']
        >>> ids[1].tolist()  # good [UNK] [UNK] film
        [3, 1, 1, 2]
    """
    frequency = document_frequency(texts, punctuation=punctuation)
    return word_tokenizer(frequency, min_document_frequency, max_size, punctuation=punctuation, pairs=pairs)


def document_frequency(texts: Iterable[str], *, punctuation: bool = False) -> Counter[str]:
    """Return the number of texts that contain each word, and with `punctuation` each mark."""
    return Counter(chain.from_iterable(map(set, map(words_and_marks if punctuation else words, texts))))


def word_frequency(texts: Iterable[str]) -> Counter[str]:
    """Return the number of times that each word occurs, in the order of their first occurrences."""
    return Counter(chain.from_iterable(map(words, texts)))


def word_tokenizer(
    frequency: Counter[str], minimum: int, max_size: int | None, *, punctuation: bool = False, pairs: bool = False
) -> Tokenizer:
    """Return the tokenizer of `train_word_tokenizer` for a `document_frequency`."""
    special = SPECIAL + PAIR_MARKS if pairs else SPECIAL
    kept = most_frequent(frequency, minimum)
    if max_size is not None:
        assert max_size > len(special), f"max_size={max_size}"
        kept = kept[: max_size - len(special)]
    ids = {word: token_id for token_id, word in enumerate([*special, *kept])}
    return _tokenizer(models.WordLevel(ids, unk_token=UNK), punctuation=punctuation, pairs=pairs)


def most_frequent(frequency: Counter[str], minimum: int) -> list[str]:
    """Return the words of at least `minimum` texts, the most frequent first. Raises UserError if there are none."""
    kept = [word for word, num_texts in frequency.items() if num_texts >= minimum]
    if not frequency:
        raise UserError(NO_WORDS)
    if not kept:
        problem = f"tokenizer.min_document_frequency={minimum} removes all words"
        raise UserError(f"{problem}; set it to {max(frequency.values())} or less")
    return sorted(kept, key=lambda word: (-frequency[word], word))


def train_subword_tokenizer(texts: Iterable[str], *, vocab_size: int, pairs: bool = False) -> Tokenizer:
    """Return a tokenizer of subwords, learned by byte-pair encoding (Sennrich et al. 2016).

    A subword that does not begin a word starts with ##. Letters that are too rare to be learned are [UNK].

    Args:
        texts: the training texts, which are read once.
        vocab_size: the largest number of entries, [PAD] and [UNK] included.
        pairs: whether the tokenizer encodes pairs of texts. `texts` are the single texts of the pairs.

    Raises:
        UserError: if there are no words, or if the letters need more entries than `vocab_size`.

    Example:
        >>> from firstlight.text import train_subword_tokenizer
        >>> tokenizer = train_subword_tokenizer(["low lower lowest", "newer wider"], vocab_size=40)
        >>> tokenizer.tokens("lower")
        ['low', '##er']
    """
    return subword_tokenizer(word_frequency(texts), vocab_size, pairs=pairs)


def subword_tokenizer(frequency: Counter[str], vocab_size: int, *, pairs: bool = False) -> Tokenizer:
    """Return the tokenizer of `train_subword_tokenizer` for a `word_frequency`."""
    if not frequency:
        raise UserError(NO_WORDS)
    letters = _alphabet(frequency)
    special = SPECIAL + PAIR_MARKS if pairs else SPECIAL
    base = [*special, *letters, *(CONTINUATION + letter for letter in letters)]
    if vocab_size < len(base):
        problem = f"tokenizer.max_size={vocab_size} is too small for the {len(letters)} letters of the texts"
        raise UserError(f"{problem}; set it to {len(base)} or more")
    draft = Backend(models.BPE(unk_token=UNK, continuing_subword_prefix=CONTINUATION, fuse_unk=True))
    draft.pre_tokenizer = WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=base,  # otherwise the trainer numbers "##a", "##b", … differently in every run
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    draft.train_from_iterator(_repeated(frequency, set(letters)), trainer)
    return _tokenizer(draft.model, pairs=pairs)  # in the draft, every letter is a special token


def _alphabet(frequency: Counter[str]) -> list[str]:
    """Return the most frequent letters that together reach LETTER_COVERAGE, sorted."""
    letters: Counter[str] = Counter()
    for word, times in frequency.items():
        for letter in word:
            letters[letter] += times
    ranked = sorted(letters, key=lambda letter: (-letters[letter], letter))
    covered = accumulate((letters[letter] for letter in ranked), initial=0)  # by the letters before each letter
    enough = LETTER_COVERAGE * letters.total()
    return sorted(letter for letter, before in zip(ranked, covered, strict=False) if before < enough)


def _repeated(frequency: Counter[str], letters: set[str], at_once: int = 1000) -> Iterator[str]:
    """Yield every word that has only these letters as often as it occurs, in lines of at most `at_once` words."""
    for word, times in frequency.items():
        if letters.issuperset(word):
            for start in range(0, times, at_once):
                yield f"{word} " * min(at_once, times - start)


def _tokenizer(model: models.Model, *, punctuation: bool = False, pairs: bool = False) -> Tokenizer:
    """Return the tokenizer of a model, with the same normalization and words in Hugging Face's library."""
    backend = Backend(model)
    backend.normalizer = normalizer(punctuation=punctuation)
    pattern = MARKED_PATTERN if punctuation else WORD_PATTERN
    backend.pre_tokenizer = Split(Regex(pattern), "removed", invert=True)
    if pairs:
        start, delimiter, extract = PAIR_MARKS
        ids = [(mark, START_ID + number) for number, mark in enumerate(PAIR_MARKS)]
        template = f"{start} $A {delimiter} $B:1 {extract}:1"
        backend.post_processor = TemplateProcessing(single="$A", pair=template, special_tokens=ids)
    return Tokenizer(backend)
