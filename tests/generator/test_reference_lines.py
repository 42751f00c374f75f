"""The perplexities of n-gram baselines, compared with separate counts."""

import math

import numpy as np
import pytest

from firstlight.generator.baseline import ReferenceLines, token_losses
from firstlight.generator.options import Preparation
from firstlight.text.options import TokenizerKind, TokenizerOptions

NAMES = ["uniform", "unigram", "bigram"]
PAIRS = TokenizerOptions(kind=TokenizerKind.subword, max_size=277)


def expected_of(bench, data, most: int | None = None) -> dict[str, float]:
    """Return the three perplexities by the models that test_baseline.py compares with counts."""
    size = data.tokenizer.vocab_size
    training, validation = (np.array(bench.ids(data, split)) for split in ("train", "validation"))
    losses = token_losses(training[:most], validation, size, highest_order=2)
    return dict(zip(NAMES, [float(size), *(math.exp(each.mean()) for each in losses)], strict=True))


def logged(bench) -> dict[str, list[tuple[int | None, float]]]:
    return {name: bench.memory.curve(f"reference/{name}_perplexity") for name in NAMES}


@pytest.mark.parametrize(
    "options",
    [{}, {"tokenizer": PAIRS}, {"preparation": Preparation.lines, "separator": "\t"}],
    ids=["characters", "byte pairs", "lines"],
)
def test_the_lines_are_those_of_counts_made_by_hand(writer_bench, options: dict[str, object]) -> None:
    data = writer_bench.data(**options)
    writer_bench.fit(ReferenceLines(), data=data)
    expected = expected_of(writer_bench, data)
    assert logged(writer_bench) == {name: [(0, pytest.approx(value))] for name, value in expected.items()}
    assert expected["bigram"] < expected["unigram"] < expected["uniform"]


def test_a_resumed_training_does_not_log_them_again(writer_bench, at, tmp_path) -> None:
    path = tmp_path / "at-3.ckpt"
    writer_bench.fit(
        ReferenceLines(), at("on_train_batch_end", 3, lambda trainer: trainer.save_checkpoint(path)), max_epochs=1
    )
    writer_bench.memory.lines.clear()
    trainer = writer_bench.fit(ReferenceLines(), ckpt_path=path, max_epochs=2)
    assert trainer.global_step == 12
    assert logged(writer_bench) == {name: [] for name in NAMES}


def test_only_the_training_rows_that_are_used_are_counted(writer_bench) -> None:
    data = writer_bench.data(max_train_rows=17)
    writer_bench.fit(ReferenceLines(), data=data, limit_train_batches=1)
    used = data.describe()["tokens"]["train"]
    assert used == 17 * 11 + 1
    expected = expected_of(writer_bench, data, used)
    assert logged(writer_bench) == {name: [(0, pytest.approx(value))] for name, value in expected.items()}
