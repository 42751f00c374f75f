import bz2
import gzip
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from firstlight.errors import UserError
from firstlight.files import lines as files_by_line
from firstlight.files import rows as files
from firstlight.files.lines import read_text
from firstlight.files.rows import check_output, dataset_files, read_rows, row_writer

TABLES = yaml.safe_load(Path(__file__).with_name("files.yaml").read_text(encoding="utf-8"))
REVIEWS = [{"id": 2, "text": "Good.", "label": 4}, {"id": 3, "text": "Bad, really", "label": 0}]


@pytest.fixture
def make(tmp_path):
    """Write a file of the given name and content, and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def values(path: Path, *columns: str) -> list[dict[str, Any]]:
    return [row.values for row in read_rows(path, columns)]


def lines(path: Path) -> list[int]:
    return [row.line for row in read_rows(path)]


# --- reading ---


@pytest.mark.parametrize(("name", "content", "rows", "numbers"), TABLES["good"])
def test_a_file_is_read_as_its_rows_with_their_lines(make, name, content, rows, numbers):
    path = make(name, content)
    assert values(path) == rows
    assert lines(path) == numbers
    if name.endswith(".txt"):
        assert "".join(read_text(path)).split("\n")[: len(rows)] == [row["text"] for row in rows]


def test_parquet_rows_are_read_with_their_types(tmp_path):
    path = tmp_path / "reviews.parquet"
    parquet.write_table(pa.Table.from_pylist(REVIEWS), path)
    assert values(path) == REVIEWS
    assert lines(path) == [1, 2]
    assert list(values(path, "label", "text")[1]) == ["label", "text"]
    with pytest.raises(UserError, match=r"reviews.parquet: the column 'body' does not exist; .* are id, text, label"):
        values(path, "body")


def test_parquet_rows_are_numbered_across_batches(tmp_path):
    path = tmp_path / "numbers.parquet"
    parquet.write_table(pa.table({"number": range(1, 5004)}), path, row_group_size=1009)
    assert all(row.line == row.values["number"] for row in read_rows(path))


def test_rows_are_streamed(make):
    rows = read_rows(make("r.jsonl", '{"a": 1}\nbroken\n'))
    assert next(rows).values == {"a": 1}


ROWS = [{"text": "é, one", "label": "1"}, {"text": "two", "label": "0"}]
CSV = 'text,label\n"é, one",1\ntwo,0\n'


@pytest.mark.parametrize("name", ["r.csv.gz", "r.csv.bz2", "r.csv.zip", "r.zip"])
def test_a_packed_file_is_read_as_the_file_in_it(tmp_path, name):
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(CSV.encode()))
    elif name.endswith(".bz2"):
        (tmp_path / name).write_bytes(bz2.compress(CSV.encode()))
    else:
        with ZipFile(tmp_path / name, "w", ZIP_DEFLATED) as archive:
            archive.writestr("folder/r.csv", CSV)
            archive.writestr("__MACOSX/._r.csv", "")
    assert values(tmp_path / name) == ROWS
    assert "".join(read_text(tmp_path / name)) == CSV
    assert lines(tmp_path / name) == [2, 3]


def test_an_archive_of_two_files_and_one_that_expands_too_far_are_refused(tmp_path, monkeypatch):
    with ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    with pytest.raises(UserError, match=r"two.zip: the archive must have one file, not 2; unpack it, and name one"):
        values(tmp_path / "two.zip")
    monkeypatch.setattr(files_by_line, "SMALL", 10_000)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"text\n" + b"a\n" * 100_000))
    with pytest.raises(UserError, match=r"bomb.csv.gz: the file expands to more than 200 times its size"):
        values(tmp_path / "bomb.csv.gz")
    (tmp_path / "plain.csv").write_bytes(b"text\n" + b"a\n" * 10_000)
    assert len(values(tmp_path / "plain.csv")) == 10_000


@pytest.mark.parametrize(("name", "separator"), [("r.csv", ";"), ("r.csv", "|"), ("r.csv", "\t"), ("r.tsv", ",")])
def test_the_character_between_columns_is_recognized_and_said_once(make, caplog, name, separator):
    caplog.set_level(logging.INFO, "firstlight")
    path = make(name, f'text{separator}label\n"é, one"{separator}1\ntwo{separator}0\n')
    assert values(path, "text", "label") == values(path) == ROWS
    [record] = caplog.records
    assert record.getMessage() == f"{path}: the columns are separated by {separator!r}; " + (
        "data.separator sets another character"
    )


@pytest.mark.parametrize(("separator", "row"), [("/", {"a;c": "1", "b": "2"}), (",", {"a;c/b": "1/2"})])
def test_a_given_separator_is_used(make, separator, row):
    path, layout = make("r.csv", "a;c/b\n1/2\n"), files.Layout(separator=separator)
    assert [each.values for each in read_rows(path, (), layout)] == [row]


def test_other_encodings_are_read_and_a_byte_order_mark_is_said(make, caplog):
    caplog.set_level(logging.INFO, "firstlight")
    layout = files.Layout(encoding="cp1252")
    assert [row.values for row in read_rows(make("r.csv", CSV.encode("cp1252")), (), layout)] == ROWS
    assert not caplog.records
    path = make("marked.csv", CSV.encode("utf-8-sig"))
    assert [row.values for row in read_rows(path, (), layout)] == values(path) == ROWS
    assert caplog.messages == [f"{path}: read as UTF-8, because it begins with a byte-order mark"]
    with pytest.raises(UserError, match=r"r.csv:2: byte 0xe9 is not UTF-8; .*, or set data.encoding, such as cp1252"):
        values(make("r.csv", CSV.encode("cp1252")))


def test_the_first_sheet_of_an_excel_file_is_read_as_text(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    path = tmp_path / "r.xlsx"
    pd.DataFrame({"text": ["Good.", None, "NA"], "label": [4, None, 0]}).to_excel(path, index=False)
    assert [(row.line, row.values) for row in read_rows(path)] == [
        (2, {"text": "Good.", "label": "4"}),
        (4, {"text": "NA", "label": "0"}),
    ]
    with pytest.raises(UserError, match=r"r.xlsx:1: the column 'body' does not exist; the columns are text, label"):
        values(path, "body")
    with pytest.raises(UserError, match=r"r.xlsx: the file is a spreadsheet; save it as text"):
        next(read_text(path))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UserError, match=r"extra excel; install firstlight\[excel\] with pip, or save .* CSV"):
        values(path)


# --- errors ---


BAD = TABLES["bad"] + [
    ["r.json", "[\n" + "[" * 100_003, "r.json:1: the file is not a JSON array"],
    ["r.jsonl", "[" * 100_003, "r.jsonl:1: the line is not a JSON object"],
]
PACKED = {
    gzip.compress(b"text,label\na,1\nb\n", mtime=0): "r.csv.gz:3: the row has 1 fields, but the header has 2",
    gzip.compress(b"text,label\na,1\n" * 9, mtime=0)[:-9]: "r.csv.gz: the file cannot be unpacked",
}
BAD += [["r.csv.gz", content.decode("latin-1"), message] for content, message in PACKED.items()]


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_a_bad_file_is_refused_with_its_line_and_a_remedy(make, name, content, message):
    with pytest.raises(UserError, match=message) as caught:
        values(path := make(name, content.encode("latin-1")))
    assert "\n" not in str(caught.value)
    if content == "PK\x03\x04":
        with pytest.raises(UserError, match=f"{name}: the file is (compressed|a spreadsheet)"):
            next(read_text(path))


@pytest.mark.parametrize(("name", "line"), [("r.csv", ":1"), ("r.jsonl", ":1")])
def test_a_missing_column_is_named_with_those_there_are(name, line, tmp_path):
    write(tmp_path / name, REVIEWS)
    assert list(values(tmp_path / name, "label", "text")[1]) == ["label", "text"]
    with pytest.raises(UserError, match=f"{name}{line}: the column 'body' does not exist; .* are id, text, label"):
        values(tmp_path / name, "body")


@pytest.mark.timeout(60)  # comparing each of 100,000 columns with all others took minutes
def test_a_hundred_thousand_columns_are_read_and_a_missing_one_is_one_short_line(make):
    names = [f"c{number}" for number in range(100_003)]
    path = make("wide.csv", f"text,{','.join(names)}\ngood{',7' * len(names)}\n")
    assert values(path, "text", names[-1]) == [{"text": "good", names[-1]: "7"}]
    with pytest.raises(UserError, match=r"wide.csv:1: the column 'body' does not exist; .* and 99,984 more"):
        values(path, "body")


def test_parquet_with_a_text_that_is_no_utf_8_is_refused(tmp_path):
    path = tmp_path / "r.parquet"
    parquet.write_table(pa.table({"text": pa.array(["plain words"])}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"plain words", b"plain\xffwords"))
    with pytest.raises(UserError, match=r"the Parquet file is broken .*can't decode byte 0xff"):
        values(path, "text")


def test_an_open_quote_does_not_read_all_of_a_large_file(make, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_FIELD", 1009)
    with pytest.raises(UserError, match=r"r.csv:2: field larger than field limit \(1009\); close every quote"):
        values(make("r.csv", 'text\n"' + "never closed\n" * 101))


def test_a_path_that_is_no_file_is_refused_at_once(make, tmp_path):
    make("reviews.csv", "text\na\n")
    with pytest.raises(UserError, match=r"No such file or directory; did you mean '.*/reviews.csv'\?$"):
        read_rows(tmp_path / "review.csv")
    with pytest.raises(UserError, match="No such file or directory; check the name"):
        read_rows(tmp_path / "nowhere" / "reviews.csv")
    with pytest.raises(UserError, match="File name too long"):
        read_rows(tmp_path / ("good " * 101))
    with pytest.raises(UserError, match="is a folder; name a file in it"):
        read_rows(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(make):
    path = make("r.csv", "text\na\n")
    path.chmod(0)
    with pytest.raises(UserError, match="no permission to read it"):
        read_rows(path)


# --- writing ---


def write(path: Path, rows: list[dict[str, Any]], columns: Sequence[str] = ()) -> None:
    with row_writer(path, columns or list(rows[0])) as write_row:
        for row in rows:
            write_row(row)


@given(texts=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
@settings(deadline=None)
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_any_text_comes_back_as_written(tmp_path_factory, ending, texts):
    path = tmp_path_factory.mktemp("written") / f"out.{ending}"
    write(path, [{"n": number, "text": text} for number, text in enumerate(texts)])
    assert [(int(row["n"]), row["text"]) for row in values(path)] == list(enumerate(texts))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_a_lone_surrogate_is_written(tmp_path, ending):
    write(path := tmp_path / f"out.{ending}", [{"text": "a\ud800b"}])
    assert values(path)[0]["text"] in ("a\ud800b", r"a\ud800b")


def test_numbers_in_csv_are_not_quoted_and_no_rows_are_a_header(tmp_path):
    path = tmp_path / "out.csv"
    write(path, [{"text": "good", "score": 0.5}])
    assert path.read_text() == '"text","score"\n"good",0.5\n'
    write(path, [], ["text", "score"])
    assert path.read_text() == '"text","score"\n'


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_nothing_is_written_half(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), row_writer(path, ["text"]) as write_row:
        write_row({"text": "first"})
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.xlsx", "the ending '.xlsx' is not supported; use .csv, .tsv or .jsonl"),
        ("nowhere/out.csv", "the folder .*nowhere does not exist; create it"),
        ("folder.csv", "is a folder; name a file"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path, name, message):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UserError, match=message):
        check_output(tmp_path / name)


# --- folders ---


def test_the_splits_of_a_folder_are_found_in_their_order(make, tmp_path):
    for name in ("test.parquet", "train.jsonl", "dev.csv", "README.md", "extra.csv", "train.zip"):
        make(name, "")
    expected = {"train": "train.jsonl", "validation": "dev.csv", "test": "test.parquet"}
    assert list(dataset_files(tmp_path).items()) == [(split, tmp_path / name) for split, name in expected.items()]
    for name in ("validation", "valid", "val", "VAL"):
        (tmp_path / "dev.csv").rename(tmp_path / f"{name}.tsv")
        assert dataset_files(tmp_path)["validation"] == tmp_path / f"{name}.tsv"
        (tmp_path / f"{name}.tsv").rename(tmp_path / "dev.csv")
    write_texts(tmp_path / "news", **{"20news-bydate-train__sci.med__58": "a", "20news-bydate-test__sci.med__59": "b"})
    folders = {split: tmp_path / f"news/20news-bydate-{split}" for split in ("train", "test")}
    assert dataset_files(tmp_path / "news") == folders


def test_a_folder_without_splits_is_refused(make, tmp_path):
    make("reviews.csv", "")
    with pytest.raises(UserError, match=r"has no split; expected train, validation, .* or test, ending in .csv"):
        dataset_files(tmp_path)
    with pytest.raises(UserError, match=r"is not a folder; name a folder with files such as train.jsonl"):
        dataset_files(tmp_path / "nowhere")


def test_two_files_for_one_split_are_refused(make, tmp_path):
    make("val.csv", "")
    make("dev.jsonl", "")
    with pytest.raises(UserError, match=r"dev.jsonl and val.csv are both the validation split; remove one"):
        dataset_files(tmp_path)


def write_texts(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="latin-1")
    return folder


def test_a_folder_with_a_folder_of_texts_for_each_class_is_read(tmp_path, caplog):
    caplog.set_level(logging.INFO, "firstlight")
    both = {"train__pos__1": "Good.", "train__neg__2": "Bad,\n\nreally.", "test__neg__3": "Caf\u00e9."}
    folder = write_texts(tmp_path, **both, train__unsup__4="?", train__urls="", train__pos___="")
    (folder / "train/pos/_").rename(folder / "train/pos/.DS_Store")
    assert dataset_files(folder) == {"train": folder / "train", "test": folder / "test"}
    assert dataset_files(folder / "train", "test") == {"test": folder / "train"}
    rows = values(folder / "train", "label", "text")
    assert rows == [{"label": "neg", "text": "Bad,\n\nreally."}, {"label": "pos", "text": "Good."}]
    assert caplog.messages == [f"{folder}/train: the texts of unsup have no label and are left out"]
    with pytest.raises(UserError, match=r"test/neg/3:1: byte 0xe9 is not UTF-8"):
        values(folder / "test")
    assert [row.values["text"] for row in read_rows(folder / "test", (), files.Layout(encoding="latin-1"))] == [
        "Caf\u00e9."
    ]
    with pytest.raises(UserError, match=r"train:1: the column 'body' does not exist; the columns are text, label"):
        values(folder / "train", "body")


# --- a text for a generator ---


@pytest.mark.parametrize(
    "content", [b"one\n\n two \nthree", b"one\r\n\r\n two \r\nthree", b"\xef\xbb\xbfone\n\r\n two \rthree"]
)
def test_a_text_has_the_same_lines_whatever_ends_them(make, content):
    assert "".join(read_text(make("plays.txt", content))) == "one\n\n two \nthree"


def test_a_text_is_read_a_line_at_a_time(make):
    lines = read_text(make("plays.txt", "one\ntwo\r\n\nthree\x0bfour\u2028five"))
    assert list(lines) == ["one\n", "two\n", "\n", "three\x0bfour\u2028five"]


# --- files of other programs ---


@pytest.mark.parametrize(("ending", "line"), [("txt", 1), ("csv", 3), ("jsonl", 2)])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(ending, line, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files_by_line, "LONGEST_LINE", 50)
    path = tmp_path / f"a.{ending}"
    first = {"txt": "", "csv": "text,label\nGood.,1\n", "jsonl": '{"text": "Good.", "label": 1}\n'}[ending]
    path.write_bytes(first.encode() + bytes(1000))
    with pytest.raises(UserError, match=rf"a\.{ending}:{line}: the line has 50 bytes or more; divide it into lines"):
        list(read_rows(path))
    path.write_text(first + "x" * 40 + "\n")
    assert [text for _, text in files.read_lines(path)][-1] == "x" * 40 + "\n"


@pytest.mark.parametrize(("text", "rows"), [("some words", 100_000), ("x" * 20_000_000, 3)])
def test_a_parquet_file_that_expands_a_thousandfold_is_refused(text: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    parquet.write_table(pa.table({"text": repeated}), path, compression="zstd", store_schema=False)
    with pytest.raises(UserError, match=r"bomb.parquet: the Parquet file expands to far more than its [\d,]+ bytes"):
        next(read_rows(path))
