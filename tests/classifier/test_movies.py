"""Sentences of film reviews: the task, its baselines, and post 3's setting of it."""

import json
from typing import Any

import pandas  # type: ignore[import-untyped]
import pytest
import torch
from omegaconf import OmegaConf

from composed import composed

POST, ADAM = "experiment=post/movies", "experiment=post/movies_adam"


def settings_of(*overrides: str) -> dict[str, Any]:
    """Return the settings of a training by their keys."""
    config, settings = composed(*overrides), {}
    for name in ("vectors", "data", "model", "module", "optimizer", "schedule", "trainer"):
        settings[name] = OmegaConf.to_container(config[name], resolve=True, enum_to_str=True)
    return pandas.json_normalize(settings | {"dropout": config.dropout}).loc[0].to_dict()


# --- the setting of post 3, which tests/parity/posts.yaml lists ---


def test_the_variant_with_adam_differs_in_what_it_says_and_nothing_else() -> None:
    post, adam = settings_of(POST), settings_of(ADAM)
    missing = object()
    differing = {key for key in post.keys() | adam.keys() if post.get(key, missing) != adam.get(key, missing)}
    others = {key for key in differing if not key.startswith("optimizer.")}
    assert others == {"dropout", "model.dropout", "model.scale_scores", "vectors.trained"}
    assert (adam["dropout"], adam["model.scale_scores"], adam["vectors.trained"]) == (0.5, True, True)
    assert adam["optimizer._target_"] == "torch.optim.Adam"
    assert adam["optimizer.lr"] == post["optimizer.lr"]
    assert adam["optimizer.weight_decay"] == 0


def test_a_run_of_post_3_keeps_its_vectors_and_moves_the_rest(scripts, reviews_folder, small_sample) -> None:
    short = [f"data.path={reviews_folder}", "data.class_names=null", "trainer.accelerator=cpu", "logger=none"]
    short += [small_sample, "++callbacks.confusion_matrix=null"]
    weights = []
    for steps in (1, 3):
        run = scripts.train(POST, *short, f"trainer.max_steps={steps}", "test=false")
        weights.append(torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"])
    first, third = weights
    still = {name for name, weight in third.items() if torch.equal(weight, first[name])}
    assert still == {"network.embedding.weight"}
    vectors = third["network.embedding.weight"]
    assert vectors[2:].std(correction=0).item() == pytest.approx(1, abs=0.01)  # model.embedding_std
    record = json.loads((run / "metrics.json").read_text())
    assert record["parameters"] == 2 * 70_500 + 12 * 50 * 5 + 5  # five stars here, and no word
    assert "vectors=cooccurrence, embedding: " in (run / "train.log").read_text()
