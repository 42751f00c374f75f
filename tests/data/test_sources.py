import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from firstlight.data import sources
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.data.sources import GENERATED, check_path, find_source
from firstlight.errors import UserError
from firstlight.generator.corpus import find_text
from firstlight.generator.options import CharacterOptions
from firstlight.translator.corpus import find_pairs
from firstlight.translator.options import PairOptions

pytestmark = pytest.mark.usefixtures("working_folder")

NOWHERE = "http://127.0.0.1:9/plays.txt"
ROWS = '{"text": "Good.", "label": 4}\n{"text": "Bad.", "label": 0}\n'

FolderMaker = Callable[..., Path]


@pytest.fixture
def make(working_folder: Path) -> FolderMaker:
    """Create a folder of splits and return its path relative to the working folder."""

    def make_folder(path: str, *splits: str, content: str = ROWS) -> Path:
        folder = Path(path)
        folder.mkdir(parents=True)
        for split in splits or ("train", "test"):
            (folder / f"{split}.jsonl").write_text(content)
        return folder

    return make_folder


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def mirror(dataset_id: str, cache_dir: Path) -> Path:
        raise sources.UnreachableError("no route to host")

    monkeypatch.setattr(sources, "mirror", mirror)


@pytest.fixture
def asked(make: FolderMaker, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """The requests to a Hub that has every data set."""
    requests: list[tuple[str, Path]] = []
    mirrored = make("mirrored/5eed", "train", "validation")

    def mirror(dataset_id: str, cache_dir: Path) -> Path:
        requests.append((dataset_id, cache_dir))
        return mirrored

    monkeypatch.setattr(sources, "mirror", mirror)
    return requests


def find(**options) -> tuple[SourceKind, str]:
    source = find_source(ReviewOptions(**options))
    return source.kind, source.where


# --- the choice of the source ---


@pytest.mark.parametrize("variable", [None, "", "elsewhere"])
def test_auto_takes_a_local_folder_and_then_asks_the_hub(make, asked, monkeypatch, caplog, variable):
    if variable is not None:
        monkeypatch.setenv("FIRSTLIGHT_DATA", variable)
    make("elsewhere/other_reviews")
    assert find(cache_dir="cache") == (SourceKind.hub, "SetFit/amazon_reviews_multi_en@5eed")
    assert asked == [("SetFit/amazon_reviews_multi_en", Path("cache"))]
    folder = make("data/amazon_reviews")
    assert find() == (SourceKind.local, str(folder))
    other = make("elsewhere/amazon_reviews")
    assert find() == (SourceKind.local, str(other if variable else folder))
    assert find(name="amazon_reviews", source=SourceKind.sample)[0] is SourceKind.sample
    assert find(source=SourceKind.hub, hub="own/reviews") == (SourceKind.hub, "own/reviews@5eed")
    assert len(asked) == 2
    assert caplog.records == []


@pytest.mark.parametrize(
    ("find_any", "options", "where"),
    [
        (find_source, ReviewOptions(name="mine"), "generated sample 1"),
        (find_pairs, PairOptions(name="mine"), "generated pairs 3"),
        (find_text, CharacterOptions(name="mine", url=NOWHERE, cache_dir="cache"), "generated plays 1"),
        (
            find_text,
            CharacterOptions(name="mine", url=NOWHERE, cache_dir="cache", preparation="lines"),
            "generated names 1",
        ),
    ],
)
def test_auto_generates_a_sample_at_last_and_warns(find_any, options, where, no_hub, caplog):
    source = find_any(options)
    assert (source.kind, source.where) == (SourceKind.sample, where)
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("The data mine was not found below $FIRSTLIGHT_DATA or data/, and ")
    assert f"{NOWHERE if find_any is find_text else 'the Hub'} does not answer. Using a GENERATED SAMPLE" in warning


def test_a_set_that_is_only_generated_needs_no_address(make, asked, caplog):
    own = ReviewOptions(name="choices", hub="", sample="choices", choice_columns=["a", "b"], labels="classes")
    assert find_source(own, sample="choices").where == "generated choices 1"
    assert not caplog.records
    make("data/choices")
    assert find_source(own, sample="choices").kind is SourceKind.local
    with pytest.raises(UserError, match=r"data\.hub is not set, so there is nothing to download; set data\.path"):
        find_source(ReviewOptions(name="mine", hub=""))


# --- a source that is forced ---


def test_local_is_never_anything_else(make, asked):
    message = r"data.source=local: no folder amazon_reviews exists below \$FIRSTLIGHT_DATA or data/; set data.path"
    with pytest.raises(UserError, match=message):
        find(source=SourceKind.local)
    folder = make("data/amazon_reviews")
    assert find(source=SourceKind.local) == (SourceKind.local, str(folder))
    assert asked == []


# --- data.path ---


@pytest.mark.parametrize("kind", [SourceKind.auto, SourceKind.local])
def test_a_path_to_a_folder_is_its_splits(make, asked, kind):
    make("data/amazon_reviews")
    folder = make("mine", "train", "dev")
    source = find_source(ReviewOptions(path="mine", source=kind))
    assert (source.kind, source.where, source.splits) == (SourceKind.local, "mine", ["train", "validation"])
    assert source.files["validation"] == folder / "dev.jsonl"


@pytest.mark.parametrize("only_split", ["train", "test"])
def test_a_path_to_a_file_is_one_split(make, only_split):
    path = str(make("mine", "stars") / "stars.jsonl")
    source = find_source(ReviewOptions(path=path), only_split=only_split)
    assert (source.where, source.splits) == (path, [only_split])


def test_a_path_to_the_hub_is_never_a_sample(no_hub):
    message = "data.path=own/reviews is not a local file or folder, and the Hub does not answer"
    with pytest.raises(UserError, match=message):
        find(path="own/reviews")


@pytest.mark.parametrize("path", ["missing.csv", "mine/missing.jsonl", "./mine", "/mine/reviews", "a/b/c", "reviews"])
def test_a_path_that_can_only_be_local_must_exist(asked, path):
    with pytest.raises(UserError, match=f"data.path={path}: the file or folder does not exist"):
        find(path=path)
    with pytest.raises(UserError, match=r"data.path=own/reviews: the file or folder does not exist"):
        find(path="own/reviews", source=SourceKind.local)
    assert asked == []


@pytest.mark.parametrize("url", ["https://example.org/train.csv", "hf://datasets/own/reviews"])
def test_a_url_is_refused_with_a_remedy(asked, url):
    with pytest.raises(UserError, match=f"data.path={url} is a URL; download the file first, or set data.url"):
        find(path=url)
    assert asked == []


def test_a_missing_path_is_answered_with_its_look_alike(make):
    make("data/opinions", "opinions")
    for check in (lambda path: check_path(path, SourceKind.auto), check_path):
        with pytest.raises(UserError, match=r"does not exist; did you mean 'data/opinions/opinions.jsonl'\?$"):
            check("data/opinions/opinion.jsonl")


def test_a_name_without_an_owner_hints_at_the_hub_and_a_file_that_is_not_alike_is_not_suggested(make):
    Path("five star.csv").write_text("text,label\na,1\n")
    message = r"does not exist; a data set of the Hub is named with its owner, as in data.path=owner/five$"
    with pytest.raises(UserError, match=message):
        check_path("five", SourceKind.auto)
    with pytest.raises(UserError, match=r"does not exist; check the name$"):
        check_path("five.csv", SourceKind.auto)


# --- folders of texts ---


def test_a_folder_of_classes_is_data_whose_messages_name_the_file(working_folder):
    for split, label, text in (("train", "pos", "Good."), ("train", "neg", "Bad."), ("test", "neg", "Worse.")):
        folder = working_folder / "imdb" / split / label
        folder.mkdir(parents=True)
        (folder / "1.txt").write_text(text)
    source = find_source(ReviewOptions(path="imdb"))
    assert source.splits == ["train", "test"]
    assert [row.values for row in source.rows("train", ["text"])] == [{"text": "Bad."}, {"text": "Good."}]
    assert source.texts(["text"], [2, 0]) == ["Worse.", "Bad."]
    assert source.place("train", 2) == "imdb/train/pos/1.txt"
    assert find_source(ReviewOptions(path="imdb/test"), only_split="test").splits == ["test"]
    Path("imdb/test/neg").rename("imdb/test/pos")
    assert find_source(ReviewOptions(path="imdb")).fingerprint != source.fingerprint


def test_the_text_files_of_a_folder_are_one_text(working_folder):
    (working_folder / "novels").mkdir()
    (working_folder / "novels/README.md").write_text("no text to learn")
    for name, text in {"b": "two\n", "a": "caf\u00e9"}.items():
        (working_folder / f"novels/{name}.txt").write_text(text, encoding="cp1252")
    source = find_text(CharacterOptions(path="novels", encoding="cp1252"))
    assert "".join(source.lines()) == "caf\u00e9\ntwo\n"


def test_an_environment_that_names_no_folder_is_refused(make, monkeypatch):
    make("data/amazon_reviews")
    monkeypatch.setenv("FIRSTLIGHT_DATA", "data/amazon_reviews/train.jsonl")
    message = "FIRSTLIGHT_DATA=data/amazon_reviews/train.jsonl is not a folder; correct it, or unset it"
    with pytest.raises(UserError, match=message):
        find()
    assert find(path="data/amazon_reviews")[0] is SourceKind.local  # no request is sent


# --- fingerprints ---


def fingerprint(path: str) -> str:
    return find_source(ReviewOptions(path=path)).fingerprint


def test_a_fingerprint_is_of_the_contents_the_splits_and_the_format_and_not_of_the_place(make, monkeypatch):
    make("one")
    make("two")
    make("three", "train", "validation")
    make("four", "train")
    assert fingerprint("one") == fingerprint("two") == fingerprint("one")
    for split in ("train", "test"):
        before = fingerprint("one")
        with Path("one", f"{split}.jsonl").open("a") as file:
            file.write("\n")
        assert fingerprint("one") != before
    assert len({fingerprint("two"), fingerprint("three"), fingerprint("four")}) == 3
    csv, tsv = Path("one/train.csv"), Path("one/train.tsv")
    for path in (csv, tsv):
        path.write_bytes(b"text,text\tlabel,label\nGood.,Fine.\t3,4\n")
    assert fingerprint(str(csv)) != fingerprint(str(tsv))
    before = find_source(ReviewOptions(source=SourceKind.sample)).fingerprint
    monkeypatch.setitem(GENERATED, "reviews", "generated sample 1009")
    assert find_source(ReviewOptions(source=SourceKind.sample)).fingerprint != before
