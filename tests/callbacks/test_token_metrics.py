"""Perplexity, bits per character, accuracy and the last position's loss, compared with separate computations."""

import math
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch import Callback
from torch import Tensor

from firstlight.callbacks import BitsPerCharacter, LastPosition, Perplexity, TokenAccuracy, token_metrics
from firstlight.generator.options import Preparation
from firstlight.lit import TrainingLoss
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.text_tokenizers import decode

CONTEXT = 11
PAIRS = TokenizerOptions(kind=TokenizerKind.subword, max_size=293)
BYTES = TokenizerOptions(kind=TokenizerKind.subword, max_size=256)
ALL = (Perplexity, BitsPerCharacter, TokenAccuracy, LastPosition)
every_split = pytest.mark.parametrize(("stage", "split"), [("val", "validation"), ("test", "test")])


def measure(
    bench: Any, *kinds: type[Callback], stage: str = "val", **options: Any
) -> tuple[dict[str, float], Any, Any]:
    """Evaluate a new network. Return the logged metrics, the data and the network."""
    data = bench.data(**({"test_fraction": 0.17} | options))
    module = bench.module(data)
    trainer = bench.trainer(*(kind() for kind in kinds))
    evaluate = trainer.validate if stage == "val" else trainer.test
    (metrics,) = evaluate(module, datamodule=data, verbose=False)
    return metrics, data, module.network.eval()


@torch.inference_mode()
def judged(bench: Any, data: Any, network: Any, split: str = "validation") -> tuple[Tensor, Tensor]:
    """Return the loss of every token but the first, and whether it is predicted correctly: (tokens - 1,) each.

    The split is read one window at a time.
    """
    ids = torch.tensor(bench.ids(data, split))
    losses, hits = [], []
    for start in range(0, len(ids) - 1, CONTEXT):
        window = ids[start : start + CONTEXT + 1]
        logits = network(window[None, :-1])[0]
        losses.append(F.cross_entropy(logits, window[1:], reduction="none"))
        hits.append(logits.argmax(dim=1) == window[1:])
    return torch.cat(losses).double(), torch.cat(hits)


