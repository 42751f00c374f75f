"""A killed run resumes, and ends with the same weights as an uninterrupted run."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from firstlight.commands.train import had_test
from firstlight.config.schema import compose
from firstlight.config_files import CONFIG_DIR
from firstlight.runs.folder import RunFolder
from firstlight.training.resume import keep_own_settings
from same_runs import assert_same_run, curve
from tests_support import Scripts, contents

Interrupt = Callable[..., int]


@pytest.fixture(scope="module")
def training(reviews_folder: Path) -> list[str]:
    """60 batches an epoch, two epochs, dropout on, a checkpoint every 7 steps."""
    return [
        *(f"data.path={reviews_folder}", "task=stars", "model=tiny", "data.batch_size=10", "context_length=23"),
        *("trainer.max_epochs=2", "trainer.val_check_interval=25", "trainer.log_every_n_steps=5"),
        "callbacks.checkpoint.every_n_train_steps=7",
        "++callbacks.confusion_matrix=null",  # whose figures are most of the time of so short a training
    ]


@pytest.fixture(scope="module")
def quick(training: list[str]) -> list[str]:
    """The command of a run of four steps on data beside it."""
    return ["data.path=reviews", *training[1:], "trainer.max_steps=4", "logger=none", "test=false"]


@pytest.fixture(scope="module")
def begun_once(tmp_path_factory: pytest.TempPathFactory, reviews_folder: Path, quick: list[str]) -> tuple[Path, str]:
    """Where a run of four steps is, on data of its own, and the name of its folder."""
    folder = tmp_path_factory.mktemp("begun")
    shutil.copytree(reviews_folder, folder / "reviews")
    return folder, str(Scripts(folder).train(*quick).relative_to(folder))


@pytest.fixture
def begun(begun_once: tuple[Path, str], scripts: Scripts) -> Path:
    """The run of four steps in the test's own folder."""
    folder, run = begun_once
    shutil.copytree(folder, scripts.folder, dirs_exist_ok=True)
    return scripts.folder / run


def test_a_run_that_was_interrupted_after_its_last_step_logs_its_test_where_others_do(begun, scripts, quick) -> None:
    scripts.run("train", *quick[:-1], "test=true", "seed=3")
    (whole,) = (path for path in begun.parent.iterdir() if path != begun)
    before = curve(whole)
    assert [line["step"] for line in before if "test/loss" in line] == [4]
    record = json.loads((whole / "metrics.json").read_text())
    (whole / "metrics.json").write_text(json.dumps(record | {"status": "interrupted"}))
    scripts.succeed("train", f"resume={whole}")
    assert curve(whole) == before


@pytest.mark.parametrize("precision", ["32-true", pytest.param("64-true", marks=pytest.mark.slow)])
def test_a_killed_run_ends_with_the_weights_of_an_uninterrupted_one(scripts, training, interrupt_at, precision) -> None:
    training = [*training, f"trainer.precision={precision}", "data.batch_size=20", "module.r_drop=1"]  # 60 steps
    training += ["data.target_encoding=true", "data.group_column=label", "data.random_span=true"]
    training += ["data.finish_on=3", "data.finish_share=0.6"]
    whole = scripts.folder / "whole"
    scripts.run("train", *training, f"hydra.run.dir={whole}")
    killed = scripts.folder / "killed"
    again = [*training, f"hydra.run.dir={killed}", "resume=auto"]
    assert interrupt_at(killed, signal.SIGKILL, 2, *again) == -signal.SIGKILL
    assert json.loads((killed / "metrics.json").read_text())["status"] == "running"
    assert interrupt_at(killed, signal.SIGINT, 4, *again, to_all=True) == 130
    assert json.loads((killed / "metrics.json").read_text())["status"] == "interrupted"
    done = scripts.succeed("train", *again)
    assert "resumed at step" in done.stdout
    assert_same_run(whole, killed)


