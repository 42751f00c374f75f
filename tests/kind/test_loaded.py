"""Tests of the attributes of all loaded runs: repr, metrics, history, record, and the examples of the docstrings."""

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pandas.api.types import is_integer_dtype

import firstlight
from docstring_examples import run_examples, without_an_example
from firstlight.classifier.run import ClassifierRun
from firstlight.errors import UserError

Trained = Callable[[str], Path]


@pytest.fixture
def copied(trained: Trained, tmp_path: Path) -> Path:
    """Return a copy of a run, which a test can damage."""
    return Path(shutil.copytree(trained("sentiment"), tmp_path / "run"))


def change_record(run: Path, **changes: Any) -> None:
    record = json.loads((run / "metrics.json").read_text())
    (run / "metrics.json").write_text(json.dumps(record | changes))


def write_history(run: Path, *lines: str) -> None:
    (run / "history.jsonl").write_text("".join(line + "\n" for line in lines))


def facts_of(run: Any) -> dict[str, str]:
    """Return the lines of a repr below its title, by name."""
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in repr(run).splitlines()[1:]}


# --- repr ---


def test_a_repr_says_what_the_run_is_and_how_good_it_is(trained: Trained) -> None:
    path = trained("sentiment")
    record = json.loads((path / "metrics.json").read_text())
    run = firstlight.load(path)
    title = repr(run).splitlines()[0]
    assert title == f"ClassifierRun: task=sentiment, model=tiny, {record['parameters']:,} parameters"
    assert facts_of(run) == {
        "classes": "negative, positive",
        "data": "local",
        "metrics": f"val/accuracy {record['metrics']['val/accuracy']:.4g}, "
        f"test/accuracy {record['metrics']['test/accuracy']:.4g}",
        "status": f"finished after {record['steps']} steps",
        "folder": f"{path} (best.ckpt)",
    }


def test_a_run_on_generated_data_says_so() -> None:
    run: Any = a_run_of(Path("nowhere"), data_source="sample")
    assert facts_of(run)["data"] == "GENERATED SAMPLE, not real data"


def test_a_run_that_failed_says_why(copied: Path) -> None:
    change_record(copied, status="failed", reason="RunError: the loss is nan", metrics={})
    run = firstlight.load(copied, checkpoint="last")
    assert facts_of(run)["status"] == "failed: RunError: the loss is nan"
    assert facts_of(run)["folder"].endswith("(last.ckpt)")


