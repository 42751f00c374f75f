"""The arithmetic of a training, counted by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from firstlight.networks import ClassifierConfig, EncoderDecoderConfig, GeneratorConfig
from firstlight.training.fit import training_flops

DIM, LAYERS, HIDDEN, LENGTH, WORDS = 14, 2, 19, 13, 17
SIZES: dict[str, Any] = {"dim": DIM, "num_heads": 7, "num_layers": LAYERS, "feed_forward_dim": HIDDEN}


def test_a_generator_is_counted_as_by_hand() -> None:
    """A product of (n, k) and (k, m) is 2nkm operations, and to go back through it takes two more like it."""
    config = GeneratorConfig(**SIZES, context_length=LENGTH, dropout=0.0)
    projections = 2 * LENGTH * DIM * (4 * DIM)  # queries, keys, values, output
    attention = 2 * (2 * LENGTH * LENGTH * DIM)  # the scores, and the sums of values; all heads together
    feed_forward = 2 * (2 * LENGTH * DIM * HIDDEN)
    head = 2 * LENGTH * DIM * WORDS
    a_text = 3 * (LAYERS * (projections + attention + feed_forward) + head)
    assert training_flops(config, {"vocab_size": WORDS}, LENGTH) == a_text


def test_a_translator_works_on_two_texts() -> None:
    """Its encoder, then a decoder of as many layers with cross-attention, each on as many tokens."""
    config = EncoderDecoderConfig(**SIZES, context_length=LENGTH)
    projections, attention = 2 * LENGTH * DIM * (4 * DIM), 2 * (2 * LENGTH * LENGTH * DIM)
    feed_forward, head = 2 * (2 * LENGTH * DIM * HIDDEN), 2 * LENGTH * DIM * WORDS
    blocks = LAYERS * (3 * (projections + attention) + 2 * feed_forward)
    counted = training_flops(config, {"vocab_size": WORDS, "source_vocab_size": 23}, LENGTH)
    assert counted == 3 * (blocks + head)


def test_a_run_writes_down_its_tokens_and_its_work(trained: Callable[[str], Path]) -> None:
    run = trained("stars")
    record = json.loads((run / "metrics.json").read_text())
    config = OmegaConf.load(run / "config.yaml")
    assert record["steps"] == 30
    assert 30 * 40 * 5 < record["tokens"] < 30 * 40 * 23  # real ones, not what fills the batches
    model = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(ClassifierConfig), config.model))
    vocabulary = (run / "vocabulary.txt").read_text().splitlines()
    sizes = {"vocab_size": len(vocabulary), "num_classes": 5}
    assert record["flops"] == training_flops(model, sizes, record["tokens"])
