"""Tokenizers of all kinds from JSON: those of our runs, and those that another program trained."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend
from tokenizers.normalizers import NFC, Replace, Sequence, Strip
from tokenizers.processors import TemplateProcessing

from firstlight.errors import UserError
from firstlight.text.normalize import encodable
from firstlight.text.sentence_tokenizers import SENTENCES, SentenceTokenizer
from firstlight.text.text_tokenizers import CHARACTERS, BytePairTokenizer, CharacterTokenizer, TextWordTokenizer
from firstlight.text.tokenizers import PAD, SPECIAL, UNK, Text, Tokenizer, tokens_of

WHITE_SPACE = "[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"  # of Python's str.split
SEPARATORS = Replace(Regex("[\x1c-\x1f]"), " ")  # characters that are white space in Python, but not in the library
FRAMED = "framed"  # the kind in the JSON of a tokenizer of another program
UNLIMITED = {"truncation": None, "padding": None}


class FramedTokenizer(Tokenizer):
    """A tokenizer of words or subwords with a mark before and after each text, as [CLS] and [SEP] of BERT.

    Its words are divided by the library `tokenizers`. A text never contains the marks.
    """

    reads_pairs = False

    def __init__(self, backend: Backend) -> None:
        self._backend, self.words, self.split = backend, tokens_of(backend), self._split
        if self.words[: len(SPECIAL)] != SPECIAL:
            raise ValueError(f"its first tokens are not {' and '.join(SPECIAL)}")
        self.marks = [self.words[i] for i in backend.encode("").ids]

    def words_of(self, text: Text) -> list[str]:
        """Return the words of a text after normalization, with the marks."""
        return [*self.marks[:1], *super().words_of(text), *self.marks[1:]]

    def _split(self, text: str) -> list[str]:
        text = encodable(text)
        if self._backend.normalizer is not None:
            text = self._backend.normalizer.normalize_str(text)
        return [word for word, _ in self._backend.pre_tokenizer.pre_tokenize_str(text)]

    def _ids_of_word(self, word: str) -> list[int]:
        return [self.words.index(word)] if word in self.marks else super()._ids_of_word(word)

    def to_json(self) -> str:
        return json.dumps({"kind": FRAMED, "backend": json.loads(self._backend.to_str())})


AnyTokenizer = Tokenizer | CharacterTokenizer | BytePairTokenizer | SentenceTokenizer
KINDS: dict[str, Callable[[Backend], AnyTokenizer]] = {SENTENCES: SentenceTokenizer, FRAMED: FramedTokenizer}
KINDS |= {each.kind: each for each in (BytePairTokenizer, TextWordTokenizer)}


def tokenizer_of_json(text: str) -> AnyTokenizer:
    """Return the tokenizer of a text that `to_json` returned. Raises UserError if the text is not such a JSON."""
    try:
        content = json.loads(text)
        kind = content.get("kind")
        if kind == CHARACTERS:
            return CharacterTokenizer(content["characters"], content["unknown_symbol"])
        if kind in KINDS:
            return KINDS[kind](_whole(Backend.from_str(json.dumps(content["backend"]))))
        return Tokenizer(_whole(Backend.from_str(text)))
    except Exception as error:  # the library raises a plain Exception for input that it cannot read
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UserError(f"the saved tokenizer is broken ({reason}); use the run's other checkpoint") from error


def library_tokenizer(tokenizer: AnyTokenizer) -> Backend:
    """Return a tokenizer of the library `tokenizers` that gives the same ids.

    It does not unescape the HTML entities that a `Tokenizer` unescapes.
    """
    if isinstance(tokenizer, CharacterTokenizer):
        ids = {character: i for i, character in enumerate(tokenizer.words)}
        unknown = {} if tokenizer.unknown_symbol is None else {"unk_token": tokenizer.unknown_symbol}
        backend = Backend(models.WordLevel(ids, **unknown))
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        backend.decoder = decoders.Fuse()
        return backend
    backend = Backend.from_str(tokenizer._backend.to_str())
    if isinstance(tokenizer, SentenceTokenizer):
        backend.normalizer = Sequence([NFC(), Replace(Regex(WHITE_SPACE), " "), Strip()])
    elif type(tokenizer) is Tokenizer:
        backend.normalizer = Sequence([SEPARATORS, backend.normalizer])
    return backend


def kind_in_json(text: str) -> str | None:
    """Return the kind of tokenizer that a text of `to_json` names; None for that of a classifier."""
    kind: str | None = json.loads(text).get("kind")
    return kind


def json_of_library(text: str, kind: str | None) -> str:
    """Return the JSON that `tokenizer_of_json` reads, from a file of the library `tokenizers`.

    kind: the kind of tokenizer, as `kind_in_json` returns it. Raises UserError for another file.
    """
    try:
        content = json.loads(text)
        if kind == CHARACTERS:
            ids, unknown = content["model"]["vocab"], content["model"]["unk_token"]
            characters = "".join(sorted(ids.keys() - {unknown}, key=ids.__getitem__))
            unknown_symbol = unknown if unknown in ids else None
            return json.dumps({"kind": kind, "characters": characters, "unknown_symbol": unknown_symbol})
        if kind == SENTENCES:
            content["normalizer"] = None  # `tidy` does the same
        if kind is None:
            content["normalizer"]["normalizers"].pop(0)  # SEPARATORS
            return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        problem = f"tokenizer.json is not of the kind {kind} ({type(error).__name__}: {error})"
        raise UserError(f"{problem}; export the run again") from error
    return json.dumps({"kind": kind, "backend": content})


def _whole(backend: Backend) -> Backend:
    """Return the tokenizer. Raises ValueError if it has no unknown token, or if its ids are not 0, 1, 2, …"""
    ids = sorted(backend.get_vocab().values())
    if ids != list(range(len(ids))):
        raise ValueError(f"its {len(ids)} ids are not 0 to {len(ids) - 1}")
    unknown: Any = getattr(backend.model, "unk_token", None)
    if unknown is not None and unknown not in backend.get_vocab(with_added_tokens=False):
        raise ValueError(f"its vocabulary has no {unknown}")
    return backend


# --- of another program ---


class Foreign(NamedTuple):
    """A tokenizer of another program. ids: its id there of each of our ids; if it has a mask, that is the last one."""

    tokenizer: Tokenizer | BytePairTokenizer
    ids: list[int]


def framed_tokenizer(content: Any, pad: str, mask: str) -> Foreign:
    """Return a tokenizer of BERT's kind, whose ids are in another order: [PAD] and [UNK] are first, [MASK] is last.

    content: that of tokenizer.json; pad, mask: its tokens for padding, and for words to fill in. Raises ValueError for
    another kind of tokenizer.
    """
    model, unknown = content["model"], content["model"].get("unk_token")
    if model["type"] not in ("WordPiece", "WordLevel") or content["pre_tokenizer"] is None:
        raise ValueError(f"its model is {model['type']}, not WordPiece or WordLevel with a pre_tokenizer")
    ids = model["vocab"] | {each["content"]: each["id"] for each in content["added_tokens"]}
    frame = Backend.from_str(json.dumps(content | UNLIMITED)).encode("").tokens
    if len(frame) not in (0, 2) or not {pad, unknown, *frame} <= ids.keys():
        raise ValueError(f"it has no {pad}, or an empty text has the tokens {frame}, not two marks")
    others = sorted(ids.keys() - {pad, unknown, mask}, key=ids.__getitem__)
    vocabulary = {name: i for i, name in enumerate([PAD, UNK, *others])}
    changed = {"model": model | {"vocab": vocabulary, "unk_token": UNK}, "added_tokens": [], "post_processor": None}
    backend = Backend.from_str(json.dumps(content | UNLIMITED | changed))
    if frame:
        marks = [(name, vocabulary[name]) for name in frame]
        backend.post_processor = TemplateProcessing(single=[frame[0], "$A", frame[1]], special_tokens=marks)
    kept = [pad, unknown, *others, *([mask] if mask in ids else [])]
    return Foreign(FramedTokenizer(backend), [ids[name] for name in kept])


def text_tokenizer(content: Any) -> Foreign:
    """Return a tokenizer of byte pairs, without the marks that it adds. content: that of tokenizer.json.

    Raises ValueError for another kind of tokenizer.
    """
    if content["model"]["type"] != "BPE" or "ByteLevel" not in str(content["decoder"]):
        raise ValueError(f"its model is {content['model']['type']}, not byte-level BPE as that of GPT-2 and Llama 3")
    tokenizer = BytePairTokenizer(Backend.from_str(json.dumps(content | UNLIMITED | {"post_processor": None})))
    return Foreign(tokenizer, [*range(tokenizer.vocab_size)])
