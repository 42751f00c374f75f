"""Reading runs for a report, complete and damaged, with any overrides."""

import fcntl
import json
import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstlight.lab.reports import all_runs as module
from firstlight.lab.reports.all_runs import gather
from firstlight.runs.folder import RunFolder
from firstlight.runs.gather import key_and_value, plain_value, read_run
from firstlight.runs.summary import Run
from run_folders import a_history, a_record, make_baseline, make_run, write_confusion, write_history

COUNTS = [[5, 1, 0], [2, 3, 4], [0, 7, 11]]


def read(path: Path) -> Run:
    return read_run(RunFolder(path), path.name)


def test_runs_sweeps_and_baselines_are_found_wherever_they_lie(tmp_path: Path) -> None:
    run = make_run(tmp_path, "stars/runs/now")
    make_run(tmp_path, "sweeps/grid/seed-1")
    make_baseline(tmp_path, "stars/baseline/then")
    (run / "evaluate" / "test").mkdir(parents=True)
    (run / "evaluate" / "test" / "metrics.json").write_text("{}")
    (tmp_path / "cache").mkdir()
    runs = gather(tmp_path)
    assert [run.folder for run in runs] == ["stars/baseline/then", "stars/runs/now", "sweeps/grid/seed-1"]
    assert [run.is_baseline for run in runs] == [True, False, False]
    assert all(run.is_counted for run in runs)
    assert [run.folder for run in gather(run)] == ["."]


def test_a_run_has_what_its_record_says(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a", "model=tiny", "optimizer.lr=1e-3", tokens=997, flops=10**12, source="sample")
    run = read(path)
    assert run.keys == {
        "task": "stars",
        "model": "tiny",
        "experiment": None,
        "dropout": 0.1,
        "context_length": 23,
        "seed": 1,
        "optimizer.lr": 0.001,
    }
    assert (run.parameters, run.steps, run.tokens, run.flops, run.fit_seconds) == (1009, 31, 997, 10**12, 7.0)
    assert (run.source, run.is_sample, run.optimized_metric) == ("sample", True, "val/accuracy")
    assert run.metrics == {"val/accuracy": 0.5, "val/loss": 1.25}
    assert (run.status, run.why) == ("finished", "")


WITHOUT_EFFECT = (  # on what is computed
    *("callbacks/metrics@callbacks=classification", "hydra/launcher=joblib", "sweep.name=x", "resume=auto"),
    *("paths.log_dir=x", "logger.wandb.project=x", "trainer.log_every_n_steps=5", "~callbacks.early_stopping"),
)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("+model.num_layers=3", ("model.num_layers", 3)),
        ("~schedule", ("schedule", "removed")),
        ("data.path='a b.csv'", ("data.path", "a b.csv")),
        ("data.path='it\\'s.csv'", ("data.path", "it's.csv")),
        ("data.path='broken", ("data.path", "'broken")),
        ("experiment=post/stars", ("experiment", "post/stars")),
        ("ladder=null", ("ladder", None)),
        *((override, None) for override in WITHOUT_EFFECT),
    ],
)
def test_an_override_is_a_key_if_it_changes_the_computation(override: str, expected: Any) -> None:
    assert key_and_value(override) == expected


PLAIN = [("1e-3", 0.001), (".5", 0.5), ("-7", -7), ("2.", 2.0), (0.5, 0.5), ("true", True), ("Null", None), ("", None)]
TEXTS = [("'1'", "1"), ('"a"', "a"), *((text, text) for text in ("1_000", "nan", "1e", "'")), ([1, "ä"], '[1, "ä"]')]


@pytest.mark.parametrize(("typed", "value"), PLAIN + TEXTS)
def test_a_value_is_a_number_where_it_looks_like_one(typed: Any, value: Any) -> None:
    assert plain_value(typed) == value
    assert type(plain_value(typed)) is type(value)


def test_a_key_that_only_others_were_given_has_its_value_from_the_configuration(tmp_path: Path) -> None:
    make_run(tmp_path, "a", "optimizer.lr=1e-2", "optimizer=adam", "nowhere.at.all=1")
    path = make_run(tmp_path, "b")
    (path / "config.yaml").write_text("optimizer:\n  lr: 1e-3\n  betas: [0.9, 0.99]\n")
    (path / ".hydra" / "hydra.yaml").write_text("hydra:\n  runtime:\n    choices:\n      optimizer: adamw\n")
    make_run(tmp_path, "c", task="names", optimized_metric="val/loss")
    a, b, c = gather(tmp_path)
    assert (a.keys["optimizer.lr"], a.keys["optimizer"], a.keys["nowhere.at.all"]) == (0.01, "adam", 1)
    assert (b.keys["optimizer.lr"], b.keys["optimizer"], b.keys["nowhere.at.all"]) == (0.001, "adamw", None)
    assert "optimizer.lr" not in c.keys


