"""The perplexities of n-gram baselines, compared with separate counts."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from firstlight.data.corpus_options import Preparation
from firstlight.generator.baseline import ReferenceLines
from firstlight.text.options import TokenizerKind, TokenizerOptions

NAMES = ["uniform", "unigram", "bigram"]
PAIRS = TokenizerOptions(kind=TokenizerKind.subword, max_size=277)


def counted(training: list[int], validation: list[int], vocab_size: int) -> dict[str, float]:
    """Return the three perplexities. A context with n tokens, t of them different, gives t / (n + t) to the rest."""
    ones, pairs = Counter(training), Counter(pairwise(training))
    followers: dict[int, set[int]] = defaultdict(set)
    for first, second in pairs:
        followers[first].add(second)
    contexts = Counter(training[:-1])
    losses = {"unigram": 0.0, "bigram": 0.0}
    for place, token in enumerate(validation):
        share = (ones[token] + len(ones) / vocab_size) / (len(training) + len(ones))
        losses["unigram"] -= math.log(share)
        if place and (before := validation[place - 1]) in contexts:
            types = len(followers[before])
            share = (pairs[before, token] + types * share) / (contexts[before] + types)
        losses["bigram"] -= math.log(share)
    return {"uniform": vocab_size} | {name: math.exp(loss / len(validation)) for name, loss in losses.items()}


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
    expected = counted(writer_bench.ids(data, "train"), writer_bench.ids(data, "validation"), data.tokenizer.vocab_size)
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
    expected = counted(
        writer_bench.ids(data, "train")[:used], writer_bench.ids(data, "validation"), data.tokenizer.vocab_size
    )
    assert logged(writer_bench) == {name: [(0, pytest.approx(value))] for name, value in expected.items()}
