"""The user's settings: ./conf and --config-dir extend and replace those of firstlight, for every command."""

import sys
from pathlib import Path

import hydra
import pytest
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from firstlight import config_files
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from tests_support import ROOT, Scripts

OWN_TASK = """# @package _global_
defaults:
  - reviews
  - _self_
  - override /callbacks: mine
dropout: 0.37
data:
  path: rows.csv
"""
OWN_CALLBACKS = """defaults:
  - default
  - _self_
mine:
  _target_: lightning.pytorch.callbacks.Timer
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def own(scripts: Scripts) -> Scripts:
    """Return scripts in a folder with the user's own task, callbacks and rows."""
    rows = "text,label\n" + "".join(f"word{i % 7} word{i % 5},{'ab'[i % 2]}\n" for i in range(40))
    write(
        scripts.folder, {"conf/task/mine.yaml": OWN_TASK, "conf/callbacks/mine.yaml": OWN_CALLBACKS, "rows.csv": rows}
    )
    return scripts


def test_a_task_beside_the_user_extends_one_of_firstlight(own: Scripts) -> None:
    done = own.succeed("train", "task=mine", "--cfg", "job")
    assert "dropout: 0.37\n" in done.stdout
    assert "labels: classes\n" in done.stdout, "of task=reviews"
    assert "mine:\n    _target_: lightning.pytorch.callbacks.Timer" in done.stdout


def test_help_and_mistakes_list_the_users_choices(own: Scripts) -> None:
    assert "\n  task=mine\n" in own.run("train", "--help", "task").stdout
    mistake = "task=mien: no such choice; did you mean task=mine? The choices are choices, masked_reviews, mine,"
    assert mistake in own.run("train", "task=mien").stderr
    assert "there are choices, masked_reviews, mine, movies, names," in own.run("explore", "--task", "mien").stderr
    assert "there are choices, masked_reviews, mine, movies, names," in own.run("baseline", "--task", "mien").stderr
    done = own.run("train", "task=mine", "dropuot=0.1")
    assert done.stderr == "error: dropuot is not a key of the configuration; did you mean dropout?\n"


@pytest.mark.parametrize("typed", [["--config-dir", "there"], ["--config-dir=there"], ["-cd", "there"]])
def test_config_dir_comes_before_the_folder_beside_and_before_firstlight(typed: list[str], own: Scripts) -> None:
    write(
        own.folder,
        {
            "there/task/mine.yaml": OWN_TASK.replace("0.37", "0.41"),
            "there/model/tiny.yaml": "dim: 6\nnum_heads: 2\nnum_layers: 1\n",
        },
    )
    done = own.succeed("train", *typed, "task=mine", "model=tiny", "--cfg", "job")
    assert "dropout: 0.41\n" in done.stdout
    assert "  dim: 6\n" in done.stdout


def test_other_commands_know_config_dir_too(own: Scripts) -> None:
    (own.folder / "conf").rename(own.folder / "there")
    for command in ("baseline", "explore"):
        assert "this task does not exist" in own.run(command, "--task", "mine").stderr
        assert "masked_reviews, mine, movies" in own.run(command, "--task", "mien", "--config-dir", "there").stderr
    assert own.run("baseline", "--task", "mine", "--config-dir", "there").returncode == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"lr: " + b"[" * 3000 + b"]" * 3000, "nested more than 100 levels deep"),
        (b"lr: 1\0\n", "unacceptable character #x0000"),
        ("lr: 1\n".encode("utf-16"), "can't decode byte 0xff"),
        (b"lr: \xe9\n", "can't decode byte 0xe9"),
    ],
    ids=["deep", "NUL", "UTF-16", "Latin-1"],
)
def test_a_file_that_is_no_yaml_is_one_line(content: bytes, problem: str, scripts: Scripts) -> None:
    path = scripts.folder / "there" / "optimizer" / "mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    error = scripts.refuse("train", "--config-dir", "there", "task=stars", "optimizer=mine", "dry_run=true")
    assert "optimizer/mine.yaml cannot be read as YAML" in error
    assert problem in error


def test_a_root_of_another_program_is_one_line(scripts: Scripts) -> None:
    write(scripts.folder, {"conf/train.yaml": "defaults:\n  - model: resnet\n"})
    assert "conf/train.yaml: its defaults list has no root_schema" in scripts.refuse("train", "task=stars")


def test_the_configuration_itself_is_not_added_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["train"])
    assert config_files.own_folders() == []
    assert config_files.folders() == [CONFIG_DIR]


def test_another_application_of_hydra_does_not_get_the_settings(tmp_path, monkeypatch) -> None:
    write(tmp_path, {"conf/db/own.yaml": "size: 7\n", "theirs/root.yaml": "size: 3\n"})
    monkeypatch.chdir(tmp_path)
    assert "OwnSettings" in {plugin.__name__ for plugin in Plugins.instance().discover(SearchPathPlugin)}
    with hydra.initialize_config_dir(str(tmp_path / "theirs"), version_base="1.3"):
        config = hydra.compose("root", overrides=["+db=own"])
    assert config == {"size": 3, "db": "own"}, "a value, since there is no group of this name"


def test_compose_in_a_notebook_sees_the_settings(own: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.folder)
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        assert hydra.compose(CONFIG_NAME, overrides=["task=mine"]).dropout == 0.37
