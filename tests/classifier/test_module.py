from functools import partial

import pytest
import torch
from lightning.pytorch import LightningDataModule
from torch.optim import AdamW
from torch.testing import assert_close
from torch.utils.data import DataLoader

from firstlight.classifier.module import Classification
from firstlight.classifier.network import BagOfWords, Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.data.tables import ReviewBatch, review_batch
from firstlight.lit.losses import classification_loss
from firstlight.lit.schedules import constant
from firstlight.networks.variants import Norm, PoolingKind
from stand_ins import trainer_of

VOCABULARY, LENGTH, ROWS = 13, 7, 101


def toy_batch(classes: int, rows: int = ROWS, seed: int = 0) -> ReviewBatch:
    """Return texts of 1 to 7 tokens. The first token gives the class: token 2 is class 0, token 3 class 1, …"""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, LENGTH + 1, (rows, 1), generator=generator)
    padding_mask = torch.arange(LENGTH) < lengths
    token_ids = torch.randint(2 + classes, VOCABULARY, (rows, LENGTH), generator=generator)
    targets = torch.randint(classes, (rows,), generator=generator)
    token_ids[:, 0] = 2 + targets
    token_ids = token_ids.masked_fill(~padding_mask, 0)
    return ReviewBatch(token_ids, padding_mask, targets, torch.arange(rows), int(lengths.sum()))


class Toy(LightningDataModule):
    """The same rows in every split, in batches. The last batch is smaller."""

    def __init__(self, classes: int, batch_size: int = 17) -> None:
        super().__init__()
        whole = toy_batch(classes)
        places = torch.arange(ROWS).split(batch_size)
        self.batches = [
            ReviewBatch(*(part[rows] for part in whole[:4]), int(whole.padding_mask[rows].sum())) for rows in places
        ]

    def loader(self) -> DataLoader[ReviewBatch]:
        return DataLoader(self.batches, batch_size=None)  # type: ignore[arg-type]

    train_dataloader = val_dataloader = test_dataloader = loader


def classification(classes: int, *, schedule=constant, optimizer=None, **options) -> Classification:
    torch.manual_seed(1)
    sizes = {"dim": 8, "num_heads": 2, "context_length": LENGTH}
    config = ClassifierConfig(norm=Norm.pre, pooling=PoolingKind.mean, dropout=0.0, **sizes)
    network = Classifier(config, VOCABULARY, 1 if classes == 2 else classes)
    return Classification(network, optimizer or partial(AdamW, lr=0.03), schedule, **options)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_logged_loss_is_the_mean_over_all_rows(classes: int) -> None:
    """The last batch is smaller and has a smaller weight."""
    module, data = classification(classes), Toy(classes)
    batch = toy_batch(classes)
    with torch.inference_mode():
        expected = classification_loss(module.eval()(batch.token_ids, batch.padding_mask), batch.targets).item()
    assert trainer_of().validate(module, datamodule=data, verbose=False)[0]["val/loss"] == pytest.approx(expected)
    assert trainer_of().test(module, datamodule=data, verbose=False)[0]["test/loss"] == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_and_smoothing_shape_the_training_and_not_what_is_measured(classes: int) -> None:
    weights = torch.arange(1.0, classes + 1)
    module = classification(classes, class_weights=weights, label_smoothing=0.2)
    batch = toy_batch(classes)
    logits = module(batch.token_ids, batch.padding_mask)
    assert set(module.state_dict()) == {f"network.{name}" for name in module.network.state_dict()}
    expected = classification_loss(logits, batch.targets, weights, label_smoothing=0.2)
    assert_close(module.training_step(batch)["loss"], expected)
    measured = trainer_of().validate(module, datamodule=Toy(classes), verbose=False)[0]["val/loss"]
    assert measured == pytest.approx(classification_loss(logits, batch.targets).item())


def test_r_drop_adds_what_two_passes_disagree_by() -> None:
    batch = toy_batch(3)
    module, plain = classification(3, r_drop=2.0), classification(3)
    for each in (module, plain):
        each.network.dropout.p = 0.5
    torch.manual_seed(7)
    loss = module.training_step(batch)["loss"]
    torch.manual_seed(7)
    one, other = (plain(batch.token_ids, batch.padding_mask) for _ in range(2))
    p, q = one.softmax(dim=1), other.softmax(dim=1)
    divergence = ((p * (p / q).log()).sum(dim=1) + (q * (q / p).log()).sum(dim=1)).mean() / 2
    assert divergence > 1e-3
    means = (classification_loss(one, batch.targets) + classification_loss(other, batch.targets)) / 2
    assert_close(loss, means + 2.0 * divergence)


@pytest.mark.parametrize("form", [{}, {"both_orders": True}, {"choices": True}])
def test_the_text_loss_is_that_of_the_next_tokens_of_each_text(form: dict[str, bool]) -> None:
    torch.manual_seed(1)
    options = {"context_length": LENGTH, "causal": True, "pooling": "last", "embedding_dim": 6, "dropout": 0.0}
    config = ClassifierConfig(dim=8, num_heads=2, **options)
    network = Classifier(config, VOCABULARY, 1 if "choices" in form else 3, **form)
    ids = torch.tensor([[2, 5, 6, 3, 8, 4, 0], [2, 9, 3, 7, 7, 9, 4], [2, 3, 4, 0, 0, 0, 0]])
    batch = review_batch((ids[None], torch.tensor([0])) if "choices" in form else (ids, torch.tensor([0, 2, 1])))
    seen: list[torch.Tensor] = []
    network.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    module = Classification(network, text_loss_weight=0.5)
    step = module.training_step(batch)
    shares = (seen[0][:3] @ network.projection(network.embedding.weight).T).log_softmax(dim=-1)
    losses = [-shares[i, j - 1, ids[i, j]] for i in range(3) for j in range(1, 7) if ids[i, j]]
    plain = classification_loss(step["logits"], batch.targets)
    assert_close(step["loss"], plain + 0.5 * torch.stack(losses).mean())
    assert_close(module.measure(batch).outputs["loss"], plain)


def test_the_text_loss_requires_a_causal_network_without_features() -> None:
    options = {"dim": 8, "num_heads": 2, "context_length": LENGTH}
    networks = (
        Classifier(ClassifierConfig(**options), VOCABULARY, 3),
        Classifier(ClassifierConfig(**options, causal=True), VOCABULARY, 3, num_features=2),
        BagOfWords(ClassifierConfig(**options), VOCABULARY, 3),
    )
    for network in networks:
        with pytest.raises(ValueError, match=r"text_loss_weight=0\.5 requires .*; set model\.causal=true"):
            Classification(network, text_loss_weight=0.5)


def test_every_step_hands_the_network_the_features_of_its_batch() -> None:
    torch.manual_seed(1)
    batch = toy_batch(3)._replace(features=torch.randn(ROWS, LENGTH, 2))
    config = ClassifierConfig(dim=8, num_heads=2, context_length=LENGTH, dropout=0.0)
    module = Classification(Classifier(config, VOCABULARY, 3, num_features=2), partial(AdamW, lr=0.03), constant)
    expected = module.network(batch.token_ids, batch.padding_mask, batch.features).detach()
    assert_close(module.training_step(batch)["logits"], expected)
    shares = expected.softmax(dim=1)
    module.log = lambda *_, **__: None
    assert_close(module.validation_step(batch)["probabilities"].detach(), shares)
    assert_close(module.test_step(batch)["probabilities"].detach(), shares)
