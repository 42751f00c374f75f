import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.data import corpus, sources
from firstlight.data.corpus import Corpus, encode_text
from firstlight.data.corpus_options import CharacterOptions, Preparation, Split
from firstlight.data.options import SourceKind
from firstlight.data.sources import Source
from firstlight.data.store import SPLITS
from firstlight.data.text_sources import find_text
from firstlight.errors import UserError
from firstlight.text import plays
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.statistics import text_statistics
from firstlight.text.text_tokenizers import BytePairTokenizer, CharacterTokenizer, decode

SRC = Path(__file__).parents[2] / "src"
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


def source_and_options(file: Path, **options: Any) -> tuple[Source, CharacterOptions]:
    defaults = {"path": str(file), "cache_dir": str(file.parent / "cache"), "tokenizer": CHARACTERS}
    wanted = CharacterOptions(**(defaults | options))
    return find_text(wanted), wanted


def encode_file(file: Path, text: str | None = None, **options: Any) -> Corpus:
    """Return the encoded file of a test, with a cache next to the file."""
    if text is not None:
        file.write_text(text, encoding="utf-8", newline="")
    given = options.pop("given", None)
    return encode_text(*source_and_options(file, **options), given)


def encode_names(file: Path, text: str | None = None, **options: Any) -> Corpus:
    text = "\n".join(NAMES) if text is None else text
    fractions = {"validation_fraction": 0.1, "test_fraction": 0.1}
    return encode_file(file, text, **({"preparation": Preparation.lines} | fractions | options))


def cached(file: Path) -> list[Path]:
    """Return the folders in the cache, complete or not."""
    return sorted((file.parent / "cache" / "encoded").glob("*"))


def documents_of(encoded: Corpus, split: str) -> list[str]:
    return [decode(encoded.tokenizer, encoded.ids[row].tolist()) for row in encoded.rows_of(split)]


def text_of(encoded: Corpus, split: str) -> str:
    [text] = documents_of(encoded, split) or [""]
    return text


def passages_of(text: str) -> list[str]:
    """Return the passages, each with the blank lines after it."""
    return re.findall(r"(?s).+?\n\n+(?!\n)", text)


# --- the end of a text for validation ---


@pytest.mark.parametrize("characters_at_once", [1, 7, 101, 2**20])
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


@pytest.mark.parametrize("characters_at_once", [13, 2**20])
def test_a_test_split_comes_after_the_validation_split(file, monkeypatch, characters_at_once):
    monkeypatch.setattr(corpus, "CHARACTERS_AT_ONCE", characters_at_once)
    text = TEXT[:1009]
    encoded = encode_file(file, text, validation_fraction=0.1, test_fraction=0.2)
    assert [text_of(encoded, split) for split in SPLITS] == [text[:706], text[706:807], text[807:]]


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


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_text_is_the_same_whatever_ends_its_lines(file, end):
    encoded = encode_file(file, "\ufeff" + TEXT.replace("\n", end))
    assert text_of(encoded, "train") + text_of(encoded, "validation") == TEXT


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


def test_passages_are_taken_for_their_share_of_the_characters(file):
    longest = max(map(len, passages_of(TEXT)))
    encoded = encode_file(file, split=Split.passages, validation_fraction=0.2, test_fraction=0.1)
    for split, share in {"train": 0.7, "validation": 0.2, "test": 0.1}.items():
        assert len(text_of(encoded, split)) == pytest.approx(share * len(TEXT), abs=longest)


def test_passages_are_taken_from_everywhere(file):
    encoded = encode_file(file, split=Split.passages, validation_fraction=0.2)
    numbers = [int(passage.partition(".")[0]) for passage in passages_of(text_of(encoded, "validation"))]
    assert min(numbers) < 23
    assert max(numbers) > 188


def test_a_line_of_white_space_ends_a_passage(file):
    passages = [f"\t{number}\n \t \n" for number in range(101)]
    encoded = encode_file(file, "".join(passages), split=Split.passages, validation_fraction=0.2)
    validation = text_of(encoded, "validation")
    assert len(validation) > 0
    assert set(re.findall(r"\t\d+\n \t \n", validation)) <= set(passages)
    assert "".join(re.findall(r"\t\d+\n \t \n", validation)) == validation


