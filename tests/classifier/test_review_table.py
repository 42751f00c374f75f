import csv
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback

from firstlight.callbacks import publish
from firstlight.classifier import metrics
from firstlight.classifier.metrics import ReviewTable
from firstlight.data.options import Labels
from tests_support import read_csv


@pytest.fixture
def published(monkeypatch) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return a list of all published tables: the name and the rows of each."""
    tables: list[tuple[str, list[dict[str, Any]]]] = []
    monkeypatch.setattr(publish, "publish_table", lambda _, name, rows: tables.append((name, rows)))
    return tables


@pytest.fixture
def folder(tmp_path) -> str:
    return str(tmp_path / "reviews")


class Rows(Callback):
    """Callback that stores the probabilities of every test row."""

    def __init__(self) -> None:
        self.probabilities: dict[int, torch.Tensor] = {}

    def on_test_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        self.probabilities |= dict(zip(batch.rows.tolist(), outputs["probabilities"], strict=True))


def judge(bench, *callbacks: Callback, labels: Labels = Labels.stars, **options):
    """Test a new network, and return the data."""
    data = bench.data(labels=labels)
    bench.trainer(*callbacks, **options).test(bench.module(data), datamodule=data, verbose=False)
    return data


@pytest.mark.parametrize("labels", Labels)
def test_the_first_reviews_are_shown_with_what_was_said_and_written(bench, folder, published, labels: Labels) -> None:
    rows = Rows()
    data = judge(bench, ReviewTable(folder, 17), rows, labels=labels)
    ((name, table),) = published
    assert name == "test/reviews"
    assert len(table) == 17
    texts = data.texts("test", 17)
    given = "label" if labels is Labels.classes else "stars"
    for line, row, text in zip(table, data.rows("test").tolist(), texts, strict=False):
        shares = rows.probabilities[row]
        assert line["text"] == text
        assert line[given] == data.encoded.label_names[data.encoded.labels[row]]
        assert line["true"] == data.class_names[data.targets[row]]
        assert line["prediction"] == data.class_names[int(shares.argmax())]
        assert [line[f"p({name})"] for name in data.class_names] == pytest.approx(shares.tolist())
    with Path(folder, "test.csv").open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert (
        header == list(table[0]) == ["text", given, "true", "prediction", *(f"p({name})" for name in data.class_names)]
    )
    assert lines == [[str(value) for value in line.values()] for line in table]


def test_a_test_of_some_batches_shows_what_was_judged(bench, folder, published, monkeypatch) -> None:
    monkeypatch.setattr(metrics, "LONGEST_TEXT", 23)
    rows = Rows()
    data = judge(bench, ReviewTable(folder, 100), rows, limit_test_batches=1)
    ((_, table),) = published
    texts = zip(data.rows("test").tolist(), data.texts("test", 100), strict=True)
    assert [line["text"] for line in table] == [text[:23] for row, text in texts if row in rows.probabilities]
    assert len(table) == 30


def test_a_validation_writes_the_most_confident_texts_of_each_cell_and_shows_no_table(
    bench, folder, published, monkeypatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_OF_CELL", 3)
    data = bench.data()
    trainer = bench.trainer(ReviewTable(folder, 7))
    for run in (trainer.test, trainer.validate, trainer.test):
        run(bench.module(data), datamodule=data, verbose=False)
    assert [len(table) for _, table in published] == [7, 7]
    written = read_csv(Path(folder, "validation.csv"))
    cells = [list(rows) for _, rows in groupby(written, lambda row: (row["true"], row["prediction"]))]
    assert {row["text"] for rows in cells for row in rows} <= set(data.texts("validation", 10**6))
    shares = [[float(row[f"p({row['prediction']})"]) for row in rows] for rows in cells]
    assert max(map(len, shares)) == 3
    assert shares == [sorted(each, reverse=True) for each in shares]
