import random
import re
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.data import sources
from firstlight.data.options import SourceKind
from firstlight.data.store import SPLITS
from firstlight.errors import UserError
from firstlight.generator import corpus
from firstlight.generator.corpus import Corpus, encode_text, find_text
from firstlight.generator.options import CharacterOptions, Preparation, Split
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.text_tokenizers import decode
from split_folders import cached
from tests_support import write_packed

CHARACTERS = TokenizerOptions(kind=TokenizerKind.char, max_size=None)
BYTE_PAIRS = TokenizerOptions(kind=TokenizerKind.subword, max_size=271)
TOKENIZERS = pytest.mark.parametrize("tokenizer", [CHARACTERS, BYTE_PAIRS], ids=["characters", "byte pairs"])
SPLITTINGS = pytest.mark.parametrize("split", Split, ids=lambda split: split.value)


def made_up(num_passages: int, seed: int = 3) -> str:
    """Return a text of numbered passages of different lengths, with one to three blank lines between them."""
    rng = random.Random(seed)
    passages = [
        f"{number}." + "".join(rng.choices(["a", "b", "cd", " é", "日", "𝕏", "\nf"], k=rng.randrange(61)))
        for number in range(num_passages)
    ]
    return "".join(passage + "\n" * rng.randrange(2, 5) for passage in passages)


