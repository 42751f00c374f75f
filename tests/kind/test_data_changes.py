"""Tests of evaluating a foreign checkpoint: its metadata cannot choose an address, cache, path or interpolation."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from firstlight.commands.evaluate import EvaluateOptions, evaluate
from firstlight.data import CharacterData, MaskedReviewData, PairData, ReviewData, ReviewTextData
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.errors import UserError
from firstlight.generator.options import CharacterOptions
from firstlight.kind.data_changes import (
    DataChanges,
    address_of,
    changed_options,
    options_of_metadata,
    warn_of_training_texts,
)
from firstlight.lit import Generation
from firstlight.lit.checkpoint import METADATA, STAMP
from firstlight.translator.options import PairOptions
from tests_support import contents

EVIL = "http://127.0.0.1:9/evil.txt"
GUTENBERG = "https://www.gutenberg.org/cache/epub/100/pg100.txt"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("to be or not to be, " * 20)
    return path


@pytest.fixture(scope="module")
def content(text: Path) -> dict[str, Any]:
    """Return the content of a checkpoint of an untrained generator. The tests change its metadata."""
    data = CharacterData(path=str(text), context_length=5, cache_dir=str(text.parent))
    module = Generation.for_data(data, dim=6, num_heads=2)
    return {METADATA: {**STAMP, **(module.metadata or {})}, "state_dict": dict(module.state_dict())}


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return a list of the requested addresses. No address answers."""
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return b"something else entirely"

    monkeypatch.setattr("firstlight.generator.corpus._fetch", fetch)
    monkeypatch.delenv("FIRSTLIGHT_DATA", raising=False)
    monkeypatch.setenv("SECRET", "the_secret")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return asked


def run_of(content: dict[str, Any], folder: Path, **data: Any) -> Path:
    content = copy.deepcopy(content)
    content[METADATA]["config"]["data"].update(data)
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "metrics.json").write_text("{}")
    torch.save(content, folder / "checkpoints" / "last.ckpt")
    return folder


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"path": None, "name": "evil", "url": EVIL}, r"data set evil, which is not below .*; the configuration"),
        ({"path": None, "name": "../../evil", "url": EVIL}, r"data\.name=\.\./\.\./evil must be the name of a folder"),
        ({"path": None, "name": "${oc.env:SECRET}"}, r"data set \$\{oc\.env:SECRET\}, which is not below"),
        ({"path": "owner/name"}, r"data\.path=owner/name: the file or folder of the training does not exist"),
        ({"path": "${oc.env:SECRET}"}, r"data\.path=\$\{oc\.env:SECRET\}: the file or folder of the training"),
        ({"path": "other.txt"}, r"the run was trained on other data than other\.txt"),
        ({"preparation": ["plays"]}, r"the checkpoint's data options cannot be used: "),
        ({"shell": "touch canary"}, r"the checkpoint's data\.shell is not an option of this version"),
    ],
)
def test_metadata_chooses_no_address_no_place_and_no_interpolation(data, message, content, fetched, tmp_path) -> None:
    Path("other.txt").write_text("a file of one's own, whose content nobody else knows")
    run = run_of(content, tmp_path / "theirs", **({"cache_dir": str(tmp_path / "evil"), "source": "auto"} | data))
    before = contents(tmp_path)
    for changes in (DataChanges(), DataChanges(preparation="lines", separator="|")):
        with pytest.raises(UserError, match=message) as error:
            evaluate(EvaluateOptions(str(run), data=changes))
    assert "the_secret" not in str(error.value)
    assert "\n" not in str(error.value)
    assert fetched == []
    assert contents(tmp_path) == before


def test_a_run_on_a_file_that_is_still_there_is_evaluated_with_a_cache_of_this_command(content, fetched, tmp_path):
    run = run_of(content, tmp_path / "mine", cache_dir=str(tmp_path / "evil"), url=EVIL, source="hub")
    found = evaluate(EvaluateOptions(str(run)))
    assert (found / "metrics.json").is_file()
    assert fetched == []
    assert not (tmp_path / "evil").exists()
    assert [*Path("logs/cache/encoded").iterdir()]
    again = evaluate(EvaluateOptions(str(run), data=DataChanges(source="sample"), log_dir=tmp_path / "other"))
    assert (again / "metrics.json").is_file()
    assert (tmp_path / "other" / "cache").is_dir()