def test_the_seed_of_the_split_decides_which_passages_are_taken(file):
    taken = [text_of(encode_file(file, split=Split.passages, split_seed=seed), "validation") for seed in (3, 3, 4)]
    assert taken[0] == taken[1] != taken[2]


@pytest.mark.parametrize("preparation", [Preparation.text, Preparation.lines])
def test_the_test_split_stays_the_same_whatever_validation_takes(file, preparation):
    encode = encode_names if preparation is Preparation.lines else encode_file
    taken = [
        documents_of(encode(file, split=Split.passages, validation_fraction=share, test_fraction=0.1), "test")
        for share in (0.1, 0.3)
    ]
    assert taken[0] == taken[1] != []


def test_a_passage_that_is_longer_than_what_is_read_at_once_is_taken_in_parts(file, monkeypatch):
    monkeypatch.setattr(corpus, "CHARACTERS_AT_ONCE", 101)
    text = "".join(f"line {number}\n" for number in range(211))
    encoded = encode_file(file, text, split=Split.passages, validation_fraction=0.2)
    parts = [text_of(encoded, split).splitlines() for split in ("train", "validation")]
    assert sorted(chain(*parts)) == sorted(text.splitlines())
    assert 29 < len(parts[1]) <= 43


# --- one document per line ---


@TOKENIZERS
def test_lines_are_documents_of_which_four_fifths_are_learned(file, tokenizer):
    encoded = encode_names(file, tokenizer=tokenizer)
    found = {split: documents_of(encoded, split) for split in SPLITS}
    assert {split: len(documents) for split, documents in found.items()} == {"train": 80, "validation": 10, "test": 10}
    assert sorted(chain(*found.values())) == sorted(NAMES)
    for documents in found.values():
        assert documents == [name for name in NAMES if name in documents]


def test_documents_are_taken_by_their_number_and_not_by_their_length(file):
    names = ["a" * 1009, *(f"b{number}" for number in range(99))]
    encoded = encode_names(file, "\n".join(names))
    assert [len(encoded.rows_of(split)) for split in SPLITS] == [80, 10, 10]


def test_the_seed_of_the_split_decides_which_documents_are_taken(file):
    taken = [documents_of(encode_names(file, split_seed=seed), "validation") for seed in (3, 3, 4)]
    assert taken[0] == taken[1] != taken[2]


def test_a_document_is_a_line_without_the_white_space_around_it_and_blank_lines_are_none(file):
    encoded = encode_names(file, "\n\n  Anna \r\n \t \nMary Ann\nAnna\n\n")
    assert sorted(chain(*(documents_of(encoded, split) for split in SPLITS))) == ["Anna", "Anna", "Mary Ann"]


def test_the_separator_is_in_the_vocabulary(file):
    assert "." in encode_names(file).tokenizer.words
    assert "|" in encode_names(file, separator="|").tokenizer.words


@pytest.mark.parametrize("preparation", [Preparation.text, Preparation.plays])
def test_only_documents_have_a_separator(file, monkeypatch, preparation):
    monkeypatch.setattr(plays, "extract_plays", lambda text: "A play\n" * 61)
    assert "|" not in encode_file(file, separator="|", preparation=preparation).tokenizer.words


def test_a_separator_in_a_line_is_refused_with_its_line(file):
    text = "Anna\n\nBert\nSt. John\n"
    with pytest.raises(UserError, match=f"^{file}:4: the line contains the separator '.'; set data.separator$"):
        encode_names(file, text)
    assert cached(file) == []
    encode_names(file, text, separator="|")


# --- plays ---


def test_plays_are_taken_out_of_their_edition(file, monkeypatch):
    monkeypatch.setattr(plays, "extract_plays", lambda text: text[100:-100])
    encoded = encode_file(file, preparation=Preparation.plays)
    assert text_of(encoded, "train") + text_of(encoded, "validation") == TEXT[100:-100]
    assert encoded.statistics == asdict(text_statistics(TEXT[100:-100]))


