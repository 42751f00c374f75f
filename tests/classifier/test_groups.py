"""Groups of rows: their names, the accuracy of each, and what is refused."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning as L
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from composed import composed
from firstlight.callbacks.write_predictions import WritePredictions
from firstlight.classifier.baseline import fit, row_weights
from firstlight.classifier.data import ReviewData
from firstlight.classifier.evaluation import Judged, measure
from firstlight.classifier.module import Classification
from firstlight.data.tables import ReviewBatch
from firstlight.errors import UserError
from firstlight.lit.losses import group_terms
from firstlight.runs.predictions import read_predictions


def mixture(folder: Path, **options: Any) -> ReviewData:
    rows = [
        {"text": f"text {i}", "label": 4 * (i % 2), "shop": "ab"[i % 2], "id": f"{'xy'[i // 30]}_2_{i}"}
        for i in range(60)
    ]
    (folder / "mixture.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ReviewData(path=str(folder / "mixture.jsonl"), cache_dir=str(folder / "cache"), **options)


def prepared(data: ReviewData) -> ReviewData:
    data.ensure_setup()
    return data


@pytest.mark.parametrize(
    ("named", "expected"),
    [("shop", ["a", "b", "a", "b"]), ("id:^(.+)_", ["x_2", "x_2", "y_2", "y_2"]), (None, [])],
)
def test_a_column_or_a_part_of_it_names_the_group_of_each_row(tmp_path: Path, named, expected) -> None:
    data = prepared(mixture(tmp_path, group_column=named))
    assert data.groups(np.array([2, 5, 40, 31])) == expected


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("store", r"^data.group_column=store: .*mixture.jsonl:1: the column 'store' does not exist; the columns are "),
        (
            "id:^(z)_",
            r"^data.group_column=id:\^\(z\)_: 'x_2_\d+' of .* names no group; change the column or the pattern$",
        ),
    ],
)
def test_a_missing_column_and_a_value_without_a_group_are_refused_before_the_training(tmp_path, named, message) -> None:
    with pytest.raises(UserError, match=message):
        mixture(tmp_path, group_column=named).ensure_setup()


def test_each_group_has_its_accuracy_with_the_interval_of_wilson() -> None:
    data: Any = SimpleNamespace(targets=np.array([0, 0, 1, 1, 1]), groups=lambda rows: ["b", "a", "b", "b", "b"])
    judged = Judged(data, "test", np.arange(5), torch.tensor([[-1.0], [1.0], [1.0], [1.0], [-1.0]]))
    first, second = judged.per_group()
    z2 = 1.959964**2
    assert first == {
        "group": "a",
        "texts": 1,
        "accuracy": 0,
        "low": pytest.approx(0),
        "high": pytest.approx(z2 / (1 + z2)),
    }
    middle, half = (3 + z2 / 2) / (4 + z2), (z2 * (3 / 4 + z2 / 4)) ** 0.5 / (4 + z2)
    bounds = {"low": pytest.approx(middle - half), "high": pytest.approx(middle + half)}
    assert second == {"group": "b", "texts": 4, "accuracy": 0.75, **bounds}


def test_the_accuracy_of_each_group_is_drawn_beside_the_predictions(tmp_path: Path) -> None:
    data = prepared(mixture(tmp_path, group_column="shop", labels="binary"))
    measured = measure(SimpleNamespace(network=lambda ids, *_: torch.zeros(len(ids), 1)), data, "test")
    measured.write(tmp_path)
    assert [row["group"] for row in measured.per_group] == ["a", "b"]
    assert (tmp_path / "accuracy_per_group.png").is_file()
    predicted = read_predictions(tmp_path / "predictions.npz")
    assert predicted is not None
    assert predicted.groups is not None
    assert predicted.groups.tolist() == ["ab"[row % 2] for row in predicted.rows.tolist()]
    module = Classification.for_data(data, architecture="logistic")
    callbacks: Any = {"callbacks": [WritePredictions(tmp_path / "of_training")], "logger": False, "accelerator": "cpu"}
    L.Trainer(**callbacks, enable_progress_bar=False).validate(module, data, verbose=False)
    validated = read_predictions(tmp_path / "of_training" / "validation.npz")
    assert validated is not None
    assert validated.groups is not None
    assert validated.groups.tolist() == ["ab"[row % 2] for row in validated.rows.tolist()]


def written(folder: Path, rows: list[tuple[str, int, str]], **options: Any) -> ReviewData:
    lines = [json.dumps({"text": text, "label": 4 * label, "shop": shop}) + "\n" for text, label, shop in rows]
    (folder / "rows.jsonl").write_text("".join(lines))
    sizes = {"batch_size": 100, "context_length": 8, "cache_dir": str(folder / "cache")}
    return ReviewData(path=str(folder / "rows.jsonl"), labels="binary", group_column="shop", **sizes, **options)


def trained_probability(data: ReviewData, text: str, **options: Any) -> float:
    """Return the probability of the class positive after training a logistic regression."""
    module = Classification.for_data(data, architecture="logistic", lr=0.3, **options)
    quiet: Any = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = L.Trainer(max_steps=100, accelerator="cpu", enable_model_summary=False, limit_val_batches=0, **quiet)
    trainer.fit(module, datamodule=data)
    return float(module.eval()(torch.tensor([data.tokenizer.encode(text)])).sigmoid())


def test_the_prior_removes_what_a_word_says_only_of_its_group(tmp_path: Path) -> None:
    guitars = [("guitar", int(i % 10 > 0), "music") for i in range(500)]  # 9 of 10 are positive
    chairs = [("chair", i % 2, "market") for i in range(500)]
    for group_prior, expected in ((False, 0.9), (True, 0.5)):
        found = trained_probability(written(tmp_path, guitars + chairs), "guitar", group_prior=group_prior)
        assert found == pytest.approx(expected, abs=0.05)


def test_weights_of_groups_decide_between_two_meanings_of_a_word(tmp_path: Path) -> None:
    meanings = [("sick", 1, "music") for _ in range(600)] + [("sick", 0, "market") for _ in range(300)]
    rows = meanings + [("bad", 0, "market"), ("good", 1, "music")] * 50
    for weights, expected in ((None, 2 / 3), ({"market": 4.0}, 1 / 3)):
        found = trained_probability(written(tmp_path, rows, group_weights=weights), "sick")
        assert found == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_the_training_loss_by_hand(num_classes: int) -> None:
    targets = np.array([0, 1, 1, 0])
    data: Any = SimpleNamespace(
        rows=lambda split: np.arange(3),
        groups=lambda rows: ["a", "b", "b"],
        options=SimpleNamespace(group_weights={"b": 3.0}, finish_on=None),
        targets=targets,
        num_classes=num_classes,
    )
    logits = torch.tensor([[0.5, -0.2, 0.1], [0.3, 0.4, 0.0], [-1.0, 0.2, 0.6]])[:, :num_classes]
    outputs = logits if num_classes > 2 else logits[:, 1:] - logits[:, :1]
    batch = ReviewBatch(torch.zeros(3, 1).long(), torch.ones(3, 1).bool(), torch.tensor([0, 1, 1]), torch.arange(3), 3)
    module = Classification(torch.nn.Identity(), group_prior=True, groups=group_terms(data))
    priors = torch.tensor([[2, 1, 1], [1, 3, 1]])[[0, 1, 1], :num_classes].float()
    shares = (logits.exp() * priors) / (logits.exp() * priors).sum(dim=1, keepdim=True)
    losses = -shares[torch.arange(3), batch.targets].log()
    expected = (losses * torch.tensor([1, 3, 3])).sum() / 7
    torch.testing.assert_close(module._training_loss(outputs, batch), expected)


def test_groups_without_weights_and_prior_leave_the_loss_equal_to_the_last_bit(tmp_path: Path) -> None:
    data = mixture(tmp_path, group_column="shop", labels="binary")
    module = Classification.for_data(data, dim=8, num_heads=2, dropout=0.0)
    batch = next(iter(data.train_dataloader()))
    plain = Classification(module.network)
    assert torch.equal(module.training_step(batch)["loss"], plain.training_step(batch)["loss"])


@pytest.mark.parametrize(
    ("options", "prior", "message"),
    [
        ({"group_weights": {"store": 2.0}}, False, r"^data.group_weights: store is not a group of .* are a, b$"),
        ({"finish_on": "c"}, False, r"^data.finish_on: c is not a group of the training rows; the groups are a, b"),
        ({"group_column": None}, True, "group_prior=.* requires data.group_column; set it"),
    ],
)
def test_what_needs_other_groups_is_refused_before_the_training(tmp_path, options, prior, message) -> None:
    data = mixture(tmp_path, **{"group_column": "shop"} | options)
    with pytest.raises(UserError, match=message):
        Classification.for_data(data, dim=8, num_heads=2, group_prior=prior)


def test_the_last_steps_draw_rows_of_one_group(tmp_path: Path) -> None:
    rows = [(f"text {i}", i % 2, ("music", "market")[i % 3 > 0]) for i in range(121)]
    data = written(tmp_path, rows, finish_on="market", finish_share=0.3)
    data.options.batch_size = 10
    module = Classification.for_data(data, architecture="logistic")
    seen: list[set[str]] = []
    note = L.pytorch.callbacks.LambdaCallback(
        on_train_batch_end=lambda trainer, module, outputs, batch, place: seen.append(set(data.groups(batch.rows)))
    )
    quiet: Any = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "max_epochs": 2}
    trainer = L.Trainer(accelerator="cpu", enable_model_summary=False, limit_val_batches=0, callbacks=[note], **quiet)
    trainer.fit(module, datamodule=data)
    steps = len(seen)  # 20 of two epochs
    assert [groups == {"market"} for groups in seen] == [False] * (steps - 6) + [True] * 6
    assert steps == 20


def test_weights_and_the_prior_are_set_on_the_command_line(tmp_path: Path) -> None:
    groups = ["data.group_column=shop", "data.group_weights={a:2}", "module.group_prior=true"]
    config = composed("task=reviews", f"data.path={tmp_path}", *groups)
    data = OmegaConf.to_object(config.data)
    assert (data.group_column, data.group_weights, config.module.group_prior) == ("shop", {"a": 2}, True)


def test_rows_of_tfidf_are_weighted_by_the_group_and_by_the_inverse_of_its_prior(tmp_path: Path) -> None:
    rows = [("guitar", int(i % 4 > 0), "music") for i in range(200)] + [("chair", i % 2, "market") for i in range(200)]
    data = prepared(written(tmp_path, rows, group_weights={"market": 2.0}))
    used = data.rows("train")
    groups, targets = np.array(data.groups(used)), data.targets[used]
    weights = np.where(groups == "market", 2.0, 1.0)
    np.testing.assert_allclose(row_weights(data, group_prior=False), weights / weights.mean())
    for group in ("music", "market"):
        for label in (0, 1):
            count = ((groups == group) & (targets == label)).sum() + 1
            weights[(groups == group) & (targets == label)] *= ((groups == group).sum() + 2) / count
    np.testing.assert_allclose(row_weights(data, group_prior=True), weights / weights.mean(), rtol=1e-6)
    assert row_weights(prepared(written(tmp_path, rows)), group_prior=False) is None


def test_the_prior_removes_from_tfidf_what_a_word_says_only_of_its_group(tmp_path: Path) -> None:
    rows = [("guitar", int(i % 10 > 0), "music") for i in range(500)]
    rows += [("chair", i % 2, "market") for i in range(500)]
    data = prepared(written(tmp_path, rows))
    for group_prior, expected in ((False, 0.9), (True, 0.5)):
        folder = tmp_path / str(group_prior)
        folder.mkdir()
        fit(data, "val/loss", folder, group_prior=group_prior)
        saved = np.load(folder / "predictions" / "validation.npz")
        music = np.array(data.groups(data.rows("validation"))) == "music"
        positive = data.targets[data.rows("validation")] == 1
        np.testing.assert_array_equal(saved["rows"], data.rows("validation"))
        np.testing.assert_allclose(np.exp(-saved["losses"][music & positive]), expected, atol=0.06)


def test_the_prior_of_tfidf_requires_groups(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^--group-prior requires --data\.group-column; set it"):
        row_weights(prepared(mixture(tmp_path)), group_prior=True)


SETS, ROWS = 200, 800  # simulated data sets, and the rows of each


def found(difference: float, number: int) -> tuple[bool, bool, bool]:
    """Return whether a word is found to name a class in a simulated data set: uncorrected, and with both corrections.

    The word is in 60% of the texts of a shop in which 4 of 5 texts are positive, and in none of the other shop. Within
    the shop, its share is higher by `difference` in positive texts. The corrections are the prior of a training (the
    bias that minimizes the loss, with Wald's test) and the weights of TF-IDF (the weighted mean, with a z test).
    """
    random = np.random.default_rng(number)
    shops = np.repeat(["music", "market"], ROWS // 2)
    targets = (random.random(ROWS) < np.where(shops == "music", 0.8, 0.5)).astype(int)
    has_word = (shops == "music") & (random.random(ROWS) < 0.6 + difference * (targets - 0.8))
    options = SimpleNamespace(group_weights=None, finish_on=None, group_column="shop", choices=None)
    common: Any = {"groups": lambda rows: shops[rows], "targets": targets, "num_classes": 2, "options": options}
    data: Any = SimpleNamespace(rows=lambda split: np.arange(ROWS), **common)
    terms, weights = group_terms(data), row_weights(data, group_prior=True)
    assert weights is not None
    priors = terms.log_priors[int(terms.numbers[0])].tolist()  # of the first row, music
    offset, share = priors[1] - priors[0], targets[has_word].mean()
    log_odds, error = np.log(share / (1 - share)), 1 / np.sqrt(has_word.sum() * share * (1 - share))
    of_word, signs = weights[has_word], 2.0 * targets[has_word] - 1
    mean = (of_word @ signs) / of_word.sum()
    spread = np.sqrt(of_word**2 @ (signs - mean) ** 2) / of_word.sum()
    return abs(log_odds) > 1.96 * error, abs(log_odds - offset) > 1.96 * error, abs(mean) > 1.96 * spread


def test_in_200_data_sets_a_word_that_only_names_its_shop_is_not_found_to_name_a_class_and_another_is() -> None:
    without, prior, weighted = np.mean([found(0.0, number) for number in range(SETS)], axis=0)
    assert without == 1, "the fault that is corrected"
    assert max(prior, weighted) <= 0.05 + 2 * (0.05 * 0.95 / SETS) ** 0.5
    _, prior, weighted = np.mean([found(0.25, number) for number in range(SETS)], axis=0)
    assert min(prior, weighted) >= 0.8
