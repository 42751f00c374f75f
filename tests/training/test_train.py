"""A training run from the command line, and what it leaves behind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml

from firstlight.runs.folder import read_history
from tests_support import Scripts


def test_a_run_records_what_it_was_and_what_came_of_it(trained: Callable[[str], Path], reviews_folder: Path) -> None:
    record = json.loads((trained("stars") / "metrics.json").read_text())
    assert record.keys() >= {"overrides", "parameters", "threads", "versions", "git", "checkpoint"}
    assert (record["task"], record["model"], record["status"]) == ("stars", "tiny", "finished")
    assert (record["context_length"], record["seed"], record["dropout"]) == (23, 1, 0.3)
    assert "context_length=23" in record["overrides"]
    assert record["data"]["source"] == "local"
    assert record["data"]["path"] == str(reviews_folder)
    assert record["data"]["rows"] == {"train": 600, "validation": 100, "test": 100}
    assert record["steps"] == 30
    assert record["seconds"].keys() >= {"start_up", "fit", "test"}
    assert record["tokens_per_second"] > 0
    seconds = [line["seconds"] for line in read_history(trained("stars") / "history.jsonl")]
    assert seconds == sorted(seconds)
    for metric in ("val/loss", "val/accuracy", "val/macro_f1", "val/mean_absolute_error", "test/accuracy"):
        assert metric in record["metrics"]


def test_the_folder_holds_everything(trained: Callable[[str], Path]) -> None:
    run = trained("stars")
    for name in (
        *(".hydra/overrides.yaml", "checkpoints/best.ckpt", "checkpoints/last.ckpt", "config.yaml", "train.log"),
        *("confusion_matrix/test.csv", "confusion_matrix/test.png", "confusion_matrix/validation.png"),
        *("csv/version_0/metrics.csv", "vocabulary.txt"),
    ):
        assert (run / name).stat().st_size > 0
    assert "${" not in (run / "config.yaml").read_text()
    assert yaml.safe_load((run / "config.yaml").read_text())["model"]["context_length"] == 23
    weights = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert all(isinstance(weight, torch.Tensor) for weight in weights.values())


def test_the_end_of_a_run_says_what_to_do_with_it(scripts: Scripts, tiny_training: list[str]) -> None:
    done = scripts.run("train", *tiny_training, "trainer.max_steps=3", "hydra.run.dir=mine")
    assert "test" in done.stdout
    assert "python src/explore.py mine\n  python src/playground.py mine\n  python src/report.py mine\n" in done.stdout
    assert "python src/predict.py mine --text" in done.stdout
    again = scripts.refuse("train", *tiny_training, "trainer.max_steps=3", "hydra.run.dir=mine")
    assert "mine already has a run; add resume=auto to resume it" in again


def test_a_diverging_run_ends_with_its_reason(scripts: Scripts, tiny_training: list[str]) -> None:
    done = scripts.run("train", *tiny_training, "optimizer.lr=1e30", "trainer.gradient_clip_val=null")
    assert done.returncode == 1
    assert "the loss is" in done.stderr
    assert "lower optimizer.lr" in done.stderr
    record = json.loads((scripts.newest_run() / "metrics.json").read_text())
    assert record["status"] == "failed"
    assert "the loss is" in record["reason"]


@pytest.mark.parametrize("debug", ["default", "overfit", "limit", "profiler"])
@pytest.mark.slow  # a training each; a setting only shortens or instruments it
def test_each_debug_setting_runs(debug: str, scripts: Scripts, tiny_training: list[str]) -> None:
    paths = [argument for argument in tiny_training if argument.startswith(("data.path", "model", "context"))]
    more = ["trainer.limit_train_batches=0.5", "trainer.limit_val_batches=1"] if debug == "limit" else []
    scripts.succeed("train", *paths, f"debug={debug}", *more, "trainer.limit_test_batches=1")
    record = json.loads((scripts.newest_run() / "metrics.json").read_text())
    assert record["status"] == "finished"
    if debug == "overfit":
        history = [json.loads(line) for line in (scripts.newest_run() / "history.jsonl").read_text().splitlines()]
        assert [line["train/accuracy"] for line in history if "train/accuracy" in line][-1] > 0.95


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("optimizer.lr=-1", "optimizer: Invalid learning rate: -1"),
        ("+schedule.foo=1", "schedule: "),
        ("+trainer.no_such_argument=1", "no_such_argument"),
        ("trainer.val_check_interval=99 trainer.check_val_every_n_epoch=2", "=99 is more than an epoch has batches"),
    ],
)
def test_a_wrong_argument_is_one_line(argument: str, message: str, scripts: Scripts, tiny_training: list[str]) -> None:
    assert message in scripts.refuse("train", *tiny_training, *argument.split())


@pytest.mark.parametrize(
    ("length", "steps"), [(["trainer.max_steps=30"], [11, 23, 29]), (["epochs=1", "min_steps=15"], [11, 15])]
)
def test_an_interval_above_an_epoch_counts_across_epochs(length, steps, scripts, tiny_training) -> None:
    quick = ["trainer.max_epochs=null", "trainer.val_check_interval=12", "logger=none", "test=false"]
    done = scripts.succeed("train", *tiny_training, *quick, *length)
    history = [json.loads(line) for line in (scripts.newest_run() / "history.jsonl").read_text().splitlines()]
    assert [line["step"] for line in history if "val/loss" in line] == steps
    assert ("epochs in place of 1, for min_steps=15" in done.stdout) == ("epochs=1" in length)


def test_a_run_that_trained_no_step_is_not_finished(scripts: Scripts, tiny_training: list[str]) -> None:
    done = scripts.run("train", *tiny_training, "trainer.max_time={seconds: 0}")
    assert done.returncode == 1
    assert done.stderr == "error: no step was trained; raise trainer.max_time or trainer.limit_train_batches\n"
    assert json.loads((scripts.newest_run() / "metrics.json").read_text())["status"] == "failed"


def test_a_training_needs_no_callback_and_writes_below_the_log_folder_only(scripts, tiny_training) -> None:
    quick = ["callbacks=none", "trainer.max_epochs=1", "logger=none", "test=false", "paths.log_dir=deep/logs"]
    scripts.succeed("train", *tiny_training, *quick)
    (record,) = (json.loads(file.read_text()) for file in (scripts.folder / "deep/logs").glob("*/runs/*/metrics.json"))
    assert "val/accuracy" in record["metrics"]
    assert [path.name for path in scripts.folder.iterdir()] == ["deep"]
