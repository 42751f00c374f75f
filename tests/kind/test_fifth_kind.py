"""A kind of network of a user: the package `tagging` beside this file, and one line in conf/kinds.yaml."""

import csv
import json
import random
import shutil
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests_support import Scripts, read_csv

PACKAGE = Path(__file__).with_name("tagging")
WORDS = {"article": ("the", "a"), "adjective": ("old", "red"), "noun": ("dog", "cat", "car"), "verb": ("sees", "likes")}
WORDS |= {"pronoun": ("i've", "we've"), "name": ("singer-turned", "$1.5"), "mark": (".", "''")}  # as in CoNLL
SHORT = ("trainer.max_epochs=3", "optimizer.lr=0.01", "trainer.accelerator=cpu", "quiet=true")


def sentences(count: int) -> Iterator[tuple[str, str]]:
    """Yield sentences and the tags of their words, which spaces separate."""
    draw = random.Random(3)
    for _ in range(count):
        tags = ["article", *draw.choice(([], ["adjective"])), "noun", "verb", "article", "noun"]
        tags += ["pronoun", "name", "mark"]
        yield " ".join(draw.choice(WORDS[tag]) for tag in tags), " ".join(tags)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """Return the folder of the user."""
    folder = tmp_path_factory.mktemp("tags")
    shutil.copytree(PACKAGE, folder / "tagging", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "conf").mkdir()
    (folder / "conf/kinds.yaml").write_text("- tagging\n")
    with (folder / "tags.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "tags"), *sentences(160)])
    return Scripts(folder)


@pytest.fixture(scope="module")
def run(project: Scripts) -> Path:
    done = project.run_alone("train", "task=tags", *SHORT)
    assert done.returncode == 0, done.stderr
    return project.newest_run()


def test_it_trains_and_is_evaluated_as_in_the_training(project: Scripts, run: Path) -> None:
    record = json.loads((run / "metrics.json").read_text())
    assert record["status"] == "finished"
    assert record["metrics"]["val/accuracy"] > 0.5
    done = project.run_alone("evaluate", str(run))
    assert done.returncode == 0, done.stderr
    measured = json.loads((run / "evaluate/test/metrics.json").read_text())["metrics"]
    for name in ("loss", "accuracy"):
        assert measured[f"test/{name}"] == pytest.approx(record["metrics"][f"test/{name}"], rel=1e-5)


def test_it_predicts_texts_and_files(project: Scripts, run: Path) -> None:
    done = project.run_alone("predict", "latest", "--text", "the old dog sees i've singer-turned ''")
    assert done.returncode == 0, done.stderr
    words = ["the", "old", "dog", "sees", "i've", "singer-turned", "''"]
    assert [pair.partition("/")[0] for pair in done.stdout.split()] == words
    assert project.run_alone("predict", str(run), "--input", "tags.csv", "--output", "out.csv").returncode == 0
    rows = read_csv(project.folder / "out.csv")
    tags = [zip(row["tags"].split(), row["given_tags"].split(), strict=True) for row in rows]
    hits = [tag == given for of_row in tags for tag, given in of_row]
    assert sum(hits) > len(hits) / 2


def test_its_figures_are_drawn(project: Scripts, run: Path) -> None:
    asked = ("attention", "lengths")
    done = project.run_alone("explore", str(run), "--figures", *asked)
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in (run / "figures").glob("*.png")} == set(asked)


def test_the_playground_shows_its_panel(project: Scripts, run: Path) -> None:
    process = project.start("playground", str(run), "--port", "0")
    try:
        address = process.stdout.readline().partition(" ")[0]
        connection = HTTPConnection(address.removeprefix("http://"))
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/runs/0/answer", '{"text": "a <b> dog"}', headers)
        answer = json.loads(connection.getresponse().read())["html"]
    finally:
        process.kill()
        process.communicate()
    assert answer.startswith('<p class="verdict">a <i>article</i>')


def test_a_page_cannot_compute_its_network(project: Scripts, run: Path) -> None:
    done = project.run_alone("playground", str(run), "--export", "page.html")
    assert done.returncode == 2
    assert "--export does not support Tagger; name another run, or leave out --export" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- nothing\n", "kinds.yaml: nothing cannot be imported: No module named 'nothing'; start in the folder of"),
        ("tagging\n", "kinds.yaml must list the names of packages, such as `- tagging`, each on a line"),
        ("- tagging\n- tagging\n", "kinds.yaml: tagging: another kind has the name tagger; choose another name"),
        ("- other\n", "kinds.yaml: other: KIND in kind.py must be a Kind, not a int"),
    ],
)
def test_a_kind_that_cannot_be_used_is_one_line(content: str, message: str, project: Scripts, tmp_path: Path) -> None:
    shutil.copytree(project.folder / "tagging", tmp_path / "tagging")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/__init__.py").touch()
    (tmp_path / "other/kind.py").write_text("KIND = 3\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/kinds.yaml").write_text(content)
    done = Scripts(tmp_path).run_alone("train", "task=tags", *SHORT)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr
