"""Loading of tokenizers of all kinds from JSON."""

import json
from typing import Any

from tokenizers import Tokenizer as Backend

from firstlight.errors import UserError
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

AnyTokenizer = Tokenizer | CharacterTokenizer | BytePairTokenizer | SentenceTokenizer
KINDS: dict[str, type[BytePairTokenizer | SentenceTokenizer]] = {
    BYTE_PAIRS: BytePairTokenizer,
    TEXT_WORDS: TextWordTokenizer,
    SENTENCES: SentenceTokenizer,
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


def _whole(backend: Backend) -> Backend:
    """Return the tokenizer. Raises ValueError if it has no unknown token, or if its ids are not 0, 1, 2, …"""
    ids = sorted(backend.get_vocab().values())
    if ids != list(range(len(ids))):
        raise ValueError(f"its {len(ids)} ids are not 0 to {len(ids) - 1}")
    unknown: Any = getattr(backend.model, "unk_token", None)
    if unknown is not None and unknown not in backend.get_vocab(with_added_tokens=False):
        raise ValueError(f"its vocabulary has no {unknown}")
    return backend
