"""The pictures of docs/images are made by scripts/pictures.py, and their labels are still those of the source code."""

from pathlib import Path

import pytest
from PIL import Image

from pictures import IMAGES, RECIPES, Drawn, is_written, labels_in, labels_of, save, source_texts
from tests_support import ROOT

PICTURES = sorted(IMAGES.iterdir())
PAGES = [ROOT / "README.md", ROOT / "RESULTS.md", *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_the_source_code_has_the_labels_of_a_picture(picture: Path) -> None:
    labels = labels_of(picture)
    assert labels, f"it has no labels; make it: python scripts/pictures.py {picture.name}"
    gone = [label for label in labels if not is_written(label, source_texts())]
    assert not gone, f"make it again: python scripts/pictures.py {picture.name}"


def test_every_picture_has_a_recipe_and_is_shown() -> None:
    assert sorted(name for names in RECIPES for name in names) == [picture.name for picture in PICTURES]
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [picture.name for picture in PICTURES if f"images/{picture.name})" not in shown] == []


def test_labels_are_whole_texts_and_long_parts_of_the_source_code() -> None:
    source = "Contribution of each word:\nwhat a head attends to, in"
    texts = ["Contribution  of each word:", "block 1: what a head attends to, in %", "attend to", "in", "12"]
    assert labels_in(texts, source) == ["Contribution of each word:", "what a head attends to, in"]
    assert not is_written("Contribution of each word:", source.replace("each word", "words"))


def test_docstrings_are_no_source_of_labels() -> None:
    assert is_written("Look inside the network", source_texts())
    assert not is_written("Every key of all tasks", source_texts())
    assert not is_written("The HTML page. Each kind of run", source_texts())


@pytest.mark.parametrize("name", ["picture.png", "picture.gif"])
def test_a_picture_keeps_its_labels(name: str, tmp_path: Path) -> None:
    save(Drawn(Image.new("L", (3, 2)), ["Look inside the network", "µ 17"]), tmp_path / name)
    assert labels_of(tmp_path / name) == ["Look inside the network"]
    with pytest.raises(SystemExit, match="contains no text of the picture"):
        save(Drawn(Image.new("L", (3, 2)), ["xyzzy"]), tmp_path / name)
