import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firstlight.data import hub
from firstlight.data.options import SourceKind
from firstlight.data.sources import Source
from firstlight.errors import UserError
from firstlight.translator.data_options import PairOptions
from firstlight.translator.parallel import ParallelFiles, check_pair_path, find_pairs
from tests_support import shorten_sample

ENGLISH = ["A dog runs.", "Two men, sitting.", "The girl sings."]
GERMAN = ["Ein Hund läuft.", "Zwei Männer, sitzend.", "Das Mädchen singt."]


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without FIRSTLIGHT_DATA."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FIRSTLIGHT_DATA", raising=False)
    return folder


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests to a Hub that does not answer."""
    requests: list[str] = []

    def mirror(dataset_id: str, cache_dir: Path) -> hub.Mirror:
        requests.append(dataset_id)
        raise hub.UnreachableError("no route to host")

    monkeypatch.setattr(hub, "mirror", mirror)
    return requests


def write(path: str, lines: list[str], end: str = "\n") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(line + end for line in lines), encoding="utf-8", newline="")


def write_pair(stem: str, english: list[str] = ENGLISH, german: list[str] = GERMAN) -> None:
    write(f"{stem}.en", english)
    write(f"{stem}.de", german)


def find(path: str | None = None, **options) -> Source:
    return find_pairs(PairOptions(path=path, **options))


def texts(source: Source, split: str, *columns: str) -> list[tuple[str, ...]]:
    """Return the rows of a split as (line, text, text)."""
    return [
        (row.line, *(row.values[column].strip() for column in columns or ("en", "de")))
        for row in source.rows(split, columns or ("en", "de"))
    ]


EXPECTED = [(line, *both) for line, both in enumerate(zip(ENGLISH, GERMAN, strict=True), start=1)]

# --- files with two columns ---


def write_csv(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


WRITERS: dict[str, Callable[[Path, list[dict[str, object]]], object]] = {
    "csv": write_csv,
    "jsonl": lambda path, rows: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
    "parquet": lambda path, rows: pq.write_table(pa.Table.from_pylist(rows), path),
}


@pytest.mark.parametrize("ending", WRITERS)
def test_rows_with_two_columns_are_read_from_any_format(ending):
    rows = [{"de": german, "id": 7, "en": english} for english, german in zip(ENGLISH, GERMAN, strict=True)]
    WRITERS[ending](Path(f"mine.{ending}"), rows)
    source = find(f"mine.{ending}")
    assert (source.kind, source.where, source.splits) == (SourceKind.local, f"mine.{ending}", ["train"])
    first = 2 if ending == "csv" else 1  # the header is the first line
    assert texts(source, "train") == [(line + first - 1, *both) for line, *both in EXPECTED]
    assert source.texts("de", [2, 0]) == [GERMAN[2], GERMAN[0]]


# --- pairs of text files ---


def test_a_folder_of_pairs_of_text_files_is_its_splits():
    for name in ("test", "val", "train"):
        write_pair(f"mine/{name}", [f"A {name}", *ENGLISH], [f"Ein {name}", *GERMAN])
    write("mine/train.fr", ["Un chien."])
    write("mine/notes.txt", ["not a split"])
    source = find("mine")
    assert isinstance(source, ParallelFiles)
    assert (source.kind, source.where) == (SourceKind.local, "mine")
    assert source.splits == ["train", "validation", "test"]
    for split, name in {"train": "train", "validation": "val", "test": "test"}.items():
        assert texts(source, split) == [
            (1, f"A {name}", f"Ein {name}"),
            *((line + 1, *both) for line, *both in EXPECTED),
        ]


@pytest.mark.parametrize("name", ["validation", "valid", "val", "dev", "Dev"])
def test_the_validation_split_goes_by_several_names(name):
    write_pair("train")
    write_pair(name)
    assert find(".").splits == ["train", "validation"]


@pytest.mark.parametrize("stem", ["a/b/corpus", "news.v1", "./corpus"])
def test_what_two_names_have_in_common_is_a_training_split(stem):
    write_pair(stem)
    source = find(stem)
    assert (source.kind, source.where, source.splits) == (SourceKind.local, str(Path(stem)), ["train"])
    assert texts(source, "train") == EXPECTED
    assert source.place("train", 3) == f"{Path(stem)}.en:3"


@pytest.mark.parametrize(("stem", "path"), [("corpus", "corpus"), ("mine/train", "mine")])
def test_an_ending_may_have_a_dot(stem, path):
    write(f"{stem}.tok.en", ENGLISH)
    write(f"{stem}.tok.de", GERMAN)
    source = find(path, source_column="tok.en", target_column="tok.de")
    assert texts(source, "train", "tok.en", "tok.de") == EXPECTED


def test_a_folder_beside_a_pair_of_the_same_name_is_the_folder():
    write_pair("corpus")
    write_pair("corpus/train", ["inside"], ["innen"])
    assert texts(find("corpus"), "train") == [(1, "inside", "innen")]


def test_line_ends_and_byte_order_marks_are_no_text():
    write("corpus.en", ["\ufeffA dog.", "Two."], end="\r\n")
    write("corpus.de", ["Ein Hund.", "Zwei."], end="\n")
    assert texts(find("corpus"), "train") == [(1, "A dog.", "Ein Hund."), (2, "Two.", "Zwei.")]


def test_texts_of_some_rows_are_counted_through_all_splits_and_come_in_the_order_asked():
    write_pair("mine/train")
    write_pair("mine/test", ["T", "U"], ["t", "u"])
    source = find("mine")
    assert [text.strip() for text in source.texts("de", [4, 1, 3])] == ["u", GERMAN[1], "t"]
    assert [text.strip() for text in source.texts("en", [4, 1, 3])] == ["U", ENGLISH[1], "T"]


@pytest.mark.parametrize(("longer", "shorter"), [("en", "de"), ("de", "en")])
def test_a_line_without_its_translation_is_refused_with_its_place(longer, shorter):
    write_pair("mine/train")
    write(f"mine/train.{longer}", [*ENGLISH, "four", "five"])
    rows = find("mine").rows("train", ["en", "de"])
    assert [next(rows).line for _ in range(3)] == [1, 2, 3]
    message = f"mine/train.{longer}:4: mine/train.{shorter} has only 3 lines; each line requires a translation"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        next(rows)


def test_broken_bytes_are_refused_with_the_file_they_are_in():
    write_pair("corpus")
    Path("corpus.de").write_bytes(b"Ein\n\xff\nDas\n")
    with pytest.raises(UserError, match=r"^corpus.de:2: byte 0xff is not UTF-8"):
        texts(find("corpus"), "train")


# --- a missing side ---


@pytest.mark.parametrize("ending", ["en", "de"])
def test_a_split_in_one_language_beside_others_in_two_is_refused(ending):
    write_pair("mine/train")
    write_pair("mine/of_our_own")
    write("mine/notes.en", ["not a split"])
    assert find("mine").splits == ["train"]
    write(f"mine/val.{ending}", ENGLISH)
    other = {"en": "de", "de": "en"}[ending]
    with pytest.raises(UserError, match=rf"^mine/val.{ending} has no mine/val.{other} next to it"):
        find("mine")


def test_two_pairs_for_one_split_are_refused():
    for name in ("train", "val", "dev"):
        write_pair(f"mine/{name}")
    with pytest.raises(UserError, match=r"^mine: dev.en and val.en are both the validation split; remove one$"):
        find("mine")


# --- the order of the sources ---


@pytest.mark.parametrize("are_rows", [False, True])
def test_the_folder_of_all_data_is_looked_through_first(monkeypatch, asked, are_rows):
    """The choice is shared with the other data, see tests/data/test_sources.py."""
    monkeypatch.setenv("FIRSTLIGHT_DATA", "all")
    if are_rows:
        Path("all/multi30k").mkdir(parents=True)
        rows = [{"en": english, "de": german} for english, german in zip(ENGLISH, GERMAN, strict=True)]
        WRITERS["jsonl"](Path("all/multi30k/train.jsonl"), rows)
    else:
        write_pair("all/multi30k/train")
    write_pair("data/multi30k/train", ["no"], ["nein"])
    source = find()
    assert (source.kind, source.where) == (SourceKind.local, "all/multi30k")
    assert texts(source, "train") == EXPECTED
    assert asked == []


def test_what_is_not_local_is_asked_of_the_hub_and_generated_at_last(asked, caplog):
    source = find()
    assert asked == ["bentrevett/multi30k"]
    assert (source.kind, source.where) == (SourceKind.sample, "generated pairs 3")
    assert "The data multi30k was not found" in caplog.text
    assert "GENERATED SAMPLE" in caplog.text


def test_the_sample_is_generated_even_where_there_is_a_local_copy(monkeypatch, asked, caplog):
    write_pair("data/multi30k/train")
    shorten_sample(monkeypatch, {"train": 11, "validation": 3, "test": 5})
    source = find(source=SourceKind.sample)
    assert source.splits == ["train", "validation", "test"]
    assert [line for line, *_ in texts(source, "test")] == [1, 2, 3, 4, 5]
    assert source.place("test", 5) == "sample test:5"
    assert asked == []
    assert caplog.records == []


# --- a path, checked before anything is read ---


@pytest.mark.parametrize("path", ["missing", "./own/pairs", "a/b/c"])
def test_a_path_to_nothing_is_refused_with_the_two_files_that_would_do(path):
    message = f"data.path={path}: the file or folder does not exist, nor do {path}.en and {path}.de"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        check_pair_path(PairOptions(path=path))


# --- fingerprints ---


def test_one_byte_more_in_any_file_is_another_fingerprint():
    write_pair("mine/train")
    write_pair("mine/val")
    found = {find("mine").fingerprint, find("mine").fingerprint}
    for name in ("train.en", "train.de", "val.en", "val.de"):
        with Path(f"mine/{name}").open("a") as file:
            file.write("\n")
        found.add(find("mine").fingerprint)
    assert len(found) == 5


def test_a_fingerprint_is_of_the_content_and_the_direction_and_not_of_the_place():
    write_pair("one/train")
    write_pair("two/train")
    write_pair("corpus")
    write_pair("exchanged", GERMAN, ENGLISH)
    assert find("one").fingerprint == find("two").fingerprint == find("corpus").fingerprint
    assert find("corpus").fingerprint != find("exchanged").fingerprint


@pytest.mark.parametrize("ending", ["de"])
def test_one_file_of_a_pair_is_answered_with_what_to_name(ending):
    write_pair("mine")
    with pytest.raises(UserError, match=rf"^data.path=mine.{ending} is one of two files; name the common part, mine$"):
        check_pair_path(PairOptions(path=f"mine.{ending}"))


def test_rows_beside_pairs_of_text_files_are_refused():
    write_pair("mine/train")
    write("mine/validation.jsonl", ['{"en": "a", "de": "b"}'])
    with pytest.raises(UserError, match=r"^mine has train.en and validation.jsonl; keep one kind of files$"):
        find("mine")