TEXT = made_up(211)
NAMES = [f"{letter}{number}na" for number in range(20) for letter in "ABCDÉ"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of the text of a test."""
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def encode_file(file: Path, text: str | None = None, **options: Any) -> Corpus:
    """Return the encoded file of a test, with a cache next to the file."""
    if text is not None:
        file.write_text(text, encoding="utf-8", newline="")
    defaults = {"path": str(file), "cache_dir": str(file.parent / "cache"), "tokenizer": CHARACTERS}
    wanted = CharacterOptions(**(defaults | options))
    return encode_text(find_text(wanted), wanted)


def encode_names(file: Path, text: str | None = None, **options: Any) -> Corpus:
    text = "\n".join(NAMES) if text is None else text
    fractions = {"validation_fraction": 0.1, "test_fraction": 0.1}
    return encode_file(file, text, **({"preparation": Preparation.lines} | fractions | options))


def documents_of(encoded: Corpus, split: str) -> list[str]:
    return [decode(encoded.tokenizer, encoded.ids[row].tolist()) for row in encoded.rows_of(split)]


def text_of(encoded: Corpus, split: str) -> str:
    [text] = documents_of(encoded, split) or [""]
    return text


def passages_of(text: str) -> list[str]:
    """Return the passages, each with the blank lines after it."""
    return re.findall(r"(?s).+?\n\n+(?!\n)", text)


# --- the end of a text for validation ---


@pytest.mark.parametrize("characters_at_once", [1, 101, 2**20])
@TOKENIZERS
def test_a_sequential_split_is_cut_to_the_character_however_the_text_is_read(
    file, monkeypatch, tokenizer, characters_at_once
):
    monkeypatch.setattr(corpus, "CHARACTERS_AT_ONCE", characters_at_once)
    encoded = encode_file(file, tokenizer=tokenizer)
    end = len(TEXT) - round(0.05 * len(TEXT))
    assert text_of(encoded, "train") == TEXT[:end]
    assert text_of(encoded, "validation") == TEXT[end:]
    assert encoded.splits.tolist() == [0, 1]  # one document each, and none for an empty split
    assert encoded.statistics == {"characters": len(TEXT)}
    encoded = encode_file(file, TEXT[:1009], validation_fraction=0.1, test_fraction=0.2)
    assert [text_of(encoded, split) for split in SPLITS] == [TEXT[:706], TEXT[706:807], TEXT[807:1009]]


@pytest.mark.parametrize(
    "text", ["x", "xy", "\n\n\n", "a" * 1009, "\n\na\n\n\n\nb", "one\ntwo\nthree", " \n\t\n\u2028\n"]
)
@pytest.mark.parametrize("characters_at_once", [1, 2**20])
@SPLITTINGS
def test_nothing_of_an_unusual_text_is_lost_or_doubled(file, monkeypatch, split, characters_at_once, text):
    monkeypatch.setattr(corpus, "CHARACTERS_AT_ONCE", characters_at_once)
    fractions = {"validation_fraction": 0.3, "test_fraction": 0.3}
    encoded = encode_file(file, text, split=split, tokenizer=BYTE_PAIRS, **fractions)
    parts = "".join(text_of(encoded, name) for name in SPLITS)
    assert parts == text if split is Split.sequential else sorted(parts) == sorted(text)


# --- passages for validation ---


@pytest.mark.parametrize("characters_at_once", [131, 2**20])  # the longest passage has fewer
@TOKENIZERS
def test_passages_are_whole_and_each_is_in_one_split(file, monkeypatch, tokenizer, characters_at_once):
    monkeypatch.setattr(corpus, "CHARACTERS_AT_ONCE", characters_at_once)
    encoded = encode_file(file, tokenizer=tokenizer, split=Split.passages, validation_fraction=0.2, test_fraction=0.1)
    found = {split: passages_of(text_of(encoded, split)) for split in SPLITS}
    everything = passages_of(TEXT)
    assert len(everything) == 211
    assert sorted(chain(*found.values())) == sorted(everything)
    for split, passages in found.items():
        assert "".join(passages) == text_of(encoded, split)
        assert passages == [passage for passage in everything if passage in passages]  # in the order of the text
    for split, share in {"train": 0.7, "validation": 0.2, "test": 0.1}.items():
        assert len(text_of(encoded, split)) == pytest.approx(share * len(TEXT), abs=max(map(len, everything)))
    numbers = [int(passage.partition(".")[0]) for passage in found["validation"]]
    assert min(numbers) < 23 < 188 < max(numbers)  # from everywhere


@pytest.mark.parametrize("preparation", [Preparation.text, Preparation.lines])
def test_the_seed_decides_the_splits_and_the_test_split_stays_the_same_whatever_validation_takes(file, preparation):
    encode = encode_names if preparation is Preparation.lines else encode_file
    options = {"split": Split.passages, "test_fraction": 0.1}
    one, again, other = (documents_of(encode(file, split_seed=n, **options), "validation") for n in (3, 3, 4))
    assert one == again != other
    taken = [documents_of(encode(file, **options, validation_fraction=share), "test") for share in (0.1, 0.3)]
    assert taken[0] == taken[1] != []


# --- one document per line ---


def test_a_separator_in_a_line_is_refused_with_its_line(file):
    text = "  Anna\n \t \nBert\nSt. John\n"
    with pytest.raises(UserError, match=f"^{file}:4: the line contains the separator '.'; set data.separator$"):
        encode_names(file, text)
    assert cached(file) == []
    encoded = encode_names(file, text, separator="|")  # blank lines and the white space around a line are removed
    assert sorted(chain(*(documents_of(encoded, split) for split in SPLITS))) == ["Anna", "Bert", "St. John"]


# --- plays ---


def test_the_sample_is_nothing_but_plays(file, monkeypatch):
    write_packed(file.parent / "samples" / "plays.txt.bz2", TEXT)
    monkeypatch.setattr(sources, "SAMPLES", file.parent / "samples")
    encoded = encode_file(file, path=None, source=SourceKind.sample, preparation=Preparation.plays)
    assert text_of(encoded, "train") + text_of(encoded, "validation") == TEXT
    assert encoded.statistics["passages"] == 211


# --- the vocabulary ---


def test_without_an_unknown_symbol_a_character_that_only_validation_has_is_refused(file):
    options = TokenizerOptions(kind=TokenizerKind.char, unknown_symbol=None)
    with pytest.raises(UserError, match="the character 'x' is not in the vocabulary, which has no unknown symbol"):
        encode_file(file, "ab" * 95 + "xy" * 5, tokenizer=options)
    assert cached(file) == []
    assert encode_file(file, "ab" * 100, tokenizer=options).tokenizer.words == ["a", "b"]


# --- the storage of ids ---


@pytest.mark.parametrize(
    ("num_characters", "dtype"), [(3, np.uint8), (255, np.uint8), (256, np.int32), (257, np.int32)]
)
def test_ids_are_of_one_byte_where_the_vocabulary_allows(file, num_characters, dtype):
    alphabet = "".join(map(chr, range(0x3041, 0x3041 + num_characters)))
    text = alphabet * 23
    encoded = encode_file(file, text)  # the unknown symbol is another one
    assert encoded.tokenizer.vocab_size == num_characters + 1
    assert encoded.ids.ids.dtype == dtype
    assert text_of(encoded, "train") + text_of(encoded, "validation") == text


# --- the cache ---


@pytest.mark.parametrize(
    ("content", "preparation", "message"),
    [
        ("\ufeff", Preparation.text, ": the file has no text; name another file$"),
        (" \n\n", Preparation.lines, ": the file has no text; name another file$"),
        ("no play", Preparation.plays, None),
        (b"one line\n" * 1009 + b"\xff\n", Preparation.text, ":1010: byte 0xff is not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_file_without_a_text_is_refused_and_leaves_nothing(file, content, preparation, message):
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message and f"^{file}{message}"):
        encode_file(file, preparation=preparation)
    assert cached(file) == []