@pytest.mark.parametrize(("preparation", "count"), [(Preparation.plays, 2), (Preparation.text, 1)])
def test_plays_that_are_prepared_otherwise_are_encoded_anew_and_no_other_text(file, monkeypatch, preparation, count):
    play = "ACT I\n\nANNA.\nBread!\n"
    encode_file(file, play * 11, preparation=preparation)
    monkeypatch.setattr(plays, "VERSION", 1009)
    encode_file(file, play * 11, preparation=preparation)
    assert len(cached(file)) == count


def test_the_sample_is_nothing_but_plays(file, monkeypatch):
    monkeypatch.setattr(sources, "read_sample", lambda path: TEXT.splitlines(keepends=True))
    encoded = encode_file(file, path=None, source=SourceKind.sample, preparation=Preparation.plays)
    assert text_of(encoded, "train") + text_of(encoded, "validation") == TEXT
    assert encoded.statistics["passages"] == 211


def test_a_text_without_plays_is_refused(file):
    with pytest.raises(UserError):
        encode_file(file, preparation=Preparation.plays)
    assert cached(file) == []


# --- the vocabulary ---


def test_characters_are_learned_from_the_training_part(file):
    encoded = encode_file(file, "ab" * 95 + "xy" * 5)
    assert encoded.tokenizer.words == ["\ufffd", "a", "b"]
    assert text_of(encoded, "validation") == "\ufffd" * 10


def test_without_an_unknown_symbol_a_character_that_only_validation_has_is_refused(file):
    options = TokenizerOptions(kind=TokenizerKind.char, unknown_symbol=None)
    with pytest.raises(UserError, match="the character 'x' is not in the vocabulary, which has no unknown symbol"):
        encode_file(file, "ab" * 95 + "xy" * 5, tokenizer=options)
    assert cached(file) == []
    assert encode_file(file, "ab" * 100, tokenizer=options).tokenizer.words == ["a", "b"]


def test_byte_pairs_are_learned_from_the_training_part(file):
    encoded = encode_file(file, "abab " * 95 + "xyxy " * 5, tokenizer=BYTE_PAIRS)
    assert "Ġabab" in encoded.tokenizer.words
    assert not any("xy" in word for word in encoded.tokenizer.words)
    assert text_of(encoded, "validation") == "xyxy " * 5


@pytest.mark.parametrize(
    "given", [CharacterTokenizer.train(["abc"], "?"), BytePairTokenizer.train(["abc abc"], 257)], ids=["char", "pairs"]
)
def test_a_given_tokenizer_is_used_as_it_is(file, given):
    encoded = encode_file(file, "abcd" * 50, given=given)
    assert encoded.tokenizer.words == given.words
    assert text_of(encoded, "validation") == ("cd" + "abcd" * 2 if given.unknown_id is None else "c?" + "abc?" * 2)


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


@pytest.mark.parametrize(("max_size", "dtype"), [(256, np.uint8), (257, np.int32)])
def test_byte_pairs_without_merges_are_of_one_byte(file, max_size, dtype):
    encoded = encode_file(file, tokenizer=TokenizerOptions(kind=TokenizerKind.subword, max_size=max_size))
    assert encoded.ids.ids.dtype == dtype
    assert text_of(encoded, "train") + text_of(encoded, "validation") == TEXT


def test_the_ids_stay_on_disk_and_are_not_changed_there(file):
    encoded = encode_file(file)
    assert isinstance(encoded.ids.ids, np.memmap)
    encoded.ids.ids[:] = 0
    assert text_of(encode_file(file), "train") == TEXT[: len(TEXT) - round(0.05 * len(TEXT))]


# --- the cache ---


@pytest.mark.parametrize("preparation", [Preparation.text, Preparation.lines])
def test_what_is_in_the_cache_is_not_read_again(file, preparation):
    file.write_text("\n".join(NAMES))
    source, options = source_and_options(file, preparation=preparation)
    first = encode_text(source, options)
    file.unlink()
    again = encode_text(source, options)
    assert np.array_equal(again.ids.ids, first.ids.ids)
    assert np.array_equal(again.ids.offsets, first.ids.offsets)
    assert np.array_equal(again.splits, first.splits)
    assert again.tokenizer.words == first.tokenizer.words
    assert again.statistics == first.statistics


