from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lightning.pytorch import Callback
from lightning.pytorch.loggers import TensorBoardLogger
from matplotlib.figure import Figure
from PIL import Image
from sklearn.metrics import confusion_matrix
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from firstlight import figures
from firstlight.classifier.metrics import ConfusionMatrix, print_counts
from firstlight.data.options import Labels, SourceKind
from firstlight.figures.style import SAMPLE_MARK
from tests_support import read_csv


def counts_of(path: Path, names: list[str]) -> np.ndarray:
    """Return the counts of a CSV file: (classes, classes), a row for each true class."""
    counts = np.zeros((len(names), len(names)), dtype=int)
    for row in read_csv(path):
        counts[names.index(row["true"]), names.index(row["predicted"])] = int(row["count"])
    return counts


@pytest.fixture
def quick(monkeypatch) -> None:
    """Replace the slow drawing in tests that do not check the figure."""
    monkeypatch.setattr(figures, "plot_confusion_matrix", lambda *_, **__: Figure(figsize=(100, 1)))


def evaluate(bench, stage: str, *callbacks: Callback, labels: Labels = Labels.stars):
    """Train a little, then evaluate with `Trainer.validate` or `Trainer.test`. Return the data."""
    data = bench.data(labels=labels)
    trainer = bench.fit(*callbacks, data=data)
    getattr(trainer, stage)(trainer.lightning_module, datamodule=data, verbose=False)
    return data


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("labels", Labels)
def test_the_counts_are_scikit_learns_on_the_same_predictions(bench, judged, tmp_path, labels: Labels) -> None:
    data = bench.data(labels=labels)
    trainer = bench.fit(
        ConfusionMatrix(str(tmp_path / "matrix")), data=data
    )  # the validations of the training are not counted
    trainer.callbacks.append(judged)
    for stage, split in (("val", "validation"), ("test", "test")):
        run = trainer.validate if stage == "val" else trainer.test
        run(trainer.lightning_module, datamodule=data, verbose=False)
        expected = confusion_matrix(judged.targets[stage], judged.predictions[stage], labels=range(data.num_classes))
        counts = counts_of(tmp_path / "matrix" / f"{split}.csv", data.class_names)
        np.testing.assert_array_equal(counts, expected)
        assert counts.sum() == len(data.rows(split))
        for name in data.class_names:
            of_class = [row for row in read_csv(tmp_path / "matrix" / f"{split}.csv") if row["true"] == name]
            assert sum(float(row["share_of_true"]) for row in of_class) == pytest.approx(1)


@pytest.mark.usefixtures("drawn_in_full")
def test_the_picture_is_a_whole_png_and_the_counts_are_printed(bench, tmp_path, capsys) -> None:
    evaluate(bench, "test", ConfusionMatrix(str(tmp_path)), labels=Labels.binary)
    out = capsys.readouterr().out
    assert all(text in out for text in ("Confusion matrix, test", "negative", "positive"))
    with Image.open(tmp_path / "test.png") as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 1000
    assert sorted(path.name for path in tmp_path.glob("test.*")) == ["test.csv", "test.png"]


@pytest.mark.parametrize("source", ["sample", "local"])
def test_the_picture_of_generated_data_is_marked(bench, tmp_path, monkeypatch, source: str) -> None:
    drawn = []
    monkeypatch.setattr(figures, "plot_confusion_matrix", lambda *_, **__: drawn.append(Figure()) or drawn[-1])
    data = bench.data()
    trainer = bench.fit(data=data)
    data.source = replace(data.source, kind=SourceKind(source))
    trainer.callbacks.append(ConfusionMatrix(str(tmp_path)))
    trainer.test(trainer.lightning_module, datamodule=data, verbose=False)
    assert [figure.get_suptitle().endswith(SAMPLE_MARK.strip()) for figure in drawn] == [source == "sample"]


def test_the_fit_writes_and_prints_nothing(bench, tmp_path, capsys) -> None:
    bench.fit(ConfusionMatrix(str(tmp_path / "matrix")), max_epochs=2)
    assert not (tmp_path / "matrix").exists()
    assert "Confusion matrix" not in capsys.readouterr().out


def test_every_validation_of_the_fit_but_the_sanity_check_goes_to_the_loggers(bench, tmp_path) -> None:
    board = TensorBoardLogger(tmp_path, name="board", version="")
    data = bench.data(labels=Labels.binary)
    own = {"loggers": (board,), "max_epochs": 2, "num_sanity_val_steps": 2}
    bench.fit(ConfusionMatrix(str(tmp_path / "matrix")), data=data, **own)
    board.experiment.flush()
    events = EventAccumulator(board.log_dir, size_guidance={"images": 0, "tensors": 0}).Reload()
    pictures = events.Images("val/confusion_matrix")
    assert [event.step for event in pictures] == [step for step, _ in bench.memory.curve("val/loss")] == [5, 11]
    assert min(event.width for event in pictures) > 500
    tables = events.Tensors("val/confusion_matrix_table/text_summary")
    assert [event.step for event in tables] == [5, 11]
    header, _, *rows = tables[0].tensor_proto.string_val[0].decode().splitlines()
    assert header.startswith("| true | predicted | count | share_of_true |")
    counted = sum(int(row.split("|")[3]) for row in rows)
    assert counted == len(data.rows("validation")), "the sanity check is not counted"


@pytest.mark.usefixtures("quick")
def test_many_classes_are_not_printed(bench, tmp_path, capsys) -> None:
    evaluate(bench, "test", ConfusionMatrix(str(tmp_path), most_printed=4))
    assert "Confusion matrix" not in capsys.readouterr().out
    assert (tmp_path / "test.csv").is_file()


def test_what_is_printed_has_counts_and_shares_of_the_row(capsys) -> None:
    print_counts(np.array([[3, 1], [0, 0]]), ["bad", "good"], "Counts")
    lines = capsys.readouterr().out.splitlines()
    (bad,) = (line for line in lines if line.lstrip("│┃ ").startswith("bad"))
    (good,) = (line for line in lines if line.lstrip("│┃ ").startswith("good"))
    assert "3 (75%)" in bad
    assert "1 (25%)" in bad
    assert good.count("0 (0%)") == 2  # a class without examples
