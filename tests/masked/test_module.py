"""Training of a masked language model with Lightning on the generated reviews."""

import math
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch import Callback
from torch.optim import AdamW

from firstlight.callbacks.throughput import Throughput
from firstlight.callbacks.token_metrics import Perplexity, TokenAccuracy
from firstlight.lit.schedules import constant
from firstlight.masked.data import MaskedBatch, MaskedReviewData
from firstlight.masked.module import MaskedLanguageModeling
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.networks.variants import Norm
from stand_ins import trainer_of

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec")

CONTEXT = 11


def module_for(data: MaskedReviewData, *, lr: float = 0.03, **options: Any) -> MaskedLanguageModeling:
    torch.manual_seed(1)
    sizes = {"dim": 8, "num_heads": 2, "context_length": CONTEXT, "norm": Norm.pre, "dropout": 0.0}
    config = MaskedConfig(**(sizes | {"embedding_std": 0.5, "final_norm": True} | options))
    network = MaskedLanguageModel(config, data.tokenizer.vocab_size)
    return MaskedLanguageModeling(network, partial(AdamW, lr=lr), constant)


@torch.inference_mode()
def judged(module: MaskedLanguageModeling, batches: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of every target and whether it was predicted, (targets,) each, computed text by text."""
    losses, hits = [], []
    for batch in batches:
        length = batch.token_ids.shape[1]
        for place, target in zip(batch.places.tolist(), batch.targets, strict=True):
            row, column = divmod(place, length)
            text = batch.token_ids[row, batch.padding_mask[row]]
            logits = module.eval()(text[None])[0, column]
            losses.append(F.cross_entropy(logits, target))
            hits.append(logits.argmax() == target)
    return torch.stack(losses).double(), torch.stack(hits)


@pytest.mark.parametrize("stage", ["val", "test"])
def test_loss_perplexity_and_accuracy_are_those_of_the_masked_words(stage: str, reviews) -> None:
    source = reviews()
    module = module_for(source)
    running = trainer_of(Perplexity(), TokenAccuracy())
    (metrics,) = (running.validate if stage == "val" else running.test)(module, datamodule=source, verbose=False)
    losses, hits = judged(module, source.val_dataloader() if stage == "val" else source.test_dataloader())
    expected = {"loss": losses.mean(), "perplexity": losses.mean().exp(), "accuracy": hits.double().mean()}
    assert metrics == pytest.approx({f"{stage}/{name}": float(value) for name, value in expected.items()}, rel=1e-4)


class Steps(Callback):
    """The mean loss and the accuracy of each training batch, computed from its logits."""

    def __init__(self) -> None:
        self.losses: list[tuple[float, float]] = []
        self.shapes: list[tuple[int, ...]] = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        again = F.cross_entropy(outputs["logits"], batch.targets)
        self.losses.append((float(outputs["loss"]), float(again)))
        self.shapes.append((tuple(outputs["logits"].shape), batch.num_targets))


def test_only_the_masked_words_are_trained_on(reviews) -> None:
    source, steps, throughput = reviews(), Steps(), Throughput()
    running = trainer_of(steps, throughput, Perplexity(), TokenAccuracy(), log_every_n_steps=1)
    running.fit(module_for(source), datamodule=source)
    assert [loss for loss, _ in steps.losses] == pytest.approx([again for _, again in steps.losses])
    assert all(shape == (count, source.tokenizer.vocab_size) for shape, count in steps.shapes)
    assert throughput.tokens == source.lengths(source.rows("train")).sum()
    assert throughput.examples == 600
    logged = running.callback_metrics
    assert float(logged["train/perplexity"]) == pytest.approx(math.exp(steps.losses[-1][0]), rel=1e-4)
    assert 0 <= float(logged["train/accuracy"]) <= 1


def test_a_batch_without_a_target_has_no_loss_and_no_gradient(reviews) -> None:
    module, nothing = module_for(reviews()), torch.zeros(0, dtype=torch.long)
    empty = torch.zeros(1, 1, dtype=torch.long)
    loss = module.training_step(MaskedBatch(empty, empty != 0, nothing, nothing, torch.zeros(1), 0))["loss"]
    loss.backward()
    assert loss == 0
    assert all(weight.grad is None or not weight.grad.any() for weight in module.parameters())
