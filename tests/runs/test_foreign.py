"""What a run's folder from a stranger may decide when it is resumed: settings, but no code, place or address."""

import json
import pickle
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from firstlight.errors import UserError
from firstlight.runs import foreign
from firstlight.runs.folder import RunFolder, refuse_links
from firstlight.runs.gather import newest_texts
from firstlight.runs.overrides import merged
from firstlight.training.terminal import resume_command
from stand_ins import Calls
from tests_support import Scripts

HUBCONF = "import pathlib\npathlib.Path({canary!r}).touch()\ndef x(): return None\n"


def run_folder(path: Path, *lines: str) -> RunFolder:
    """A run's folder as a stranger may send it: a record, and a saved command line."""
    (path / ".hydra").mkdir(parents=True)
    (path / "metrics.json").write_text(json.dumps({"status": "interrupted", "task": "sentiment"}))
    (path / ".hydra" / "overrides.yaml").write_text(yaml.safe_dump(list(lines)))
    return RunFolder(path)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that no attack makes; beside it what the attacks use."""
    canary = tmp_path / "canary"
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "hubconf.py").write_text(HUBCONF.format(canary=str(canary)))
    (tmp_path / "evil_module.py").write_text(HUBCONF.format(canary=str(canary)))
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Calls(Path.touch, canary)))
    (tmp_path / "kept.txt").write_text("kept")
    return canary


CODE = [
    "+callbacks.x={_target_: torch.hub.load, repo_or_dir: repo, source: local, model: x}",
    "+callbacks.x={_target_: torch.load, f: evil.pkl, weights_only: false}",
    "+callbacks.x={_target_: logging.FileHandler, filename: kept.txt, mode: w}",
    *("+callbacks.x={_target_: os.system, command: touch canary}", "+callbacks.x._target_=evil_module.Callback"),
    "model.attention._target_=evil_module.Attention",
    "+model.attention={_target_: evil_module.Attention, window: 3}",
    "+callbacks.x={_target_: firstlight.runs.folder.write_atomically, path: kept.txt, text: a}",
    "+callbacks.x={_target_: lightning.pytorch.callbacks.os.system, command: touch canary}",
    "+callbacks.checkpoint.x={y: [{_target_: torch.hub.load, repo_or_dir: repo, source: local, model: x}]}",
    "trainer.profiler={_target_: torch.hub.load, repo_or_dir: repo, source: local, model: x}",
    *("trainer._target_=torch.hub.load", "optimizer._target_=torch.optim.SGD", "module._target_=evil_module.x"),
    *("model._target_=evil_module.Net", "optimizer._target_=evil_module.x"),
    *("schedule._target_=firstlight.lit.schedules.linear", "+tags=[{_target_: os.system, command: touch canary}]"),
    *("+callbacks.x._target_='${oc.env:EVIL}'", "+callbacks.x='${oc.create:evil}'"),
]
PLACES = [
    *("callbacks.checkpoint.folder=elsewhere", "callbacks.checkpoint.folder=${paths.output_dir}/../../../elsewhere"),
    *("logger.csv.save_dir=elsewhere", "logger.csv.name=../../../elsewhere", "logger.csv.name=.."),
    "trainer.default_root_dir=elsewhere",
    "+logger.x={_target_: lightning.pytorch.loggers.CSVLogger, save_dir: elsewhere}",
    "+logger.x={_target_: lightning.pytorch.loggers.MLFlowLogger, tracking_uri: x}",
    "+callbacks.x={_target_: lightning.pytorch.callbacks.ModelCheckpoint, dirpath: elsewhere}",
    "+callbacks.x={_target_: lightning.pytorch.callbacks.ModelCheckpoint}",
    "+trainer.profiler={_target_: lightning.pytorch.profilers.SimpleProfiler, dirpath: elsewhere, filename: x}",
    *("+logger.wandb.settings={base_url: other.example.org}", "+logger.wandb.entity=other", "+logger.wandb.id=17"),
    *("+callbacks.text_samples.sink=elsewhere", "+trainer.plugins=[elsewhere]", "+optimizer.state_of=elsewhere"),
    "+callbacks.x={_target_: lightning.pytorch.callbacks.EarlyStopping, monitor: ../elsewhere}",
    "+callbacks.x._target_=firstlight.classifier.module.Classification",
    *("data._target_=lightning.pytorch.demos.mnist_datamodule.MNISTDataModule", "data={cache_dir: elsewhere}"),
    "data.text_column={_target_: os.system, command: ls}",
    *("data.text_column=[{_target_: os.system, command: ls},b]", "data.text_column=['${oc.env:HOME}',b]"),
    *("data.url=http://127.0.0.1:9/x", "data.hub=owner/other", "data.path=owner/other", "task=../../elsewhere"),
    *("model=/elsewhere", "task@hydra.job_logging=stars", "tags=['${oc.env:HOME}']", "init_from=${oc.env:HOME}"),
    "+model.options.weights_only=false",
]
HARMLESS = [
    *("task=stars", "logger=[csv,tensorboard]", "callbacks=none", "data.text_column=a/b", "tags=[a/b,'it is']"),
    *("~callbacks.progress", "trainer.strategy=ddp_spawn", "trainer.profiler=simple", "logger.wandb.project=mine"),
    "callbacks.early_stopping={monitor: val/loss, patience: 3}",
    "callbacks.checkpoint.folder=${paths.output_dir}/checkpoints",
]
WHERE = [
    "hydra.job_logging.handlers.file.filename=kept.txt",
    *("+hydra.callbacks.x={_target_: os.system, command: touch canary}", "hydra/launcher=joblib"),
    *("hydra.run.dir=elsewhere", "paths.log_dir=elsewhere", "paths.cache_dir=elsewhere", "data.cache_dir=elsewhere"),
    "hparams_search=optuna",
]


def test_a_strangers_run_starts_no_code(canary: Path, scripts: Scripts) -> None:
    folder = run_folder(scripts.folder / "theirs", "task=sentiment", "data.source=sample", *CODE)
    before = set(scripts.folder.rglob("*"))
    error = scripts.refuse("train", f"resume={folder.path}", "trainer.max_steps=1")
    assert error.rstrip().endswith(f"type it again: {shlex.join(CODE)}")
    assert set(scripts.folder.rglob("*")) == before
    assert (scripts.folder / "kept.txt").read_text() == "kept"
    assert not any(name.startswith("evil") for name in sys.modules)


def test_the_refusal_names_the_key_and_the_target(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "+callbacks.x={_target_: torch.hub.load, repo_or_dir: repo}", "trainer._target_=a.B")
    message = (
        r"overrides\.yaml: callbacks\.x\._target_=torch\.hub\.load names code; "
        r"a run's folder may not choose that\. If it is your own, type it again: "
        r"'\+callbacks\.x={_target_: torch\.hub\.load, repo_or_dir: repo}' trainer\._target_=a\.B$"
    )
    with pytest.raises(UserError, match=message):
        foreign.kept_overrides(folder.overrides_file, [])


@pytest.mark.parametrize("line", [*CODE, *PLACES])
def test_a_strangers_run_chooses_no_code_no_place_and_no_address(line: str, tmp_path: Path) -> None:
    folder = run_folder(tmp_path, line)
    with pytest.raises(UserError, match="a run's folder may not choose that"):
        foreign.kept_overrides(folder.overrides_file, [])
    typed = [line.lstrip("+")]
    old = foreign.kept_overrides(folder.overrides_file, typed)  # what is typed is the user's own, and replaces the line
    assert merged(old, typed) == [line]
    assert foreign.to_type_again(folder.overrides_file) == [line]


def test_what_a_strangers_run_says_of_hydra_and_of_places_is_left_out(tmp_path: Path) -> None:
    assert foreign.kept_overrides(run_folder(tmp_path, *WHERE, "seed=3").overrides_file, []) == ["seed=3"]


@pytest.mark.parametrize("line", HARMLESS)
def test_settings_are_taken(line: str, tmp_path: Path) -> None:
    folder = run_folder(tmp_path, line)
    assert foreign.kept_overrides(folder.overrides_file, []) == [line]
    assert foreign.to_type_again(folder.overrides_file) == []


@pytest.mark.parametrize("line", ["--config-dir=elsewhere", "-m", "", "seed", "seed=1,2", "a=1\nb=2"])
def test_a_line_that_is_no_override_of_one_run_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not an override.*; delete the line"):
        foreign.kept_overrides(run_folder(tmp_path, line).overrides_file, [])


@pytest.mark.parametrize("content", ["a: 1", "[1, 2]", "a: &a [x]\nb: [*a]", "[" * 100_000, "\x00", "'"])
def test_a_broken_command_line_is_one_line(content: str, tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    folder.overrides_file.write_text(content)
    with pytest.raises(UserError, match=r"overrides\.yaml"):
        foreign.kept_overrides(folder.overrides_file, [])


def test_a_link_out_of_the_run_is_refused_before_anything_is_written(scripts: Scripts) -> None:
    folder = run_folder(scripts.folder / "theirs", "task=sentiment", "data.source=sample")
    kept = scripts.folder / "kept.txt"
    kept.write_text("kept")
    (folder.path / "inner").symlink_to("metrics.json")
    logs = folder.path / "wandb" / "offline-run-20260102_030405-abcd1234" / "logs"
    logs.mkdir(parents=True)
    (logs / "debug-core.log").symlink_to(kept)  # as W&B does
    refuse_links(folder.path)
    (folder.path / "train.log").symlink_to(kept)
    assert "train.log is a link to" in scripts.refuse("train", f"resume={folder.path}")
    assert kept.read_text() == "kept"


@pytest.mark.parametrize("part", ["", "evaluate"])
def test_a_part_of_a_run_that_leads_out_of_it_is_refused(part: str, tmp_path: Path) -> None:
    folder, kept = tmp_path / "theirs", tmp_path / "kept"
    kept.mkdir()
    (folder / "evaluate").mkdir(parents=True)
    (tmp_path / "by_link").symlink_to(folder)
    (folder / "checkpoints").symlink_to(kept)
    refuse_links(tmp_path / "by_link", "evaluate")  # where nothing else is written, a link may be the user's own
    (folder / "evaluate" / "test").symlink_to(kept)
    for run in (folder, tmp_path / "by_link"):
        with pytest.raises(UserError, match=r"is a link to .*kept, outside the run"):
            refuse_links(run, part)
    (folder / "evaluate" / "test").unlink()
    (folder / "evaluate").rmdir()
    (folder / "evaluate").symlink_to(kept)
    with pytest.raises(UserError, match=r"evaluate is a link to .*kept, outside the run"):
        refuse_links(folder, "evaluate")


def test_the_report_shows_no_text_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "theirs" / "samples").mkdir(parents=True)
    (tmp_path / "theirs" / "samples" / "001.txt").write_text("written")
    (tmp_path / "theirs" / "samples" / "002.txt").symlink_to(tmp_path / "secret")
    assert newest_texts(tmp_path / "theirs" / "samples") == "written"


def test_a_run_with_a_callback_of_ones_own_goes_on_by_the_line_that_it_prints(scripts, tiny_training) -> None:
    module = f"{scripts.folder.name}_callback"
    (scripts.folder / f"{module}.py").write_text(
        "from lightning.pytorch import Callback\n"
        "class Mine(Callback):\n"
        "    def on_train_end(self, trainer, module):\n"
        "        print('mine at step', trainer.global_step)\n"
    )
    own = f"+callbacks.mine={{_target_: {module}.Mine}}"
    run = scripts.train("task=sentiment", *tiny_training, "logger=none", "test=false", "trainer.max_steps=2", own)
    command = shlex.split(resume_command(RunFolder(run)))
    assert command[-1] == own
    error = scripts.refuse("train", command[-2], "trainer.max_steps=3")
    assert f"callbacks.mine._target_={module}.Mine names code" in error
    done = scripts.succeed("train", *command[-2:], "trainer.max_steps=3")
    assert "mine at step 3" in done.stdout