def test_the_same_command_continues_the_newest_unfinished_run_of_its_configuration(scripts, training) -> None:
    removed_and_added = ["~callbacks.early_stopping", "+trainer.sync_batchnorm=false"]
    short = [*training, "trainer.max_steps=2", "logger=none", "test=false", *removed_and_added]
    scripts.succeed("train", *short, "resume=auto")
    finished = scripts.newest_run()
    record = json.loads((finished / "metrics.json").read_text())
    (finished / "metrics.json").write_text(json.dumps(record | {"status": "interrupted"}))
    may_change = ["data.evaluation_batch_size=7", "trainer.log_every_n_steps=1"]
    done = scripts.run("train", *short, *may_change, "resume=auto")
    assert f"The run is in {finished.relative_to(scripts.folder)}" in done.stdout
    assert len(list((scripts.folder / "logs").glob("*/runs/*"))) == 1
    scripts.run("train", *short, "resume=auto", "seed=2")
    assert len(list((scripts.folder / "logs").glob("*/runs/*"))) == 2


@pytest.fixture
def unfinished(begun: Path) -> Iterator[Path]:
    """The run of four steps as one that another process still trains."""
    record = json.loads((begun / "metrics.json").read_text())
    (begun / "metrics.json").write_text(json.dumps(record | {"status": "running"}))
    with RunFolder(begun).locked():
        yield begun


@pytest.mark.parametrize("resumed", ["auto", "folder"])
def test_no_second_run_starts_beside_one_that_is_still_trained(resumed, scripts, unfinished, quick) -> None:
    before = contents(scripts.folder)
    error = scripts.refuse("train", *quick, f"resume={unfinished if resumed == 'folder' else resumed}")
    where = unfinished if resumed == "folder" else unfinished.relative_to(scripts.folder)
    assert error.endswith(f"{where}: another process is training this run; wait for it, or stop it\n")
    assert contents(scripts.folder) == before


def test_a_finished_run_is_not_trained_again_unless_further(scripts: Scripts, training: list[str]) -> None:
    quick = ["data.max_train_rows=40", "trainer.val_check_interval=1.0", "logger=none"]
    run = scripts.train(*training, *quick, "trainer.max_epochs=null", "epochs=1", "min_steps=1")
    done = scripts.run("train", f"resume={run}")
    assert (done.returncode, "is already finished" in done.stdout) == (0, True)
    assert done.stdout.endswith("; to train it further, raise trainer.max_epochs or trainer.max_steps\n")
    scripts.succeed("train", f"resume={run}", "epochs=2")
    assert json.loads((run / "metrics.json").read_text())["steps"] == 8
    for typed in ("epochs=2", "epochs=1", "trainer.max_epochs=2"):
        assert f"error: {typed}: no step is left to train" in scripts.refuse("train", f"resume={run}", typed)


@pytest.mark.parametrize(
    ("changes", "key"),
    [(["trainer.max_epochs=20"], "trainer.max_steps=4"), (["trainer.max_steps=3"], "trainer.max_steps=3")],
)
def test_a_finished_run_without_a_step_left_is_refused_with_the_limit(changes, key, scripts, begun) -> None:
    before = contents(begun)
    done = scripts.run("train", f"resume={begun}", *changes)
    limit = key.partition("=")[0]
    expected = f"error: {key}: no step is left to train, since {begun} has ended at step 4; raise {limit} to train it "
    assert (done.returncode, done.stderr) == (2, f"{expected}further\n")
    assert contents(begun) == before


