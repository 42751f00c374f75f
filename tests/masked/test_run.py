"""Tests of a run that fills in masked words: its training, and all commands that read it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import firstlight
from docstring_examples import run_examples, without_an_example
from firstlight.errors import UserError
from firstlight.kind.panels.inputs import Inputs
from firstlight.lab.playground.page import page
from firstlight.lab.playground.server import panel_of
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.masked.run import MaskedRun
from firstlight.runs.outcomes import read_outcomes
from tests_support import Scripts

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
    assert [filling.probability for filling in fillings] == sorted(
        (each.probability for each in fillings), reverse=True
    )
    assert filled.text == TEXT.replace("[MASK]", fillings[0].word)
    assert next(each.text for each in loaded.fill_in_many([TEXT, "I [MASK] it."])) == filled.text
    assert "vocabulary" in repr(loaded)


def test_every_example_runs(run: Path, tmp_path: Path) -> None:
    assert without_an_example(MaskedRun) == []
    (tmp_path / "logs").symlink_to(run.parents[2])
    run_examples(MaskedRun, tmp_path, firstlight=firstlight, run=firstlight.load(run))


def test_predict_prints_the_words_that_were_considered(run: Path, scripts: Scripts) -> None:
    done = scripts.run("predict", str(run), "--text", TEXT)
    first, considered = done.stdout.splitlines()
    assert done.returncode == 0
    assert first.startswith("It ")
    assert first.endswith(" after a week")
    assert considered.startswith(f"  [MASK]: {first.split()[1]} 0.")


def test_a_file_keeps_its_columns(run: Path, scripts: Scripts) -> None:
    (scripts.folder / "texts.csv").write_text(f"id,text\n1,{TEXT}\n2,I [MASK] it.\n")
    assert scripts.run("predict", str(run), "--input", "texts.csv", "--output", "out.csv").returncode == 0
    rows = list(csv.DictReader((scripts.folder / "out.csv").read_text().splitlines()))
    assert [*rows[0]] == ["id", "text", "filled", "fillings"]
    assert [row["id"] for row in rows] == ["1", "2"]


def test_a_text_without_a_mask_and_the_options_of_others_are_one_line(run: Path, scripts: Scripts) -> None:
    for command, expected in (
        (
            ["predict", str(run), "--text", "no mask"],
            "error: the text 'no mask' does not contain [MASK]; write [MASK] for",
        ),
        (["predict", str(run), "--text", TEXT, "--beam-size", "2"], "error: --beam-size applies to translators, and"),
        (
            ["evaluate", str(run), "--context-length", "4"],
            "error: --context-length applies to generators, and",
        ),
        (["generate", str(run)], f"error: {run}: {run} is a masked language model; use"),
    ):
        done = scripts.run(*command)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(expected)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_evaluate_measures_what_the_training_measured(run: Path, split: str, scripts: Scripts) -> None:
    assert scripts.run("evaluate", str(run), "--split", split).returncode == 0
    found = json.loads((run / "evaluate" / split / "metrics.json").read_text())["metrics"]
    stage = {"validation": "val", "test": "test"}[split]
    recorded = json.loads((run / "metrics.json").read_text())["metrics"]
    for name in ("loss", "perplexity", "accuracy"):
        assert found[f"{split}/{name}"] == pytest.approx(recorded[f"{stage}/{name}"], rel=1e-5)


@pytest.mark.slow  # 1 s; tests/figures draws them, and test_explore.py those of other runs
def test_explore_draws_its_figures(run: Path, scripts: Scripts) -> None:
    done = scripts.run("explore", str(run), "--figures", "fillings", "norms", "attention")
    assert done.returncode == 0, done.stderr
    assert {"fillings.png", "norms.png", "attention.png"} <= {path.name for path in (run / "figures").iterdir()}
    assert "no gradients" not in done.stderr


@pytest.mark.slow  # 0.5 s; test_explore.py draws the data of a task
@pytest.mark.usefixtures("small_sample")
def test_the_data_of_its_task_is_drawn_with_what_the_context_cuts(scripts: Scripts) -> None:
    options = ("--task", "masked_reviews", "--data.source", "sample", "--figures", "lengths", "--log-dir", "mine")
    done = scripts.run("explore", *options)
    assert done.returncode == 0, done.stderr
    assert "the context of 128 words" in (scripts.folder / "mine/masked_reviews/figures/lengths.svg").read_text()
    assert not (scripts.folder / "logs").exists(), "the cache is below --log-dir too"


def test_the_panel_answers(loaded: Any) -> None:
    panel = panel_of(loaded)
    answer = panel.answer(Inputs({"text": TEXT}))
    word = loaded.fill_in(TEXT).fillings[0][0].word
    assert f"It {word} after a week" in answer
    assert 'data-weights="' in answer
    assert "Type a text with [MASK]" in panel.answer(Inputs({"text": "<b>no mask</b>"}))
    assert "<h2>Fill in masked words</h2>" in page([panel])
    panel.warm_up()


def test_counting_neighbors_is_its_baseline(scripts: Scripts, reviews_folder: Path) -> None:
    done = scripts.run("baseline", "--task", "masked_reviews", "--data.path", str(reviews_folder))
    assert done.returncode == 0, done.stderr
    (folder,) = scripts.folder.glob("logs/masked_reviews/baseline/*")
    record = json.loads((folder / "metrics.json").read_text())
    assert record["chosen"] == {"neighbors": 2}
    losses = [record["tried"]["neighbors"][number]["val/loss"] for number in "012"]
    assert losses == sorted(losses, reverse=True)
    assert record["metrics"]["test/accuracy"] > 0.1
    for stage, split in (("val", "validation"), ("test", "test")):
        outcomes = read_outcomes(folder / "predictions" / f"{split}.npz")
        assert outcomes is not None
        mean = outcomes.losses.sum() / outcomes.tokens.sum()
        assert mean == pytest.approx(record["metrics"][f"{stage}/loss"], rel=1e-3)
        assert (np.diff(outcomes.rows) > 0).all(), "the rows of the split, in their order"


@pytest.mark.slow  # 2 s; tests/masked/test_module.py tests the same with a trainer
def test_a_run_that_goes_on_ends_with_the_weights_of_one_that_was_not_interrupted(
    scripts: Scripts, tiny_training: list[str]
) -> None:
    of_masked = ["task=masked_reviews", *tiny_training, "trainer.max_epochs=-1", "schedule=constant", "dropout=0.1"]
    whole = scripts.train(*of_masked, "trainer.max_steps=18")  # an epoch has 15 steps
    part = scripts.train(*of_masked, "trainer.max_steps=7")
    assert scripts.run("train", f"resume={part}", "trainer.max_steps=18").returncode == 0
    weights, others = (read_checkpoint(run / "checkpoints/last.ckpt")["state_dict"] for run in (whole, part))
    assert all(torch.equal(weights[name], others[name]) for name in weights)


@pytest.mark.slow  # 0.8 s, a training; test_finetune.py and test_initialize.py test the same with other kinds
def test_a_classifier_starts_from_it(run: Path, scripts: Scripts, tiny_training: list[str]) -> None:
    options = [each for each in tiny_training if not each.startswith("task=")]
    done = scripts.run("train", "experiment=finetune/masked", *options, f"init_from={run}")
    assert done.returncode == 0, done.stderr
    record = json.loads(next(scripts.folder.glob("logs/sentiment/runs/*/metrics.json")).read_text())
    assert record["status"] == "finished"


def test_a_context_that_cuts_a_mask_off_is_refused(loaded: Any) -> None:
    with pytest.raises(UserError, match=r"a \[MASK\] is cut off; shorten the text"):
        loaded.fill_in("word " * 500 + "[MASK] " + "word " * 500)
