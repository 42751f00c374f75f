"""Loading of tokenizers of all kinds from JSON."""

import json
from typing import Any

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend
from tokenizers.normalizers import NFC, Replace, Sequence, Strip

from firstlight.errors import UserError
from firstlight.text.foreign_tokenizers import FRAMED, FramedTokenizer
from firstlight.text.sentence_tokenizers import SENTENCES, SentenceTokenizer
from firstlight.text.text_tokenizers import (
    BYTE_PAIRS,
    CHARACTERS,
    TEXT_WORDS,
    BytePairTokenizer,
    CharacterTokenizer,
    TextWordTokenizer,
)
from firstlight.text.tokenizers import Tokenizer

WHITE_SPACE = "[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"  # of Python's str.split
SEPARATORS = Replace(Regex("[\x1c-\x1f]"), " ")  # characters that are white space in Python, but not in the library
AnyTokenizer = Tokenizer | CharacterTokenizer | BytePairTokenizer | SentenceTokenizer
KINDS: dict[str, type[BytePairTokenizer | FramedTokenizer | SentenceTokenizer]] = {
    BYTE_PAIRS: BytePairTokenizer,
    TEXT_WORDS: TextWordTokenizer,
    SENTENCES: SentenceTokenizer,
    FRAMED: FramedTokenizer,
}


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
        raise UserError(
            f"tokenizer.json is not of the kind {kind} ({type(error).__name__}: {error}); export the run again"
        ) from error
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