def test_a_configuration_that_is_broken_does_not_stop_the_others(tmp_path: Path) -> None:
    make_run(tmp_path, "a", "optimizer.lr=1e-2")
    path = make_run(tmp_path, "b")
    (path / "config.yaml").write_text("a: [")
    (path / ".hydra" / "hydra.yaml").write_bytes(b"\xff\xfe\x00")
    assert [run.keys["optimizer.lr"] for run in gather(tmp_path)] == [0.01, None]


def with_config(path: Path, content: str) -> None:
    (path / "config.yaml").write_text(content)


def test_a_setting_that_differs_without_being_typed_is_a_key(tmp_path: Path) -> None:
    common = "seed: {seed}\ndata:\n  seed: {seed}\n  path: p{seed}\nlogger: l{seed}\n"
    common += "module:\n  label_smoothing: {smoothing}\n  r_drop: 0\n"
    for seed, smoothing in ((1, 0.0), (2, 0.1), (3, 0.0)):
        path = make_run(tmp_path, f"same-{seed}", seed=seed)
        with_config(path, common.format(seed=seed, smoothing=smoothing))
    with_config(make_run(tmp_path, "small", model="small"), common.format(seed=1, smoothing=0.3))
    make_run(tmp_path, "without", seed=4)
    found = {run.folder: run for run in gather(tmp_path)}
    key = "module.label_smoothing"
    assert [found[f"same-{seed}"].keys[key] for seed in (1, 2, 3)] == [0.0, 0.1, 0.0]
    assert (found["small"].keys[key], found["without"].keys[key]) == (0.3, None)
    assert not any(other in found["same-1"].keys for other in ("data.seed", "data.path", "logger", "module.r_drop"))


APART = {
    "data:\n  max_train_rows: 31": "data.max_train_rows=31",
    "trainer:\n  limit_train_batches: 1": "trainer.limit_train_batches=1",
    "trainer:\n  limit_train_batches: 1.0\n  limit_val_batches: 0.5": "trainer.limit_val_batches=0.5",
    "trainer:\n  fast_dev_run: true": "trainer.fast_dev_run=True",
    "module:\n  _target_: firstlight.generator.module.Generation\nmodel:\n  causal: false": "sees its target",
    "module:\n  _target_: firstlight.classifier.module.Classification\nmodel:\n  causal: false": None,
    "data:\n  max_train_rows: null\ntrainer:\n  overfit_batches: 0.0": None,
}


@pytest.mark.parametrize("config", APART)
def test_a_run_that_sees_its_target_or_a_part_of_the_data_is_set_apart(config: str, tmp_path: Path) -> None:
    with_config(make_run(tmp_path, "a"), config)
    (run,) = gather(tmp_path)
    assert list(run.apart.values()) == ([] if APART[config] is None else [APART[config]])


def test_the_data_of_a_run_is_known_by_its_fingerprint_its_sizes_and_its_split(tmp_path: Path) -> None:
    rows = {"train": 997, "validation": 53}
    path = make_run(tmp_path, "a", data={"source": "local", "fingerprint": "f", "rows": rows, "classes": ["x", "y"]})
    with_config(path, "data:\n  split_seed: 3\n  batch_size: 5\n")
    make_run(tmp_path, "b", data={"source": "local", "fingerprint": "f", "tokens": rows | {"test": "?"}})
    a, b = gather(tmp_path)
    assert (a.fingerprint, a.sizes, a.is_of_classes, a.split) == ("f", rows, True, {"data.split_seed": 3})
    assert (b.sizes, b.is_of_classes, b.split) == (rows, False, {})


@pytest.mark.parametrize("typed", ["[a,b]", "['a','b']", '[a, "b"]'])
def test_a_list_is_the_same_however_it_was_typed(typed: str, tmp_path: Path) -> None:
    make_run(tmp_path, "a", f"data.columns={typed}")
    with_config(make_run(tmp_path, "b"), "data:\n  columns: [a, b]\n")
    assert [run.keys["data.columns"] for run in gather(tmp_path)] == ['["a", "b"]'] * 2


def cut(name: str, keep: int) -> Callable[[Path], object]:
    """Return a function that cuts a file of the folder to its first bytes; a negative number removes the last ones."""

    def change(path: Path) -> None:
        file = path / name
        file.write_bytes(file.read_bytes()[:keep])

    return change


def record(**changes: Any) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        (path / "metrics.json").write_text(json.dumps(a_record(**changes)))

    return change