@every_split
def test_the_metrics_are_those_of_all_tokens_computed_again(writer_bench, stage: str, split: str) -> None:
    metrics, data, network = measure(writer_bench, *ALL, stage=stage)
    losses, hits = judged(writer_bench, data, network, split)
    assert len(losses) % (5 * CONTEXT)  # the batches are unequal
    assert len(losses) % CONTEXT  # the windows are unequal too
    whole = losses[: len(losses) // CONTEXT * CONTEXT]
    expected = {
        "loss": losses.mean(),
        "perplexity": losses.mean().exp(),
        "accuracy": hits.double().mean(),
        "bits_per_character": losses.mean() / math.log(2),
        "last_position_loss": whole.view(-1, CONTEXT)[:, -1].mean(),
    }
    assert metrics == pytest.approx({f"{stage}/{name}": float(value) for name, value in expected.items()}, rel=1e-5)


@every_split
def test_of_byte_pairs_the_bits_are_shared_by_the_characters_of_the_text(writer_bench, stage: str, split: str) -> None:
    metrics, data, network = measure(writer_bench, BitsPerCharacter, stage=stage, tokenizer=PAIRS)
    losses, _ = judged(writer_bench, data, network, split)
    _, *targets = writer_bench.ids(data, split)
    text = decode(data.tokenizer, targets)
    assert text in writer_bench.text
    assert len(text) > 1.5 * len(targets)
    expected = float(losses.sum()) / math.log(2) / len(text)
    assert metrics[f"{stage}/bits_per_character"] == pytest.approx(expected, rel=1e-5)


def test_a_batch_in_which_no_character_begins_counts_too(writer_bench) -> None:
    """The euro sign has three bytes. The last two can be a window of their own."""
    writer_bench.text = "€" * 211
    metrics, data, _ = measure(
        writer_bench, BitsPerCharacter, tokenizer=BYTES, context_length=2, evaluation_batch_size=1, test_fraction=0.0
    )
    assert len(writer_bench.ids(data, "validation")) == 42 * 3
    expected = metrics["val/loss"] * (42 * 3 - 1) / (42 - 1) / math.log(2)  # the first token has the first character
    assert metrics["val/bits_per_character"] == pytest.approx(expected, rel=1e-4)


def test_without_a_whole_window_there_is_no_last_position(writer_bench) -> None:
    writer_bench.text = "to be or not to be, " * 2
    metrics, _, _ = measure(writer_bench, *ALL, test_fraction=0.0)
    assert "val/perplexity" in metrics
    assert "val/last_position_loss" not in metrics


def test_documents_are_measured_with_the_separators_that_end_them(writer_bench) -> None:
    writer_bench.text = "\n".join(["emma", "olivia", "ava", "isabella", "sophia", "mia", "zoe"] * 11)
    metrics, data, network = measure(writer_bench, *ALL, preparation=Preparation.lines)
    losses, hits = judged(writer_bench, data, network)
    assert writer_bench.ids(data, "validation")[0] == writer_bench.ids(data, "validation")[-1] == data.separator_id
    assert metrics["val/perplexity"] == pytest.approx(float(losses.mean().exp()), rel=1e-5)
    assert metrics["val/accuracy"] == pytest.approx(float(hits.double().mean()), rel=1e-5)


def test_each_validation_measures_the_network_of_that_moment(writer_bench) -> None:
    data = writer_bench.data()
    writer_bench.fit(*(kind() for kind in ALL), data=data, max_epochs=3)
    losses = writer_bench.memory.curve("val/loss")
    perplexities = writer_bench.memory.curve("val/perplexity")
    assert [step for step, _ in perplexities] == [step for step, _ in losses] == [5, 11, 17]
    assert [value for _, value in perplexities] == pytest.approx([math.exp(loss) for _, loss in losses], rel=1e-5)
    assert len({value for _, value in perplexities}) == 3


# --- training ---


def test_the_training_perplexity_is_e_to_the_training_loss(writer_bench) -> None:
    writer_bench.fit(Perplexity(), TrainingLoss(), log_every_n_steps=4, limit_train_batches=11)
    losses = writer_bench.memory.curve("train/loss")
    assert [step for step, _ in losses] == [3, 7]
    expected = [(step, pytest.approx(math.exp(loss), rel=1e-5)) for step, loss in losses]
    assert writer_bench.memory.curve("train/perplexity") == expected


class Accuracies(Callback):
    """Callback that computes the accuracy of every training batch again from its logits."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.values.append((outputs["logits"].argmax(dim=2) == batch.targets).float().mean().item())


def test_the_training_accuracy_is_that_of_single_batches(writer_bench) -> None:
    accuracies = Accuracies()
    writer_bench.fit(TokenAccuracy(), accuracies, log_every_n_steps=3, limit_train_batches=11)
    assert writer_bench.memory.curve("train/accuracy") == [
        (step, pytest.approx(accuracies.values[step])) for step in (2, 5, 8)
    ]


def test_the_training_perplexity_is_that_of_the_loss_without_label_smoothing() -> None:
    callback, trainer = Perplexity(), SimpleNamespace(accumulate_grad_batches=3)
    added: list[float] = []
    callback.add_to_mean = lambda value: added.append(float(value))
    with patch.object(token_metrics, "is_logging_step", return_value=False):
        smoothed = {"loss": torch.tensor(2.0), "token_loss": torch.tensor(1.5)}
        callback.on_train_batch_end(trainer, None, smoothed, None, 0)
        callback.on_train_batch_end(trainer, None, {"loss": torch.tensor(0.5)}, None, 1)
    assert added == [1.5, 1.5]  # Lightning divides the loss by the number of batches per step


@pytest.mark.parametrize(
    ("world_size", "value", "logged"), [(1, 3.0, []), (2, 3.0, ["val/perplexity"]), (2, math.nan, [])]
)
def test_a_process_without_a_batch_takes_part_in_the_sum_over_processes(world_size, value, logged) -> None:
    callback, names = Perplexity(), list[str]()
    ratio = SimpleNamespace(update_called=False, compute=lambda: torch.tensor(value), reset=lambda: None)
    callback.metrics = {"val": ratio}
    trainer = SimpleNamespace(world_size=world_size)
    module = SimpleNamespace(trainer=trainer, log=lambda name, _, **__: names.append(name))
    callback.on_validation_epoch_end(trainer, module)
    assert names == logged