@pytest.mark.slow  # 1.2 s, two trainings; test_named.py tests which run a name means
def test_latest_resumes_the_newest_run_also_of_a_task(scripts: Scripts, training: list[str]) -> None:
    quick = ["data.max_train_rows=40", "trainer.val_check_interval=1.0", "logger=none"]
    run = scripts.train(*training, *quick, "trainer.max_epochs=1")
    task = json.loads((run / "metrics.json").read_text())["task"]
    where = run.relative_to(scripts.folder)
    newer = shutil.copytree(run, run.with_name("newer"))  # finished
    for number, typed in enumerate(("resume=latest", f"resume=latest:{task}"), start=2):
        record = json.loads((run / "metrics.json").read_text())
        (run / "metrics.json").write_text(json.dumps(record | {"status": "interrupted"}))
        os.utime(newer / "metrics.json", (2e9, 2e9))
        done = scripts.succeed("train", typed, f"trainer.max_epochs={number}")
        assert f"{typed}: {where} (task={task})" in done.stdout.splitlines()
    assert json.loads((run / "metrics.json").read_text())["steps"] == 12
    before = contents(run.parent)
    done = scripts.run("train", "resume=latest", "trainer.max_epochs=9")
    assert (done.returncode, done.stderr.partition(";")[0]) == (2, "error: latest: no unfinished run below logs")
    assert contents(run.parent) == before


def test_a_resumed_run_keeps_the_test_setting_that_it_was_started_with(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert had_test(folder), "a run that ended before its configuration was saved"
    for test in (True, False):
        folder.config_file.write_text(f"test: {str(test).lower()}\n")
        assert had_test(folder) is test


def test_a_later_default_does_not_change_a_resumed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = compose(["task=stars"])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(OmegaConf.to_yaml(before, resolve=True))
    changes = {"optimizer.lr": 0.5, "dropout": 0.7, "trainer.log_every_n_steps": 3, "epochs": 77}
    changes["tokenizer.min_document_frequency"] = 9
    lines = "".join(f"{key}: {value}\n" for key, value in changes.items() if "." not in key)
    (tmp_path / "conf" / "task").mkdir(parents=True)
    of_task = (CONFIG_DIR / "task" / "stars.yaml").read_text().replace("epochs: 4\n", lines)
    others = "optimizer: {lr: 0.5}\ntrainer: {log_every_n_steps: 3}\ntokenizer: {min_document_frequency: 9}\n"
    (tmp_path / "conf" / "task" / "stars.yaml").write_text(of_task + others)

    def resumed_with(*typed: str) -> DictConfig:
        config = compose(["task=stars", "resume=run", *typed])
        keep_own_settings(config, ["resume=run", *typed])
        return config

    new, kept = compose(["task=stars"]), resumed_with()
    assert {key: OmegaConf.select(new, key) for key in changes} == changes
    for key in (*changes, "model.dropout", "data.tokenizer.min_document_frequency"):
        assert OmegaConf.select(kept, key) == OmegaConf.select(before, key) != OmegaConf.select(new, key)
    typed = resumed_with("dropout=0.7", "epochs=9")
    assert (typed.dropout, typed.model.dropout, typed.epochs) == (0.7, 0.7, 9)
    assert typed.optimizer.lr == before.optimizer.lr
    (tmp_path / "run" / "config.yaml").write_text("optimizer: {_target_: os.system, lr: 0.25}\npaths: {log_dir: x}\n")
    hostile = resumed_with()
    assert hostile.optimizer._target_ == new.optimizer._target_
    assert (hostile.optimizer.lr, hostile.paths.log_dir) == (0.25, new.paths.log_dir)


def test_a_refused_resume_leaves_the_run_as_it_was(scripts: Scripts, begun: Path) -> None:
    before = contents(begun)
    for change in ("model.dim=64", "data.batch_size=7", "trainer.accumulate_grad_batches=3", "seed=2"):
        error = scripts.refuse("train", f"resume={begun}", change, "trainer.max_steps=20")
        assert f"{change.partition('=')[0]}={change.partition('=')[2]} differs from the" in error
    assert contents(begun) == before


def test_changed_data_is_refused(scripts: Scripts, begun: Path) -> None:
    with (scripts.folder / "reviews" / "train.jsonl").open("a") as file:
        file.write('{"text": "one more", "label": 3}\n')
    assert "has changed since the run began" in scripts.refuse("train", f"resume={begun}", "trainer.max_steps=20")
    assert json.loads((begun / "metrics.json").read_text())["status"] == "finished"
