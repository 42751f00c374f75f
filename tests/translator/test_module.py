"""Training of a translator with Lightning on sentences whose translation is the reversed sentence."""

from functools import partial

import numpy as np
import pytest
import torch
from lightning.pytorch import LightningDataModule
from torch import Tensor, nn
from torch.optim import SGD, AdamW
from torch.testing import assert_close
from torch.utils.data import DataLoader

from firstlight.data.tables import IGNORED
from firstlight.lit.schedules import constant
from firstlight.networks.variants import Norm
from firstlight.text.ragged import RaggedIds
from firstlight.translator.data import PairBatch, PairRows, PairTable
from firstlight.translator.module import Translation
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig
from stand_ins import trainer_of

VOCABULARY, SOURCE_VOCABULARY, CONTEXT = 11, 13, 8


def toy_table(count: int = 101, seed: int = 0) -> tuple[PairTable, list[int], list[int]]:
    """Return sentences of 1 to 7 tokens, the reversed sentences, and their lengths."""
    rng = np.random.default_rng(seed)
    texts = [rng.integers(4, VOCABULARY, rng.integers(1, CONTEXT)).tolist() for _ in range(count)]
    sources, targets = RaggedIds.from_rows(texts), RaggedIds.from_rows(text[::-1] for text in texts)
    return PairTable(sources, targets, CONTEXT), sources.lengths.tolist(), (targets.lengths + 1).tolist()


def toy_batches(size: int = 17) -> list[PairBatch]:
    """Return batches. The last batch is smaller than the others and has other sentences."""
    table, sources, targets = toy_table()
    return [
        table(
            PairRows(
                rows,
                max(sources[row] for row in rows.tolist()),
                max(targets[row] for row in rows.tolist()),
                sum(targets[row] for row in rows.tolist()),
            )
        )
        for rows in torch.arange(101).split(size)
    ]


class Toy(LightningDataModule):
    """The same pairs in every split."""

    def __init__(self, size: int = 17) -> None:
        super().__init__()
        self.batches = toy_batches(size)

    def train_dataloader(self) -> DataLoader[PairBatch]:
        return DataLoader(self.batches, batch_size=None)  # type: ignore[arg-type]

    val_dataloader = test_dataloader = train_dataloader


def network(dropout: float = 0.0) -> EncoderDecoder:
    torch.manual_seed(1)
    config = EncoderDecoderConfig(
        dim=8, num_heads=2, context_length=CONTEXT, norm=Norm.pre, dropout=dropout, embedding_std=0.5
    )
    return EncoderDecoder(config, SOURCE_VOCABULARY, VOCABULARY)


def translation(*, optimizer=None, dropout: float = 0.0, label_smoothing: float = 0.0) -> Translation:
    factory = optimizer or partial(AdamW, lr=0.03)
    return Translation(network(dropout), factory, constant, label_smoothing=label_smoothing)


class Fixed(nn.Module):
    """A network with constant scores, which records its inputs."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)
        self.given: tuple[Tensor, ...] = ()

    def forward(self, *given: Tensor) -> Tensor:
        self.given = given
        return self.logits


# Two sentences of 2 and of 1 token, counting the end, with a vocabulary of 4. At the padding after the second sentence,
# the network predicts one token with a high probability.
SHARES = torch.tensor(
    [[[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]], [[0.7, 0.1, 0.1, 0.1], [1e-9, 1e-9, 1.0, 1e-9]]]
)
TWO = PairBatch(
    source_ids=torch.tensor([[1, 2, 2], [2, 0, 0]]),
    source_mask=torch.tensor([[True, True, True], [True, False, False]]),
    token_ids=torch.tensor([[2, 1], [2, 0]]),
    targets=torch.tensor([[1, 3], [0, IGNORED]]),
    target_mask=torch.tensor([[True, True], [True, False]]),
    rows=torch.tensor([5, 3]),
    num_tokens=3,
)
BY_HAND = torch.tensor([[0.2, 0.25], [0.7, 1.0]]).log().neg()


def fixed(label_smoothing: float = 0.0) -> Translation:
    return Translation(Fixed(SHARES.log()), partial(SGD, lr=0.1), constant, label_smoothing=label_smoothing)


# --- computed by hand ---


def test_the_training_loss_is_the_mean_over_what_is_to_be_written() -> None:
    found = fixed().training_step(TWO)
    assert_close(found["loss"], BY_HAND.sum() / 3)
    assert_close(found["logits"], SHARES.log())
    assert not found["logits"].requires_grad


@pytest.mark.parametrize("stage", ["val", "test"])
def test_an_evaluation_gives_the_loss_of_every_token_and_none_of_padding(stage: str, monkeypatch) -> None:
    module, logged = fixed(label_smoothing=0.3), []
    monkeypatch.setattr(module, "log", lambda name, loss, **options: logged.append((name, loss, options["batch_size"])))
    found = (module.validation_step if stage == "val" else module.test_step)(TWO)
    assert_close(found["token_losses"], BY_HAND)
    assert found["token_losses"][1, 1] == 0
    assert found["predicted"].tolist() == [[3, 0], [0, 2]]
    assert_close(found["loss"], BY_HAND.sum() / 3)
    assert [(name, count) for name, _, count in logged] == [(f"{stage}/loss", 3)]
    assert_close(logged[0][1], BY_HAND.sum() / 3)


def test_smoothing_gives_every_token_a_share_of_each_target_in_training() -> None:
    of_all = -SHARES.log().mean(dim=2)  # the loss of a uniform target
    smooth = 0.7 * BY_HAND + 0.3 * of_all
    assert_close(
        fixed(label_smoothing=0.3).training_step(TWO)["loss"], (smooth[0, 0] + smooth[0, 1] + smooth[1, 0]) / 3
    )


def test_the_network_is_given_the_source_and_what_stands_before_each_target_with_their_masks() -> None:
    module = fixed()
    module(TWO)
    expected = (TWO.source_ids, TWO.token_ids, TWO.source_mask, TWO.target_mask)
    assert len(module.network.given) == 4
    assert all(map(torch.equal, module.network.given, expected))


# --- with Lightning ---


def test_to_write_backwards_is_learned() -> None:
    module, data = translation(), Toy()
    before = trainer_of().validate(module, datamodule=data, verbose=False)[0]["val/loss"]
    trainer = trainer_of(max_epochs=13)
    trainer.fit(module, datamodule=data)
    assert before > 2
    assert trainer.callback_metrics["val/loss"].item() < 1.5
