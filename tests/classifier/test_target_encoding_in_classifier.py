"""A classifier that reads counted target_encoding: trained, read again, explained, and begun from."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import firstlight
from firstlight.classifier.evaluation import judge
from firstlight.classifier.insight import attributions
from tests_support import Scripts, write_lines

REVIEW = "It broke, and it looks bad!!! Zyzzyva"
TARGET_ENCODING = ["data.target_encoding=true", "data.target_encoding_pairs=31"]
TARGET_ENCODING += ["model.embedding_dim=6", "model.embedded_words=23"]


@pytest.fixture(scope="module")
def scripts_of_module(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    return Scripts(tmp_path_factory.mktemp("target_encoding"))


@pytest.fixture(scope="module")
def run(scripts_of_module: Scripts, tiny_training: list[str]) -> Path:
    return scripts_of_module.train("task=stars", *tiny_training, *TARGET_ENCODING)


def test_a_run_keeps_what_was_counted_and_answers_as_it_did(run: Path, scripts_of_module: Scripts) -> None:
    loaded: Any = firstlight.load(run)
    target_encoding = loaded.target_encoding
    assert target_encoding.word_scores.abs().max() > 0.1
    assert 20 < (target_encoding.pair_scores != 0).sum() <= 31
    assert len(loaded.network.embedding.weight) == 23
    before = json.loads((run / "metrics.json").read_text())
    scripts_of_module.succeed("evaluate", str(run), "--split", "validation")
    again = json.loads(next(run.glob("evaluate/validation*/metrics.json")).read_text())["metrics"]
    assert again["validation/accuracy"] == pytest.approx(before["metrics"]["val/accuracy"])
    counted = target_encoding.word_scores.numel() + 31 + 3
    weights = sum(weight.numel() for weight in loaded.network.parameters())
    assert before["parameters"] == weights + counted


def test_only_counted_rows_of_the_training_split_are_left_out(run: Path, tmp_path: Path) -> None:
    loaded: Any = firstlight.load(run)
    loaded.config["data"]["max_train_rows"] = 7
    data = loaded.open_data(log_dir=tmp_path)
    few = data.rows("train")
    assert len(few) == 7
    judged = judge(loaded, data, "train")
    none = loaded.probabilities(data.source.texts(["text"], judged.rows.tolist()))
    is_changed = (abs(judged.probabilities - none) > 1e-6).any(axis=1)
    assert set(judged.rows[is_changed]) <= set(few)
    assert is_changed.any()


def test_attributions_have_the_target_encoding_in_them(run: Path) -> None:
    loaded: Any = firstlight.load(run)
    found = attributions(loaded, REVIEW, "5 stars")
    with torch.no_grad():
        loaded.target_encoding.word_scores.zero_()
        loaded.target_encoding.pair_scores.zero_()
    without = attributions(loaded, REVIEW, "5 stars")
    assert found.words == ["it", "broke", ",", "and", "it", "looks", "bad", "!!!", "zyzzyva"]
    assert abs(found.scores - without.scores).max() > 1e-3


def test_a_run_that_begins_from_another_counts_for_itself(run, scripts_of_module, tiny_training) -> None:
    rows = ["data.max_train_rows=211", "trainer.max_steps=1", "optimizer.lr=1e-9"]
    begun = scripts_of_module.train("task=stars", *tiny_training, *TARGET_ENCODING, *rows, f"init_from={run}")
    both: list[Any] = [firstlight.load(each, checkpoint="last") for each in (run, begun)]
    one, other = both
    assert not torch.equal(one.target_encoding.pair_scores, other.target_encoding.pair_scores)
    assert_close(one.network.projection.weight, other.network.projection.weight, atol=1e-6, rtol=0)
    assert_close(one.network.feature_projection.weight, other.network.feature_projection.weight, atol=1e-6, rtol=0)


def test_classes_without_an_order_have_no_mean(scripts: Scripts, tmp_path: Path) -> None:
    labels = ("red", "green", "blue")
    write_lines(tmp_path / "train.jsonl", [{"text": f"word{i % 7}", "label": labels[i % 3]} for i in range(180)])
    error = scripts.refuse(
        "train", "task=reviews", f"data.path={tmp_path / 'train.jsonl'}", "data.target_encoding=true"
    )
    assert "data.target_encoding=true requires ordered classes, but the 3 of data.labels=classes" in error