@pytest.mark.parametrize(
    "change",
    [
        {"preparation": Preparation.lines},
        {"separator": "|"},
        {"split": Split.passages},
        {"validation_fraction": 0.1},
        {"test_fraction": 0.1},
        {"split_seed": 1},
        {"tokenizer": BYTE_PAIRS},
        {"tokenizer": TokenizerOptions(kind=TokenizerKind.char, max_size=None, unknown_symbol="?")},
        {"tokenizer": TokenizerOptions(kind=TokenizerKind.char, max_size=None, unknown_symbol=None)},
        {"given": CharacterTokenizer.train(NAMES, "\ufffd")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_changes_the_encoding_is_encoded_anew(file, change):
    text = "\n".join(NAMES)
    encode_file(file, text)
    encode_file(file, text, **change)
    assert len(cached(file)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"context_length": 7},
        {"batch_size": 7},
        {"evaluation_batch_size": 7},
        {"seed": 7},
        {"source": SourceKind.local},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_does_not_change_the_encoding_shares_it(file, change):
    encode_file(file)
    encode_file(file, **change)
    assert len(cached(file)) == 1


def test_another_byte_in_the_text_is_encoded_anew(file):
    encode_file(file)
    assert text_of(encode_file(file, TEXT.replace("é", "è")), "train").startswith(TEXT[:101].replace("é", "è"))
    assert len(cached(file)) == 2


def test_another_version_of_the_encoding_is_encoded_anew(file, monkeypatch):
    encode_file(file)
    monkeypatch.setattr(corpus, "VERSION", 1009)
    encode_file(file)
    assert len(cached(file)) == 2


def test_a_mistake_late_in_the_text_leaves_nothing(file):
    file.write_bytes(b"one line\n" * 1009 + b"\xff\n")
    with pytest.raises(UserError, match=f"{file}:1010: byte 0xff is not UTF-8; save the file as UTF-8 text"):
        encode_file(file)
    assert cached(file) == []


@pytest.mark.parametrize(
    ("text", "preparation"), [("\ufeff", Preparation.text), ("\ufeff", Preparation.lines), (" \n\n", Preparation.lines)]
)
def test_a_file_without_a_text_is_refused(file, text, preparation):
    with pytest.raises(UserError, match=f"^{file}: the file has no text; name another file$"):
        encode_file(file, text, preparation=preparation)
    assert cached(file) == []


ENCODE_BETWEEN_TWO_LINES = """
import sys
from firstlight.data import corpus
from firstlight.data.corpus_options import CharacterOptions
from firstlight.data.text_sources import find_text

def encode_when_told(*arguments, encode=corpus._encode):
    encode(*arguments)
    print("written", flush=True)
    sys.stdin.readline()

corpus._encode = encode_when_told
options = CharacterOptions(path=sys.argv[1], cache_dir=sys.argv[2])
print(len(corpus.encode_text(find_text(options), options).ids.ids))
"""


@pytest.fixture
def start(file: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start a process that encodes the file and waits just before the end."""
    started: list[subprocess.Popen[str]] = []

    def start_process() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", ENCODE_BETWEEN_TWO_LINES, str(file), str(file.parent / "cache")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"},
        )
        started.append(process)
        return process

    yield start_process
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow  # 0.4 s; test_encoding.py tests the cache with two processes
def test_two_processes_may_encode_the_same_at_once(file, start):
    processes = [start(), start()]
    for process in processes:
        assert process.stdout.readline() == "written\n"
    assert len(cached(file)) == 2  # both have written it completely, under their own names
    for process in processes:
        assert process.communicate("continue\n")[0] == f"{len(TEXT)}\n"
        assert process.returncode == 0
    [complete] = cached(file)
    assert not complete.name.startswith(".")
    assert text_of(encode_file(file, tokenizer=TokenizerOptions(kind=TokenizerKind.char)), "train")
    assert len(cached(file)) == 1
