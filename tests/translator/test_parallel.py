import re
from pathlib import Path

import pytest

from firstlight.data.options import SourceKind
from firstlight.data.sources import Source
from firstlight.errors import UserError
from firstlight.translator.corpus import ParallelFiles, find_pairs
from firstlight.translator.kind import check_pair_path
from firstlight.translator.options import PairOptions

pytestmark = pytest.mark.usefixtures("working_folder")

ENGLISH = ["A dog runs.", "Two men, sitting.", "The girl sings."]
GERMAN = ["Ein Hund läuft.", "Zwei Männer, sitzend.", "Das Mädchen singt."]


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


@pytest.mark.parametrize(("longer", "shorter"), [("en", "de"), ("de", "en")])
def test_a_line_without_its_translation_is_refused_with_its_place(longer, shorter):
    write_pair("mine/train")
    write(f"mine/train.{longer}", [*ENGLISH, "four", "five"])
    rows = find("mine").rows("train", ["en", "de"])
    assert [next(rows).line for _ in range(3)] == [1, 2, 3]
    message = f"mine/train.{longer}:4: mine/train.{shorter} has only 3 lines; each line requires a translation"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        next(rows)


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


def test_one_file_of_a_pair_is_answered_with_what_to_name():
    write_pair("mine")
    with pytest.raises(UserError, match=r"^data.path=mine.de is one of two files; name the common part, mine$"):
        check_pair_path(PairOptions(path="mine.de"))


def test_rows_beside_pairs_of_text_files_are_refused():
    write_pair("mine/train")
    write("mine/validation.jsonl", ['{"en": "a", "de": "b"}'])
    with pytest.raises(UserError, match=r"^mine has train.en and validation.jsonl; keep one kind of files$"):
        find("mine")
