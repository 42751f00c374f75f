"""A sweep that was not named has a readable folder, which the same command finds again."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from unittest.mock import patch

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from firstlight.sweeps import names
from firstlight.sweeps.jobs import Composer
from firstlight.sweeps.names import claim, existing_name, free_name, key_of_command, readable_name

DAY = date(2026, 11, 22)


@pytest.fixture(autouse=True)
def day() -> Iterator[None]:
    with patch.object(names, "date", wraps=date) as today:
        today.today.return_value = DAY
        yield


def parsed(*typed: str) -> list[Override]:
    return OverridesParser.create().parse_overrides(list(typed))


def chosen(task: str = "stars", experiment: str | None = None) -> DictConfig:
    """The part of a configuration that has the choices of a command line."""
    return OmegaConf.create({"hydra": {"runtime": {"choices": {"task": task, "experiment": experiment}}}})


@pytest.mark.parametrize(
    ("typed", "config", "name"),
    [
        (["task=sentiment,stars", "model=tiny,small", "dropout=0,0.1"], chosen(), "sentiment-stars_model_dropout"),
        (["optimizer.lr=0.1,1", "+trainer.x=1,2", "seed=1"], chosen("names"), "names_lr_x"),
        (["task=names,stars,text,movies", "seed=1,2"], chosen(), "4-tasks_seed"),
        (["experiment=post/stars", "seed=1,2"], chosen(experiment="post/stars"), "stars_seed"),
        (["experiment=post/stars,post/names", "seed=1,2"], chosen(), "stars-names_seed"),
        (["optimizer@x.y=adam,sgd", "task='my task',stars"], chosen(), "my-task-stars_optimizer"),
        (
            [f"data.a_very_long_option_{each}=1,2" for each in "abcd"],
            chosen(),
            "stars_a-very-long-option-a_a-very-long-option",
        ),
        (["dropout=interval(0,1)"], chosen(), "stars_dropout"),
        (["experiment=glob(post/*)"], chosen(), "experiments"),
    ],
)
def test_a_name_says_what_the_sweep_is_about(typed: list[str], config: DictConfig, name: str) -> None:
    assert readable_name(parsed(*typed), config) == f"{name}_2026-11-22"


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    typed = parsed("seed=1,2")
    for name in ("stars_seed_2026-11-22", "stars_seed_2026-11-22_2", "stars_seed_2026-11-22_3"):
        assert free_name(tmp_path, typed, chosen()) == name
        assert claim(tmp_path / name, key_of_command(parsed(f"seed=1,{name}")), typed)


def test_the_key_of_a_command_does_not_depend_on_the_order_nor_on_what_changes_no_job() -> None:
    key = key_of_command(parsed("seed=1,2", "dropout=0.1"))
    no_jobs = ["dry_run=true", "paths.log_dir=x", "hydra.sweeper.n_trials=3", "quiet=true"]
    assert key == key_of_command(parsed("dropout=0.1", "seed=1,2", *no_jobs))
    assert key != key_of_command(parsed("seed=1,2,3", "dropout=0.1"))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (r"data.path=../my\ opinions.csv", "data.path='../my opinions.csv'", True),
        (r"data.path=a\ b,c", "data.path='a b','c'", True),
        ("x='1'", "x=1", False),
        ("x='a,b'", "x=a,b", False),
    ],
)
def test_quotes_change_the_key_only_if_they_change_the_value(one: str, other: str, is_same: bool) -> None:
    assert (key_of_command(parsed("seed=1,2", one)) == key_of_command(parsed("seed=1,2", other))) is is_same


def test_the_same_command_finds_its_folder_later_and_after_it_was_renamed(tmp_path: Path) -> None:
    typed = parsed("seed=1,2")
    key = key_of_command(typed)
    assert existing_name(tmp_path, key) is None
    assert claim(tmp_path / "mine", key, typed)
    assert json.loads((tmp_path / "mine" / "sweep.json").read_text()) == {"key": key, "overrides": ["seed=1,2"]}
    (tmp_path / "mine").rename(tmp_path / "renamed")
    assert existing_name(tmp_path, key) == "renamed"
    assert existing_name(tmp_path, key_of_command(parsed("seed=1,2,3"))) is None


def test_a_damaged_record_is_reported_and_hides_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    typed = parsed("seed=1,2")
    for name in ("a", "b"):
        assert claim(tmp_path / name, key_of_command(typed), typed)
    (tmp_path / "a" / "sweep.json").write_text("{")
    assert existing_name(tmp_path, key_of_command(typed)) == "b"
    assert f"{tmp_path / 'a' / 'sweep.json'} is damaged" in caplog.text


def composer_of(log_dir: Path, *typed: str) -> Composer:
    """A composer that knows the name of its sweep and no more."""
    composer = Composer.__new__(Composer)
    composer.config, composer.overrides = chosen(), parsed(*typed)
    composer.config.update({"sweep": {"name": None}, "paths": {"log_dir": str(log_dir)}})
    composer.name_the_sweep()
    return composer


def folder_of(composer: Composer) -> Path:
    return composer.sweeps / composer.sweep_name


def test_two_sweeps_that_start_at_once_have_two_folders(tmp_path: Path) -> None:
    first, second = composer_of(tmp_path, "seed=1,2"), composer_of(tmp_path, "seed=1,2,3")
    assert folder_of(first) == folder_of(second), "neither has made its folder"
    assert first.claim(folder_of(first))
    assert not second.claim(folder_of(second))
    assert second.claim(folder_of(second))
    made = sorted(path.name for path in first.sweeps.iterdir())
    assert made == ["stars_seed_2026-11-22", "stars_seed_2026-11-22_2"]


def test_one_command_that_is_started_twice_at_once_has_one_folder(tmp_path: Path) -> None:
    first, second = composer_of(tmp_path, "seed=1,2"), composer_of(tmp_path, "seed=1,2")
    assert first.claim(folder_of(first))
    assert not second.claim(folder_of(second))
    assert folder_of(second) == folder_of(first), "whose lock refuses the second process"
    assert second.claim(folder_of(second))
