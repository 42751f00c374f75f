"""Training of a generator with Lightning on texts that follow a rule."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch import LightningDataModule
from torch import Tensor
from torch.optim import SGD, AdamW
from torch.testing import assert_close
from torch.utils.data import DataLoader

from firstlight.data.tables import TokenBatch
from firstlight.generator.module import Generation
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.lit.schedules import constant
from firstlight.networks.variants import Norm
from stand_ins import Outputs, trainer_of

VOCABULARY, LENGTH, ROWS = 13, 7, 101


def toy_windows(rows: int = ROWS, length: int = LENGTH, seed: int = 0) -> Tensor:
    """Return texts that count in steps of three from a random number: (rows, length + 1)."""
    first = torch.randint(VOCABULARY, (rows, 1), generator=torch.Generator().manual_seed(seed))
    return (first + 3 * torch.arange(length + 1)) % VOCABULARY


def toy_batch(windows: Tensor) -> TokenBatch:
    return TokenBatch(windows[:, :-1], windows[:, 1:])


class Toy(LightningDataModule):
    """The same windows in every split. The last batch is smaller, and its window is shorter in evaluation."""

    def __init__(self, batch_size: int = 17) -> None:
        super().__init__()
        parts = toy_windows().split(batch_size)
        self.training = [toy_batch(part) for part in parts]
        self.evaluation = [*self.training, toy_batch(toy_windows(rows=1, length=3, seed=1))]

    def train_dataloader(self) -> DataLoader[TokenBatch]:
        return DataLoader(self.training, batch_size=None)  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader[TokenBatch]:
        return DataLoader(self.evaluation, batch_size=None)  # type: ignore[arg-type]

    test_dataloader = val_dataloader


def generation(*, schedule=constant, optimizer=None, dropout: float = 0.0) -> Generation:
    torch.manual_seed(1)
    config = GeneratorConfig(
        dim=8, num_heads=2, context_length=LENGTH, norm=Norm.pre, dropout=dropout, embedding_std=0.5
    )
    return Generation(Generator(config, VOCABULARY), optimizer or partial(AdamW, lr=0.03), schedule)


@torch.inference_mode()
def loss_of_each_token(module: Generation, data: Toy) -> Tensor:
    """Return all tokens of an evaluation, text by text."""
    losses = [
        F.cross_entropy(module.eval()(token_ids[None])[0], targets, reduction="none")
        for batch in data.evaluation
        for token_ids, targets in zip(*batch, strict=True)
    ]
    return torch.cat(losses)


@pytest.mark.parametrize("stage", ["val", "test"])
def test_the_logged_loss_is_the_mean_over_all_tokens_and_an_evaluation_returns_each(stage: str) -> None:
    """The last batch has fewer tokens and a smaller weight."""
    module, data, outputs = generation(), Toy(), Outputs()
    losses, trainer = loss_of_each_token(module, data), trainer_of(outputs)
    assert len(losses) == ROWS * LENGTH + 3
    (metrics,) = (trainer.validate if stage == "val" else trainer.test)(module, datamodule=data, verbose=False)
    assert metrics == {f"{stage}/loss": pytest.approx(losses.mean().item(), rel=1e-5)}
    found = outputs.seen[stage]
    assert_close(torch.cat([seen["token_losses"].flatten() for seen in found]), losses)
    for seen, batch in zip(found, data.evaluation, strict=True):
        assert seen["token_losses"].shape == batch.targets.shape
        with torch.inference_mode():
            assert torch.equal(seen["predicted"], module(batch.token_ids).argmax(dim=2))


def test_a_training_step_returns_the_mean_loss_and_logits_that_hold_no_graph() -> None:
    outputs, module, data = Outputs(), generation(optimizer=partial(SGD, lr=0.0)), Toy()
    trainer_of(outputs).fit(module, datamodule=data)
    assert [tuple(seen["logits"].shape) for seen in outputs.seen["train"]] == [(17, 7, 13)] * 5 + [(16, 7, 13)]
    assert not any(seen["logits"].requires_grad for seen in outputs.seen["train"])
    for seen, batch in zip(outputs.seen["train"], data.training, strict=True):
        assert_close(seen["loss"], F.cross_entropy(seen["logits"].flatten(0, 1), batch.targets.flatten()))
