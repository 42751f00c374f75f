"""Tests of a run that fills in masked words: its training, and all commands that read it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstlight
from docstring_examples import run_examples, without_an_example
from firstlight.kind.panel import Inputs
from firstlight.lab.playground.page import page, panel_of
from firstlight.masked.run import MaskedRun
from firstlight.runs.predictions import read_predictions
from tests_support import Scripts, read_csv

TEXT = "It [MASK] after a week"


@pytest.fixture(scope="module")
def run(trained: Callable[[str], Path]) -> Path:
    return trained("masked_reviews")


@pytest.fixture(scope="module")
def loaded(run: Path) -> Any:
    return firstlight.load(run)


def test_it_is_loaded_and_fills_in(loaded: Any) -> None:
    filled = loaded.fill_in(TEXT, count=3)
    (fillings,) = filled.fillings
    assert fillings == sorted(fillings, key=lambda filling: -filling.probability)
    assert filled.text == TEXT.replace("[MASK]", fillings[0].word)
    assert next(each.text for each in loaded.fill_in_many([TEXT, "I [MASK] it."])) == filled.text
    assert "vocabulary" in repr(loaded)


def test_every_example_runs(run: Path, tmp_path: Path) -> None:
    assert without_an_example(MaskedRun) == []
    (tmp_path / "logs").symlink_to(run.parents[2])
    run_examples(MaskedRun, tmp_path, firstlight=firstlight, run=firstlight.load(run))


def test_predict_prints_the_words_that_were_considered_and_a_file_keeps_its_columns(run, scripts) -> None:
    done = scripts.run("predict", str(run), "--text", TEXT)
    first, considered = done.stdout.splitlines()
    assert first.startswith("It ")
    assert first.endswith(" after a week")
    assert considered.startswith(f"  [MASK]: {first.split()[1]} 0.")
    (scripts.folder / "texts.csv").write_text(f"id,text\n1,{TEXT}\n2,I [MASK] it.\n")
    assert scripts.run("predict", str(run), "--input", "texts.csv", "--output", "out.csv").returncode == 0
    rows = read_csv(scripts.folder / "out.csv")
    assert [*rows[0]] == ["id", "text", "filled", "fillings"]
    assert [row["id"] for row in rows] == ["1", "2"]


def test_a_text_without_a_mask_and_the_options_of_others_are_one_line(run: Path, scripts: Scripts) -> None:
    for command, expected in (
        (f"predict {run} --text nothing", "error: the text 'nothing' does not contain [MASK]; write [MASK] for"),
        (f"predict {run} --text [MASK] --beam-size 2", "error: --beam-size does not apply to"),
        (f"evaluate {run} --context-length 4", "error: --context-length does not apply to"),
        (f"generate {run}", f"error: {run}: {run} is a masked language model; use"),
    ):
        assert scripts.refuse(*command.split()).startswith(expected)


def test_evaluate_measures_what_the_training_measured(run: Path, scripts: Scripts) -> None:
    recorded = json.loads((run / "metrics.json").read_text())["metrics"]
    for split, stage in (("validation", "val"), ("test", "test")):
        assert scripts.run("evaluate", str(run), "--split", split).returncode == 0
        found = json.loads((run / "evaluate" / split / "metrics.json").read_text())["metrics"]
        for name in ("loss", "perplexity", "accuracy"):
            assert found[f"{split}/{name}"] == pytest.approx(recorded[f"{stage}/{name}"], rel=1e-5)


@pytest.mark.slow  # 1 s; tests/figures draws them, and test_explore.py those of other runs
def test_explore_draws_its_figures(run: Path, scripts: Scripts) -> None:
    scripts.succeed("explore", str(run), "--figures", "fillings", "attention")
    assert {"fillings.png", "attention.png"} <= {path.name for path in (run / "figures").iterdir()}


def test_the_panel_answers(loaded: Any) -> None:
    panel = panel_of(loaded)
    answer = panel.answer(Inputs({"text": TEXT}))
    word = loaded.fill_in(TEXT).fillings[0][0].word
    assert f"It {word} after a week" in answer["verdict"]
    assert answer["bars"][0]["names"][0] == word
    assert answer["view"]["columns"] == len(answer["tokens"])
    assert "Type a text with [MASK]" in panel.answer(Inputs({"text": "<b>no mask</b>"}))["notice"]
    assert "<h2>Fill in masked words</h2>" in page([panel])
    panel.warm_up()


def test_counting_neighbors_is_its_baseline(scripts: Scripts, reviews_folder: Path) -> None:
    scripts.succeed("baseline", "--task", "masked_reviews", "--data.path", str(reviews_folder))
    (folder,) = scripts.folder.glob("logs/masked_reviews/baseline/*")
    record = json.loads((folder / "metrics.json").read_text())
    assert record["chosen"] == {"neighbors": 2}
    losses = [record["tried"]["neighbors"][number]["val/loss"] for number in "012"]
    assert losses == sorted(losses, reverse=True)
    assert record["metrics"]["test/accuracy"] > 0.1
    for stage, split in (("val", "validation"), ("test", "test")):
        predictions = read_predictions(folder / "predictions" / f"{split}.npz")
        mean = predictions.losses.sum() / predictions.tokens.sum()
        assert mean == pytest.approx(record["metrics"][f"{stage}/loss"], rel=1e-3)
        assert (np.diff(predictions.rows) > 0).all(), "the rows of the split, in their order"
