"""Tokenizers that another program trained: of BERT's kind, with marks around each text, or byte pairs."""

import json
from typing import Any, NamedTuple

from tokenizers import Tokenizer as Backend
from tokenizers.processors import TemplateProcessing

from firstlight.text.normalize import encodable
from firstlight.text.text_tokenizers import BytePairTokenizer
from firstlight.text.tokenizers import PAD, SPECIAL, UNK, Text, Tokenizer, tokens_of

FRAMED = "framed"  # the kind in a tokenizer's JSON
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