def text(name: str, content: str) -> Callable[[Path], object]:
    return lambda path: (path / name).write_text(content)


CSV = "confusion_matrix/validation.csv"


def sparse(path: Path) -> None:
    os.truncate(path / "metrics.json", 2**31)


def without_record(path: Path) -> None:
    (path / "metrics.json").unlink()
    os.utime(path / ".hydra", (0, 0))  # it began long ago


def lines(*given: dict[str, Any]) -> Callable[[Path], object]:
    return lambda path: write_history(path, [{"step": 1, "seconds": 1.0} | each for each in given])


DAMAGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no record": (without_record, "unreadable", "a is not a run folder: it has no metrics.json"),
    "cut record": (cut("metrics.json", 101), "unreadable", "metrics.json is cut short or broken"),
    "another's": (text("metrics.json", '{"accuracy": 1}'), "unreadable", "metrics.json is not the record of a run"),
    "a metric of another type": (record(metrics={"val/loss": "low"}), "unreadable", "val/loss is 'low'"),
    "unknown status": (record(status="odd"), "unreadable", "status='odd' is not the status of a run"),
    "failed": (record(status="failed", reason="RunError: the\n loss"), "failed", "RunError: the loss"),
    "failed without reason": (record(status="failed"), "failed", "it failed and gives no reason"),
    "interrupted": (record(status="interrupted", steps=13), "interrupted", "it was interrupted after 13 steps"),
    "killed": (record(status="running"), "interrupted", "killed while it ran"),
    "cut history": (cut("history.jsonl", -9), "incomplete", "history.jsonl: line 14, the last, is cut short"),
    "history that is none": (text("history.jsonl", '{"a": 1}\n'), "incomplete", "history.jsonl:1 has no step"),
    "endless step": (lines({"step": math.inf}), "incomplete", "history.jsonl:1 has no step"),
    "endless metric": (lines({"val/loss": 10**400}), "incomplete", "history.jsonl: a metric is not a number"),
    "word in history": (lines({"val/loss": "low"}), "incomplete", "history.jsonl: a metric is not a number"),
    "overrides that are numbers": (record(overrides=[1e308]), "unreadable", "overrides is '[1e+308]', of which"),
    "an override that is none": (record(overrides=["\ud800"]), "unreadable", "of which not all are key=value or ~key"),
    "an override without key": (record(overrides=["=1"]), "unreadable", "overrides is \"['=1']\", of which not all"),
    "cut matrix": (cut(CSV, 80), "incomplete", CSV),
    "matrix of words": (text(CSV, "true,predicted,count\na,a,many\n"), "incomplete", f"{CSV} is cut short or broken"),
    "matrix that is not square": (text(CSV, "true,predicted,count\na,b,1\n"), "incomplete", CSV),
    "texts that are a folder": (
        lambda path: (path / "samples" / "1.txt").mkdir(parents=True),
        *("incomplete", "samples/1.txt"),
    ),
    "too many metrics": (
        record(metrics={f"val/{i}": 0.5 for i in range(1001)}),
        *("unreadable", "metrics.json: metrics: 1,001 entries and 6,898 characters are more than the 1,000 and 50,000"),
    ),
    "too many metrics in a line": (lines({f"val/{i}": 0.5 for i in range(1001)}), "incomplete", ": 1,001 entries"),
    "lines of other metrics": (lines(*({"val/" + "x" * i: 0.5} for i in range(1001))), "incomplete", ": 1,001 entries"),
    "a sparse record": (sparse, "unreadable", "metrics.json has 2,147,483,648 bytes, more than the 16,777,216"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_says_what_is_damaged_and_does_not_count(damage: str, tmp_path: Path) -> None:
    path = make_run(tmp_path, "a", counts=COUNTS)
    assert read(path).is_counted
    change, status, why = DAMAGES[damage]
    change(path)
    run = read(path)
    assert (run.status, run.is_counted) == (status, False)
    assert why in run.why
    assert "\n" not in run.why


@pytest.mark.parametrize("value", ["[" * 1900 + "]" * 1900, "1" * 5000, "'" + "1" * 5000 + "'"])
def test_an_override_that_no_parser_reads_is_a_text(value: str, tmp_path: Path) -> None:
    run = read(make_run(tmp_path, "a", f"model.x={value}"))
    assert run.is_counted
    assert str(run.keys["model.x"]).strip("'") == value.strip("'")


def test_a_configuration_with_too_many_settings_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_run(tmp_path, "a", "dropout=0.5")
    path = make_run(tmp_path, "b", "optimizer.lr=0.5")
    (path / "config.yaml").write_text("model:\n" + "".join(f"  k{i}: {i}\n" for i in range(2001)))
    assert [len(run.keys) for run in gather(tmp_path)] == [7, 7]
    assert f"{path}/config.yaml is ignored: it has 2001 settings, too many for a report" in caplog.text


def test_every_damage_is_told_and_the_whole_lines_of_a_cut_history_are_kept(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a", counts=COUNTS)
    cut("history.jsonl", -9)(path)
    cut(CSV, 0)(path)
    run = read(path)
    assert re.match(r"history\.jsonl: line 14.* cut short; confusion_matrix/validation\.csv is cut short", run.why)
    assert (len(run.curves["train/loss"].values), len(run.curves["val/loss"].values)) == (7, 6)


def test_a_run_that_trains_now_is_running_and_not_killed(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a", status="running")
    with (path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = read(path)
        assert (run.status, run.why, run.is_counted) == ("running", "it is still running", False)
    assert read(path).status == "interrupted"


@pytest.mark.parametrize(("age", "status"), [(5, "running"), (90, "unreadable")])
def test_a_run_that_is_just_starting_is_not_unreadable(age: float, status: str, tmp_path: Path) -> None:
    path = make_run(tmp_path, "a")
    (path / "metrics.json").unlink()
    (path / ".hydra").mkdir(exist_ok=True)
    begun = time.time() - age
    os.utime(path / ".hydra", (begun, begun))
    run = read(path)
    assert (run.status, run.is_counted) == (status, False)
    assert (run.why == "it is starting") == (status == "running")


def test_a_run_without_history_counts_where_it_has_none_to_have(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a")
    (path / "history.jsonl").unlink()
    assert read(path).is_counted
    assert read(make_run(tmp_path, "b", steps=0, lines=[])).is_counted  # train=false
    assert read(make_baseline(tmp_path, "c")).is_counted


def test_a_curve_has_the_moments_of_its_metric_alone(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"step": 1, "seconds": 0.5, "epoch": 0, "train/loss": 3.0},
        {"step": 2, "seconds": 0.7, "epoch": 0, "train/loss": 2.0, "val/loss": 5.0},
        {"step": 3, "seconds": 1.1, "epoch": 0, "train/loss": math.nan},
        {"step": 4, "seconds": 1.3, "epoch": None, "train/loss": None},
    ]
    curves = read(make_run(tmp_path, "a", lines=lines)).curves
    assert curves.keys() == {"train/loss", "val/loss"}
    assert (curves["val/loss"].steps, curves["val/loss"].seconds, curves["val/loss"].values) == ([2], [0.7], [5.0])
    assert curves["train/loss"].steps == [1, 2, 3, 4]
    assert curves["train/loss"].values[:2] == [3.0, 2.0]
    assert all(map(math.isnan, curves["train/loss"].values[2:]))


def test_a_long_curve_is_thinned_and_keeps_its_ends(tmp_path: Path) -> None:
    run = read(make_run(tmp_path, "a", lines=a_history(1009)))
    for name in ("train/loss", "val/loss"):
        curve = run.curves[name]
        assert len(curve.steps) == len(curve.values) == len(curve.seconds) == 200
        assert (curve.steps[0], curve.steps[-1]) == (4, 5 * 1008 + 4)
        assert list(curve.steps) == sorted(set(curve.steps))
        for step, second, value in zip(curve.steps, curve.seconds, curve.values, strict=True):
            index = (step - 4) // 5
            scale = 1.0 if name == "train/loss" else 1.1
            assert (second, value) == (pytest.approx(0.5 * index + 0.25), pytest.approx(scale / (index + 1)))


def test_many_runs_have_fewer_points_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POINTS_OF_ALL_RUNS", 90)
    for name in "abc":
        make_run(tmp_path, name, lines=a_history(50))
    assert {len(run.curves["val/loss"].steps) for run in gather(tmp_path)} == {30}


def test_a_class_may_have_any_name(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a")
    (path / "confusion_matrix").mkdir(exist_ok=True)
    names = ['a "b",\nc', "</script>", ""]
    write_confusion(path, COUNTS, names)
    confusion = read(path).confusion
    assert (list(confusion.classes), confusion.counts) == (names, COUNTS)  # the true classes are the rows


def test_the_newest_texts_are_shown_and_long_ones_cut(tmp_path: Path) -> None:
    path = make_run(tmp_path, "a", texts="old")
    assert read(path).texts == "old"
    (path / "samples" / "00000200.txt").write_bytes("né \n\nb\n".encode() + b"\xff")
    assert (read(path).texts or "").startswith("né \n\nb\n")
    (path / "samples" / "00000300.txt").write_text("x" * 9_999)
    assert len(read(path).texts or "") < 4_010