def test_a_run_on_a_named_download_takes_its_address_from_the_configuration(content, fetched, tmp_path) -> None:
    run = run_of(content, tmp_path / "theirs", path=None, name="shakespeare", url=EVIL, source="auto")
    with pytest.raises(UserError, match="the run was trained on other data than https://www"):
        evaluate(EvaluateOptions(str(run)))
    assert fetched == [GUTENBERG]


def test_an_address_is_that_of_the_configuration_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert address_of("shakespeare", CharacterOptions) == {"url": GUTENBERG}
    assert address_of("amazon_reviews", ReviewOptions) == {"hub": "SetFit/amazon_reviews_multi_en"}
    assert address_of("multi30k", PairOptions) == {"hub": "bentrevett/multi30k"}
    assert address_of("mine", ReviewOptions) == {}
    assert address_of(None, CharacterOptions) == {}
    (tmp_path / "conf" / "task").mkdir(parents=True)
    (tmp_path / "conf" / "task" / "mine.yaml").write_text("data: {name: mine, hub: me/mine}\n")
    assert address_of("mine", ReviewOptions) == {"hub": "me/mine"}


def test_what_says_how_texts_are_read_is_that_of_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "mine").mkdir(parents=True)
    tokenizer = {"kind": "word", "punctuation": False}
    saved = {"_target_": "os.system", "name": "mine", "hub": "evil/evil", "text_column": "body", "labels": "stars"}
    found = options_of_metadata(saved | {"tokenizer": tokenizer}, ReviewOptions, tmp_path / "cache")
    assert (found.name, found.text_column, found.labels.name) == ("mine", "body", "stars")
    assert (found.hub, found.cache_dir, found.source) == ("", str(tmp_path / "cache"), SourceKind.auto)
    assert found.tokenizer.punctuation is False
    with pytest.raises(UserError, match="the data set mine, which is not below"):
        options_of_metadata(saved | {"source": "hub"}, ReviewOptions, tmp_path / "cache")


def test_a_run_of_two_sentiments_reads_stars_if_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "stars.csv").write_text("text,label\nawful,1\nso so,3\n")
    saved = {"name": "movie_reviews", "labels": "classes", "class_names": ["negative", "positive"]}
    changes = DataChanges(path=str(tmp_path / "stars.csv"), labels="binary")
    found = changed_options(saved, ReviewOptions, changes, tmp_path)
    assert (found.labels.name, found.class_names) == ("binary", None)
    with pytest.raises(UserError, match=r"data\.labels=binary: the run predicts .*; leave it out"):
        changed_options(saved | {"class_names": ["bad", "good"]}, ReviewOptions, changes, tmp_path)


# --- texts of the training ---

TEXTS = [f"it {word} after {number} weeks" for number in range(20) for word in ("broke", "works")]
LINES = {"preparation": "lines", "context_length": 4}


@pytest.mark.parametrize(
    ("own", "options", "line"),
    [
        ((ReviewData, TEXTS, ["neg", "pos"] * 20), {"labels": "classes"}, "{} of these 32 train texts"),
        ((MaskedReviewData, TEXTS), {}, "{} of these 32 train texts"),
        ((ReviewTextData, TEXTS), {}, "{} of these 32 train texts"),
        ((PairData, TEXTS, TEXTS[::-1]), {"tokenizer": "word"}, "{} of these 32 train texts"),
        ((CharacterData, TEXTS), LINES, "{} of these 38 train texts"),
        ((CharacterData, "to be or not to be. " * 20), {"context_length": 4}, "1 of these 1 train texts"),
    ],
    ids=lambda value: value[0].__name__ if isinstance(value, tuple) else "",
)
def test_texts_of_the_training_are_counted_for_every_kind(own, options, line, tmp_path, caplog) -> None:
    kind, *rows = own
    first, again = (kind(*rows, cache_dir=str(tmp_path), split_seed=seed, **options) for seed in (0, 1))
    for data in (first, again):
        data.ensure_setup()
    caplog.clear()
    run = SimpleNamespace(data_fingerprint="", evaluates_whole_texts=False, open_data=lambda log_dir: first)
    warn_of_training_texts(run, again, tmp_path)
    count = len(set(map(str, first.texts_of("train"))) & set(map(str, again.texts_of("train"))))
    assert f"the run was trained on {line.format(count)}" in caplog.messages[0]
    run.data_fingerprint = again.source.fingerprint
    caplog.clear()
    warn_of_training_texts(run, again, tmp_path)
    assert not caplog.messages
