"""Whatever changes how data is encoded has its own folder of the cache, and nothing else, for each kind of data."""

from pathlib import Path
from typing import Any

import pytest

from firstlight.data import encoding
from firstlight.data.options import Labels, ReviewOptions, SourceKind, Truncation
from firstlight.data.sources import find_source
from firstlight.generator import corpus as texts
from firstlight.generator.options import CharacterOptions, Preparation, Split
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import CharacterTokenizer
from firstlight.text.tokenizers import train_word_tokenizer
from firstlight.translator import corpus as pairs
from firstlight.translator.corpus import PairTokenizers
from firstlight.translator.options import PairOptions
from split_folders import cached
from tests_support import write_lines

NAMES = [f"{letter}{number}na" for number in range(20) for letter in "ABCDÉ"]
TEXTS = {"text": "the a{0}", "title": "the b{0}", "en": "c{0} c", "de": "d{0} d", "fr": "le mot"}
ROWS = [{name: text.format(n) for name, text in TEXTS.items()} | {"label": n % 4, "stars": n % 3} for n in range(23)]
EVERY_WORD, BYTE_PAIRS = TokenizerOptions(min_document_frequency=1), TokenizerOptions("subword", max_size=271)
GIVEN = [SentenceTokenizer.train([text], EVERY_WORD) for text in ("the Wort", "das word")]
COMMON_CHANGES: list[dict[str, Any]] = [{"validation_fraction": 0.2}, {"split_seed": 1}, {"tokenizer": BYTE_PAIRS}]
KINDS: dict[str, tuple[Any, ...]] = {  # how to encode, options that share an encoding, and those that do not
    "reviews": (
        *(ReviewOptions, find_source, encoding.encode, encoding, {"tokenizer": EVERY_WORD, "labels": Labels.stars}),
        {"labels": Labels.binary, "context_length": 7, "truncation": Truncation.tail, "bucket_by_length": True},
        [
            *({"text_column": "title"}, {"label_column": "stars"}, {"labels": Labels.classes}, {"lowest_label": -1}),
            {"tokenizer": TokenizerOptions(min_document_frequency=2)},
            {"given": (train_word_tokenizer(["shared word"]),)},
            {"given": (None, ["1 star", "2 stars", "3 stars", "4 stars"])},
        ],
    ),
    "text": (
        *(CharacterOptions, texts.find_text, texts.encode_text, texts, {"tokenizer": TokenizerOptions("char")}),
        {"context_length": 7, "seed": 7, "source": SourceKind.local},
        [
            *({"preparation": Preparation.lines}, {"separator": "|"}, {"split": Split.passages}),
            *({"tokenizer": TokenizerOptions(TokenizerKind.char, unknown_symbol=each)} for each in ("?", None)),
            {"given": (CharacterTokenizer.train(NAMES, "\ufffd"),)},
        ],
    ),
    "pairs": (
        *(PairOptions, pairs.find_pairs, pairs.encode_pairs, pairs, {"tokenizer": EVERY_WORD}),
        {"context_length": 7, "batch_tokens": 7, "seed": 7, "skip_too_long": True},
        [
            *({"source_column": "fr"}, {"target_column": "fr"}, {"source_column": "de", "target_column": "en"}),
            {"shared_vocabulary": False},
            *({"given": (PairTokenizers(source, target),)} for source in GIVEN for target in GIVEN),
        ],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_changes_the_encoding_is_encoded_anew_and_nothing_else(kind: str, tmp_path: Path, monkeypatch) -> None:
    make, find, encode, module, options, same, changes = KINDS[kind]
    file = tmp_path / ("names.txt" if kind == "text" else "rows.jsonl")
    write_lines(file, ROWS)
    if kind == "text":
        file.write_text("\n".join(NAMES))

    def encode_with(given: tuple[Any, ...] = (), **others: Any) -> None:
        wanted = make(**{"path": str(file), "cache_dir": str(tmp_path / "cache")} | options | others)
        encode(find(wanted), wanted, *given)

    encode_with()
    encode_with(**same, evaluation_batch_size=7)
    assert len(cached(file)) == 1
    for number, change in enumerate([*COMMON_CHANGES, *changes], start=2):
        encode_with(**change)
        assert len(cached(file)) == number, change
    monkeypatch.setattr(module, "VERSION", 1009)
    encode_with()
    file.write_text(file.read_text().replace("d1", "d2").replace("A1", "A2"))
    encode_with()
    assert len(cached(file)) == len(COMMON_CHANGES) + len(changes) + 3
