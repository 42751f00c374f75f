"""Tests that the page encodes texts as firstlight does: every tokenizer, in a real browser."""

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from firstlight.generator.plays import clean
from firstlight.text import (
    BytePairTokenizer,
    CharacterTokenizer,
    SentenceTokenizer,
    TextWordTokenizer,
    TokenizerOptions,
    decode,
    train_subword_tokenizer,
    train_word_tokenizer,
)
from firstlight.text.options import TokenizerKind
from tests_support import some_text

STRANGE = [
    "It's a CAFÉ &amp; bar!!! 5/5 ... <br /> &quot;n&#233;e&quot; &amp;amp; &notit; &#x41;",
    "ΣΊΣΥΦΟΣ İstanbul ǅ ﬁne ½ ² Ⅷ １２ नमस्ते 中文 한국어 🙂👩‍👧 e\u0301 don’t o`clock",
    "tab\there\r\nnew\n\n\nline\u00a0space\u2003wide\u200bzero\ufeffmark\x1cfile\x85next",
    "don't we'll I'VE  two  spaces   and  end ",
    "||| a pair ||| of texts |||",
    "[PAD] [UNK] [START] </script><!-- ## # word_with_under_scores 3rd x",
    "“quoted” “words” ‘and’ — dashes – “",
    '1 GENTLEMAN. "Hear ("you") me" &c. Æon\tthe  _Exeunt_ 12. x',
    "a" * 130 + " " + "é" * 60 + "!" * 7,
    " ",
    "",
]
LETTERS = "abc ABC éßΣ'’.,!?-_&<>\n\t 123½漢🙂\u0301\u200d|#\u00a0"


@cache
def texts() -> list[str]:
    """Return strange texts, ordinary sentences, and random ones."""
    drawn = random.Random(3)
    made = ["".join(drawn.choices(LETTERS, k=drawn.randint(1, 60))) for _ in range(200)]
    return STRANGE + some_text(4000).splitlines()[:40] + made


TRAIN: dict[str, Callable[[], Any]] = {
    "characters": lambda: CharacterTokenizer.train(texts()[:30], unknown_symbol="\ufffd"),
    "byte pairs": lambda: BytePairTokenizer.train(texts() * 2, vocab_size=400),
    "words of a text": lambda: TextWordTokenizer.train(texts() * 2, vocab_size=500),
    "words": lambda: train_word_tokenizer(texts()),
    "words and marks": lambda: train_word_tokenizer(texts()[:60], punctuation=True),
    "subwords": lambda: train_subword_tokenizer(texts()[:90] * 2, vocab_size=300),
    "words of sentences": lambda: SentenceTokenizer.train(texts()[:60], TokenizerOptions(min_document_frequency=1)),
    "pieces of sentences": lambda: SentenceTokenizer.train(texts() * 2, TokenizerOptions(TokenizerKind.subword, 400)),
}


@cache
def tokenizer_of(name: str) -> Any:
    return TRAIN[name]()


@pytest.mark.parametrize("name", TRAIN)
def test_the_ids_are_those_of_the_tokenizer(page: Any, name: str) -> None:
    tokenizer, asked = tokenizer_of(name), texts()
    encode = "([json, texts]) => { const { ids } = openTokenizer(json); return texts.map(ids); }"
    found = page.evaluate(encode, [json.loads(tokenizer.to_json()), asked])
    for text, ids, expected in zip(asked, found, tokenizer.encode_batch(asked), strict=True):
        assert ids == expected.tolist(), repr(text)


@pytest.mark.parametrize("kind", ["words", "subwords"])
def test_pairs_have_their_marks_and_are_cut_alike(page: Any, kind: str) -> None:
    from firstlight.data.options import Truncation
    from firstlight.data.tables import fitted

    tokenizer = train_word_tokenizer(texts(), pairs=True)
    if kind == "subwords":
        tokenizer = train_subword_tokenizer(texts()[:90] * 2, vocab_size=300, pairs=True)
    asked = [
        f"{first} ||| {second}" for first in texts()[:25] for second in texts()[10:40:6] if "|||" not in first + second
    ]
    ids = tokenizer.encode_batch(asked)
    for truncation in Truncation:
        description = {"kind": "classifier", "truncation": truncation.name, "options": {"context_length": 12}}
        encode = "([more, texts]) => { const r = openReader(more); return texts.map((t) => [...r.encode(t).ids]); }"
        found = page.evaluate(encode, [{**description, "tokenizers": [json.loads(tokenizer.to_json())]}, asked])
        assert found == [row.tolist() for row in fitted(ids, tokenizer, 12, truncation)]


def test_the_windows_of_long_texts_are_alike(page: Any) -> None:
    from firstlight.text.ragged import window_starts

    tokenizer = tokenizer_of("words")
    more = {"kind": "classifier", "truncation": "head", "long_texts": "windows", "options": {"context_length": 5}}
    windows = "texts.map((text) => reader.encode(text).windows.map((ids) => [...ids]))"
    encode = f"([more, texts]) => {{ const reader = openReader(more); return {windows}; }}"
    found = page.evaluate(encode, [{**more, "tokenizers": [json.loads(tokenizer.to_json())]}, texts()])
    ids = tokenizer.encode_batch(texts())
    counts, firsts = window_starts(ids.lengths, 5)
    rows = np.repeat(np.arange(len(ids)), counts)
    expected = [ids[row][first : first + 5].tolist() for row, first in zip(rows, firsts, strict=True)]
    assert [window for windows in found for window in windows] == expected
    assert [len(windows) for windows in found] == counts.tolist()


@pytest.mark.parametrize("name", ["characters", "byte pairs", "words of a text"])
def test_ids_are_decoded_alike(page: Any, name: str) -> None:
    tokenizer, drawn = tokenizer_of(name), random.Random(5)
    rows = [[drawn.randrange(tokenizer.vocab_size) for _ in range(9)] for _ in range(100)]
    spell = (
        "([json, rows]) => { const { piece } = openTokenizer(json); return rows.map((ids) => utf8(ids.map(piece))); }"
    )
    found = page.evaluate(spell, [json.loads(tokenizer.to_json()), rows])
    assert found == [decode(tokenizer, ids) for ids in rows]


def test_prompts_are_prepared_like_the_plays(page: Any) -> None:
    assert page.evaluate("(texts) => texts.map(cleanPlay)", texts()) == [clean(text) for text in texts()]


def test_a_character_outside_the_vocabulary_is_an_error(page: Any) -> None:
    tokenizer = CharacterTokenizer.train(["to be"], unknown_symbol=None)
    encode = """(json) => { try { openTokenizer(json).ids("tab"); } catch (error) { return error.message; } }"""
    assert "the character 'a' is not in the vocabulary" in page.evaluate(encode, json.loads(tokenizer.to_json()))
