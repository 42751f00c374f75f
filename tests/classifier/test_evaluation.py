"""What every evaluation of a run has in common: its folder, its record, and what it says of generated data."""

import json
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from firstlight.classifier.evaluation import Judged
from firstlight.classifier.prediction import Prediction
from firstlight.classifier.run import ClassifierRun
from firstlight.commands.evaluate import (
    TRAINED_ON_SAMPLE_NOTE,
    EvaluateOptions,
    results_folder,
    sample_note,
    write_metrics,
)
from firstlight.data.options import SourceKind
from firstlight.figures.style import SAMPLE_MARK
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.kind import Measurement
from firstlight.runs.folder import SAMPLE_NOTE

OTHER = {each.name: 1 if each.name == "lowest_label" else f"other_{each.name}" for each in fields(DataChanges)}


def loaded(folder: Path, data_source: str = "local") -> Any:
    return SimpleNamespace(
        folder=SimpleNamespace(path=folder), data_source=data_source, data_fingerprint="0123456789abcdef"
    )


def source(kind: SourceKind = SourceKind.local, fingerprint: str = "fedcba9876543210") -> Any:
    return SimpleNamespace(kind=kind, where="a.csv", fingerprint=fingerprint)


def name_of(folder: Path, found: Any = None, split: str = "test", data: DataChanges | None = None, **given: Any) -> str:
    options = EvaluateOptions("run", data=data or DataChanges(), **given)
    return results_folder(loaded(folder), found or source(), split, options).name


def test_no_two_options_share_a_folder(tmp_path: Path) -> None:
    names = [
        *(name_of(tmp_path, data=DataChanges(**({"path": "a.csv"} | {name: value}))) for name, value in OTHER.items()),
        name_of(tmp_path, data=DataChanges(path="a.csv")),
        name_of(tmp_path, source(fingerprint="0" * 16), data=DataChanges(path="a.csv")),
        name_of(tmp_path),
        name_of(tmp_path, split="train"),
        name_of(tmp_path, checkpoint="last"),
        name_of(tmp_path, context_length=7),
        name_of(tmp_path, stride=7),
        name_of(tmp_path, beam_size=7),
        *(name_of(tmp_path, length_penalty=penalty) for penalty in (0.7, 0.70000001, 7)),
    ]
    assert len(set(names)) == len(names)
    assert all(name.startswith("a-") for name in names[1:10])
    assert names[-3:] == ["test-penalty0.7", "test-penalty0.70000001", "test-penalty7"]


def test_the_same_options_find_their_folder_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").touch()
    names = {name_of(tmp_path, data=DataChanges(path=path)) for path in ("a.csv", "./a.csv", str(tmp_path / "a.csv"))}
    assert len(names) == 1
    assert len(name_of(tmp_path, data=DataChanges(path="x" * 255))) < 100


def test_the_record_has_every_option(tmp_path: Path) -> None:
    options = EvaluateOptions("run", split="validation", data=DataChanges(path="a.csv", lowest_label=1))
    measured = Measurement({"loss": 0.7}, {"rows": 3})
    write_metrics(tmp_path, loaded(tmp_path, "sample"), source(), "validation", measured, options)
    record = json.loads((tmp_path / "metrics.json").read_text())
    assert (record["options"]["split"], record["options"]["stride"]) == ("validation", None)
    assert record["options"]["data"] == {"path": "a.csv", "lowest_label": 1}
    assert set(record["options"]) | {"run", "log_dir", "json"} == {each.name for each in fields(EvaluateOptions)}
    assert record["trained_on"] == {"source": "sample", "fingerprint": "0123456789abcdef"}
    assert (record["rows"], record["metrics"]) == (3, {"validation/loss": 0.7})


@pytest.mark.parametrize(
    ("trained_on", "measured_on", "note"),
    [
        ("local", SourceKind.hub, None),
        ("sample", SourceKind.sample, SAMPLE_NOTE),
        ("sample", SourceKind.local, TRAINED_ON_SAMPLE_NOTE),
        ("hub", SourceKind.sample, f"{SAMPLE_NOTE} The run was trained on real data."),
    ],
)
def test_generated_data_is_named_on_either_side(trained_on, measured_on, note, tmp_path) -> None:
    assert sample_note(loaded(tmp_path, trained_on), source(measured_on)) == note


@pytest.mark.parametrize("kind", [SourceKind.sample, SourceKind.local])
def test_figures_of_generated_data_are_marked(tmp_path: Path, kind: SourceKind) -> None:
    figure = Figure()
    figure.suptitle("Confusion matrix, test")
    judged = Judged(SimpleNamespace(source=source(kind)), "test", np.arange(0), torch.zeros(0, 1))  # type: ignore[arg-type]
    judged.save(figure, tmp_path / "figure.png")
    assert figure.get_suptitle() == "Confusion matrix, test" + (SAMPLE_MARK if kind is SourceKind.sample else "")
    assert (tmp_path / "figure.png").exists()


def test_each_class_has_its_precision_recall_and_f1_and_mistakes_are_in_the_order_of_their_confidence() -> None:
    targets, logits = np.array([0, 0, 0, 1, 1, 0]), torch.tensor([[-2.0], [-1.0], [1.0], [3.0], [-4.0], [2.0]])
    data: Any = SimpleNamespace(
        targets=targets, num_classes=2, class_names=["bad", "good"], has_ordered_classes=False, options=None
    )
    judged = Judged(data, "test", np.arange(6), logits)
    assert judged.mistakes().rows.tolist() == [4, 5, 2]
    bad, good = judged.per_class()
    assert bad == {"class": "bad", "texts": 4, "precision": 2 / 3, "recall": 0.5, "f1": pytest.approx(4 / 7)}
    assert good == {"class": "good", "texts": 2, "precision": 1 / 3, "recall": 0.5, "f1": pytest.approx(0.4)}
    metrics = judged.metrics()
    assert metrics["auc"] == 0.5  # of the eight pairs of a good and a bad text, four are in order
    assert "auc" not in judged.at(np.arange(3)).metrics(), "undefined for one class"


def test_predict_prints_the_five_most_probable_of_many_classes(capsys: pytest.CaptureFixture[str]) -> None:
    shares = {"a": 0.05, "b": 0.3, "c": 0.2, "d": 0.0, "e": 0.35, "f": 0.1}
    for most in (6, 2):
        probabilities = dict(list(shares.items())[:most])
        run = SimpleNamespace(predict_many=lambda *_, given=probabilities: [Prediction("e", given)], words=str.split)
        ClassifierRun.show(run, ["a text"])  # type: ignore[arg-type]
    expected = ["e  (e 0.350  b 0.300  c 0.200  f 0.100  a 0.050  …)", "e  (a 0.050  b 0.300)"]
    assert capsys.readouterr().out.splitlines() == expected
