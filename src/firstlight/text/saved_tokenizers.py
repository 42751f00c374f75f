"""Load a tokenizer of any kind from its JSON."""

import json

from tokenizers import Tokenizer as Backend

from firstlight.text.sentence_tokenizers import SENTENCES, SentenceTokenizer
from firstlight.text.text_tokenizers import BYTE_PAIRS, CHARACTERS, BytePairTokenizer, CharacterTokenizer
from firstlight.text.tokenizers import Tokenizer

AnyTokenizer = Tokenizer | CharacterTokenizer | BytePairTokenizer | SentenceTokenizer


def tokenizer_of_json(text: str) -> AnyTokenizer:
    """Return the tokenizer whose `to_json` wrote the text."""
    content = json.loads(text)
    match content.get("kind"):
        case kind if kind == CHARACTERS:
            return CharacterTokenizer(content["characters"], content["unknown_symbol"])
        case kind if kind == BYTE_PAIRS:
            return BytePairTokenizer(Backend.from_str(json.dumps(content["backend"])))
        case kind if kind == SENTENCES:
            return SentenceTokenizer.from_json(text)
        case _:
            return Tokenizer.from_json(text)
