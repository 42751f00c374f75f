"""Training generators from the command line, on texts of every kind."""

import json
import math
from pathlib import Path

import pytest

from tests_support import Scripts, some_text

QUICK = ["trainer.max_epochs=1", "trainer.limit_train_batches=7", "trainer.log_every_n_steps=2"]

EDITION = "\ufeffTHE LOST LAMP\r\n\r\nDramatis Personæ\r\n\r\nMIRO\r\n\r\nACT I\r\n\r\n{speeches}\r\n\r\nTHE END\r\n"


@pytest.fixture
def plays(tmp_path: Path) -> Path:
    """A folder as a user has it below $FIRSTLIGHT_DATA: one play in a Gutenberg edition."""
    speeches = some_text(30_000).replace("\n", "\r\n")
    (tmp_path / "data" / "shakespeare").mkdir(parents=True)
    path = tmp_path / "data" / "shakespeare" / "works.txt"
    path.write_text(EDITION.format(speeches=speeches), encoding="utf-8", newline="")
    return path


def record_of(run: Path) -> dict:
    return json.loads((run / "metrics.json").read_text())


def test_the_plays_of_an_edition_are_found_counted_and_learned(scripts: Scripts, plays: Path) -> None:
    run = scripts.train("task=shakespeare", *QUICK)
    record = record_of(run)
    assert record["data"]["source"] == "local"
    statistics = record["data"]["statistics"]
    assert 25_000 < statistics["characters"] < 31_000
    assert statistics["longest line"] <= 60
    assert record["data"]["tokens"]["train"] == pytest.approx(0.95 * statistics["characters"], abs=1)
    metrics = record["metrics"]
    assert metrics["val/perplexity"] == pytest.approx(math.exp(metrics["val/loss"]), rel=1e-5)
    assert metrics["val/bits_per_character"] == pytest.approx(metrics["val/loss"] / math.log(2), rel=1e-5)
    assert "LOST" not in (run / "samples" / "00000007.txt").read_text()
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert {"train/perplexity", "train/accuracy", "train/loss"} <= {key for line in history for key in line}


def test_a_text_without_a_play_says_what_was_looked_for(scripts: Scripts) -> None:
    (scripts.folder / "novel.txt").write_text("It was late. " * 1000)
    error = scripts.refuse("train", "task=shakespeare", "data.path=novel.txt")
    assert "the text has no play" in error
    assert "data.preparation=text" in error
