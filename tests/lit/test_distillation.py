"""Tests of the loss of distillation, and of teachers in the training steps of each kind of network."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.data import PairBatch, ReviewBatch, TokenBatch
from firstlight.data.tables import IGNORED
from firstlight.lit import Classification, Generation, MaskedLanguageModeling, Training, Translation
from firstlight.lit.losses import Distillation, NetworkTeacher, teacher_divergence
from firstlight.masked.network import MaskedBatch

TEXTS, LENGTH, CLASSES = 5, 3, 7


def random_logits(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_divergence_is_that_of_the_formula(temperature: float) -> None:
    logits, teacher = random_logits(TEXTS, CLASSES, seed=1), random_logits(TEXTS, CLASSES, seed=2)
    total = 0.0
    for own, given in zip(logits.double(), teacher.double(), strict=True):
        own_shares = (own / temperature).exp() / (own / temperature).exp().sum()
        given_shares = (given / temperature).exp() / (given / temperature).exp().sum()
        total += float((given_shares * (given_shares / own_shares).log()).sum())
    expected = temperature**2 * total / TEXTS
    assert float(teacher_divergence(logits, teacher, temperature)) == pytest.approx(expected, rel=1e-5)
    assert_close(teacher_divergence(teacher, teacher, temperature), torch.tensor(0.0))


def test_one_logit_is_that_of_the_second_class() -> None:
    logit, teacher = random_logits(TEXTS, 1, seed=1), random_logits(TEXTS, 2, seed=2)
    both = torch.cat((torch.zeros(TEXTS, 1), logit), dim=1)
    assert_close(teacher_divergence(logit, teacher, 1.7), teacher_divergence(both, teacher, 1.7))


class Constant(nn.Module):
    """A network with fixed logits, which are its weights."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, *_: Any) -> Tensor:
        return self.logits


def steps() -> dict[str, tuple[type[Training], Any, Tensor, Tensor]]:
    """Return the LightningModule, a batch, logits of its network, and which of them have a target, for each kind."""
    ids = torch.tensor([[2, 3, 4]] * TEXTS)
    every = torch.ones(TEXTS, LENGTH, dtype=torch.bool)
    last = every.clone()
    last[1, 2] = last[4, 1] = last[4, 2] = False
    targets = torch.arange(TEXTS * LENGTH).view(TEXTS, LENGTH) % CLASSES
    windows, places = random_logits(TEXTS, LENGTH, CLASSES, seed=5), torch.tensor([0, 4, 7, 13])
    pair = PairBatch(ids, every, ids, targets.masked_fill(~last, IGNORED), last, torch.arange(TEXTS), int(last.sum()))
    masked = MaskedBatch(ids, every, places, targets.flatten()[places], torch.arange(TEXTS), TEXTS * LENGTH)
    review = ReviewBatch(ids, every, targets[:, 0], torch.arange(TEXTS), TEXTS * LENGTH)
    return {
        "classifier": (Classification, review, windows[:, 0], every[:, 0]),
        "generator": (Generation, TokenBatch(ids, targets), windows, every),
        "translator": (Translation, pair, windows, last),
        "masked": (MaskedLanguageModeling, masked, windows.flatten(0, 1)[places], every.flatten()[places]),
    }


@pytest.mark.parametrize("kind", steps())
def test_every_kind_learns_from_the_mean_probability_of_networks(kind: str) -> None:
    module_type, batch, logits, has_target = steps()[kind]
    network = Constant(logits)
    teachers = [Constant(random_logits(*logits.shape, seed=seed)) for seed in (8, 9)]
    alone = module_type(network).training_step(batch)["loss"]
    module = module_type(network)
    module.distillation = Distillation(NetworkTeacher(teachers, module.target_logits), weight=0.4, temperature=1.0)
    outputs = module.training_step(batch)
    loss = outputs["loss"]
    shares = sum(teacher.logits.softmax(dim=-1) for teacher in teachers) / 2
    divergence = teacher_divergence(logits[has_target], shares[has_target].log(), 1.0)
    assert_close(loss, 0.6 * alone + 0.4 * divergence)
    if kind != "classifier":  # the perplexity of the training is that of the texts
        assert_close(outputs["token_loss"], alone.detach())
    loss.backward()
    assert network.logits.grad is not None
    assert all(teacher.logits.grad is None for teacher in teachers)
    assert {id(weight) for weight in module.parameters()} == {id(network.logits)}, "the optimizer trains no teacher"