def test_a_run_that_is_still_training_has_what_it_has_so_far(copied: Path) -> None:
    change_record(copied, status="running", metrics={}, steps=None)
    write_history(copied, '{"step": 4, "seconds": 1.5, "epoch": 0, "train/loss": 0.7}')
    with (copied / "history.jsonl").open("a") as file:
        file.write('{"step": 9, "sec')
    with (copied / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = firstlight.load(copied)
        facts = facts_of(run)
    assert (facts["status"], facts["metrics"]) == ("running: it is still running", "none yet")
    assert run.metrics == {}
    assert run.history["train/loss"].tolist() == [0.7]


def test_a_repr_never_fails(copied: Path) -> None:
    run = firstlight.load(copied)
    (copied / "metrics.json").write_text("{")
    assert repr(run).splitlines()[0] == "ClassifierRun"
    assert facts_of(run)["status"].startswith("unreadable: metrics.json is cut short or broken")
    shutil.rmtree(copied)
    assert facts_of(run)["status"] == "a checkpoint without a run, as a Trainer writes it"


# --- record and metrics ---


def test_metrics_are_the_numbers_of_the_record(trained: Trained) -> None:
    run = firstlight.load(trained("sentiment"))
    record = json.loads((run.path / "metrics.json").read_text())
    assert run.record == record
    assert run.metrics == record["metrics"]
    assert {type(value) for value in run.metrics.values()} == {float}
    assert {"val/loss", "test/accuracy"} <= run.metrics.keys()


# --- history ---


def test_a_history_has_one_row_a_step_and_a_column_of_floats_a_metric(trained: Trained) -> None:
    run = firstlight.load(trained("sentiment"))
    lines = [json.loads(line) for line in (run.path / "history.jsonl").read_text().splitlines()]
    history = run.history
    assert history["step"].tolist() == sorted({line["step"] for line in lines})
    names = {name for line in lines for name in line} - {"step", "epoch", "seconds"}
    assert list(history.columns) == ["step", "epoch", "seconds", *sorted(names)]
    for name in names:
        logged = [(line["step"], line[name]) for line in lines if name in line]
        found = history.dropna(subset=name)
        assert list(zip(found["step"], found[name], strict=True)) == logged
    assert set(history["epoch"].dropna()) == {0, 1, 2}


def test_lines_of_one_step_are_one_row(tmp_path: Path) -> None:
    write_history(
        tmp_path,
        '{"step": 7, "seconds": 1.5, "epoch": null, "lr": 1}',
        '{"step": 7, "seconds": 1.75, "epoch": 3, "val/loss": NaN, "train/loss": 0.5}',
        '{"step": 2, "seconds": 0.5, "epoch": null, "lr": 2}',
    )
    history = a_run_of(tmp_path).history
    assert history[["step", "seconds", "lr"]].to_numpy().tolist() == [[2, 0.5, 2], [7, 1.75, 1]]
    assert history["epoch"].isna().tolist() == history["train/loss"].isna().tolist() == [True, False]
    assert (history["epoch"][1], history["train/loss"][1]) == (3, 0.5)
    assert history["val/loss"].isna().all()


def test_before_anything_was_logged_a_history_is_empty(tmp_path: Path) -> None:
    history = a_run_of(tmp_path).history
    assert history.empty
    assert list(history.columns) == ["step", "epoch", "seconds"]
    assert is_integer_dtype(history["step"])


FIRST = '{"step": 1, "seconds": 0.5, "lr": 1}\n'


@pytest.mark.parametrize(
    ("record", "history", "message"),
    [
        ("{", "", "metrics.json is cut short or broken .* must be trained again"),
        (None, "", "has no metrics.json"),
        ('{"metrics": {"val/loss": "low"}}', "", "val/loss is 'low', of type str; train the run again"),
        ('{"metrics": [1]}', "", "it is not an object with metrics.; train the run again"),
        (None, '{"step": 2, "sec', r"history\.jsonl:2 is broken"),
        (None, "[1]", r"history\.jsonl:2 has no step or no seconds; delete this line"),
        (None, '{"step": 2, "lr": 2}', r"history\.jsonl:2 has no step or no seconds"),
        (None, '{"step": 2, "seconds": 1, "lr": "much"}', r"history\.jsonl is damaged .*much"),
        (None, '{"step": 2, "seconds": 1, "epoch": 0.5}', r"history\.jsonl is damaged"),
    ],
)
def test_a_damaged_record_or_history_is_an_error_of_one_line(record, history, message, tmp_path) -> None:
    (tmp_path / "history.jsonl").write_text(f"{FIRST}{history}\n")
    if record is not None:
        (tmp_path / "metrics.json").write_text(record)
    with pytest.raises(UserError, match=message) as raised:
        _ = a_run_of(tmp_path).history if history else a_run_of(tmp_path).metrics
    assert "\n" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


# --- the examples of the docstrings ---


def test_every_example_of_a_classifier_runs(trained: Trained) -> None:
    path = trained("sentiment")
    folder = path.parents[3]
    assert path.parents[2].name == "logs"
    assert without_an_example(ClassifierRun) == []
    count = run_examples(ClassifierRun, folder, firstlight=firstlight, run=firstlight.load(path))
    assert count > 10
    assert run_examples(firstlight.load, folder) == 4
    assert run_examples(firstlight.list_runs, folder) == 4


def a_run_of(folder: Path, **changes: Any) -> ClassifierRun:
    """Return a loaded classifier without a network, for attributes that are read from its folder."""
    from firstlight.runs.folder import RunFolder

    nothing: Any = None
    names = {"class_names": ["bad", "good"], "label_names": ["0", "1"]}
    metadata = {"config": {"data": {}}, "data_source": "local", "data_fingerprint": "f", **names} | changes
    tokenizer: Any = SimpleNamespace(vocab_size=3)
    return ClassifierRun(RunFolder(folder), folder / "checkpoints" / "best.ckpt", nothing, metadata, tokenizer)
