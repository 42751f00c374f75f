import csv
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from firstlight.classifier import review_table
from firstlight.classifier.review_table import ReviewTable
from firstlight.data.options import Labels


@pytest.fixture
def published(monkeypatch) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return a list of all published tables: the name and the rows of each."""
    tables: list[tuple[str, list[dict[str, Any]]]] = []
    monkeypatch.setattr(
        review_table, "publish_table", lambda trainer, name, rows: tables.append((name, [dict(row) for row in rows]))
    )
    return tables


@pytest.fixture
def board(tmp_path) -> TensorBoardLogger:
    return TensorBoardLogger(tmp_path, name="board", version="")


@pytest.fixture
def folder(tmp_path) -> str:
    return str(tmp_path / "reviews")


class Rows(Callback):
    """Callback that stores the probabilities of every test row."""

    def __init__(self) -> None:
        self.probabilities: dict[int, torch.Tensor] = {}

    def on_test_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        self.probabilities |= dict(zip(batch.rows.tolist(), outputs["probabilities"], strict=True))


def judge(bench, *callbacks: Callback, loggers, labels: Labels = Labels.stars, **options):
    """Test a new network, and return the data."""
    data = bench.data(labels=labels)
    trainer = bench.trainer(*callbacks, loggers=loggers, **options)
    trainer.test(bench.module(data), datamodule=data, verbose=False)
    return data


@pytest.mark.parametrize("labels", Labels)
def test_the_first_reviews_are_shown_with_what_was_said(bench, board, folder, published, labels: Labels) -> None:
    rows = Rows()
    data = judge(bench, ReviewTable(folder, 17), rows, loggers=(board,), labels=labels)
    ((name, table),) = published
    assert name == "test/reviews"
    assert len(table) == 17
    texts = data.texts("test", 17)
    given = "label" if labels is Labels.classes else "stars"
    for line, row, text in zip(table, data.rows("test").tolist(), texts, strict=False):
        shares = rows.probabilities[row]
        assert line["text"] == text
        assert line[given] == data.encoded.label_names[data.encoded.labels[row]]
        assert line["prediction"] == data.class_names[int(shares.argmax())]
        assert [line[f"p({name})"] for name in data.class_names] == pytest.approx(shares.tolist())
        assert list(line) == ["text", given, "prediction", *(f"p({name})" for name in data.class_names)]


def test_a_test_of_some_batches_shows_what_was_judged(bench, board, folder, published) -> None:
    rows = Rows()
    data = judge(bench, ReviewTable(folder, 100), rows, loggers=(board,), limit_test_batches=1)
    ((_, table),) = published
    judged = [
        text
        for row, text in zip(data.rows("test").tolist(), data.texts("test", 100), strict=True)
        if row in rows.probabilities
    ]
    assert [line["text"] for line in table] == judged
    assert len(judged) == 30


def test_a_long_review_is_cut(bench, board, folder, published, monkeypatch) -> None:
    monkeypatch.setattr(review_table, "LONGEST_TEXT", 23)
    data = judge(bench, ReviewTable(folder, 7), loggers=(board,))
    ((_, table),) = published
    assert [line["text"] for line in table] == [text[:23] for text in data.texts("test", 7)]


def test_the_table_is_a_file_too_which_a_logger_without_tables_leaves_to_it(bench, published, folder, tmp_path) -> None:
    judge(bench, ReviewTable(folder, 17), loggers=(CSVLogger(tmp_path),), labels=Labels.binary)
    ((_, table),) = published
    with (tmp_path / "reviews" / "test.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(table[0])
    assert rows == [[str(value) for value in line.values()] for line in table]
    assert len(rows) == 17


def test_every_test_shows_a_table_and_a_validation_none(bench, board, folder, published) -> None:
    data = bench.data()
    trainer = bench.trainer(ReviewTable(folder, 7), loggers=(board,))
    for run in (trainer.test, trainer.validate, trainer.test):
        run(bench.module(data), datamodule=data, verbose=False)
    assert [len(table) for _, table in published] == [7, 7]


def test_tensorboard_gets_the_table(bench, board, folder) -> None:
    data = judge(bench, ReviewTable(folder, 7), loggers=(board,), labels=Labels.binary)
    board.experiment.flush()
    events = EventAccumulator(board.log_dir, size_guidance={"tensors": 0}).Reload()
    (event,) = events.Tensors("test/reviews/text_summary")
    lines = event.tensor_proto.string_val[0].decode().splitlines()
    assert lines[0] == "| text | stars | prediction | p(negative) | p(positive) |"
    assert len(lines) == 2 + 7
    for line, text in zip(lines[2:], data.texts("test", 7), strict=True):
        assert " ".join(text.split()).replace("|", "\\|") in line
