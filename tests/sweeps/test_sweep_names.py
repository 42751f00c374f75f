"""A sweep that was not named has a readable folder, which the same command finds again."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from firstlight.sweeps.jobs import key_of_command, name_of_sweep, readable_name


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
        (["task=names,stars,text,movies", "seed=1,2"], chosen(), "names-stars-text-movies_seed"),
        (["experiment=post/stars", "seed=1,2"], chosen(experiment="post/stars"), "post-stars_seed"),
        (["experiment=post/stars,post/names", "seed=1,2"], chosen(), "post-stars-post-names_seed"),
        (["optimizer@x.y=adam,sgd", "task='my task',stars"], chosen(), "my-task-stars_optimizer"),
        (
            [f"data.a_very_long_option_{each}=1,2" for each in "abcd"],
            chosen(),
            "stars_a-very-long-option-a_a-very-long-option",
        ),
        (["dropout=interval(0,1)"], chosen(), "stars_dropout"),
        (["experiment=glob(post/*)"], chosen(), "glob-post"),
    ],
)
def test_a_name_says_what_the_sweep_is_about(typed: list[str], config: DictConfig, name: str) -> None:
    assert readable_name(parsed(*typed), config) == name


def test_the_key_of_a_command_does_not_depend_on_the_order_nor_on_what_changes_no_job() -> None:
    key = key_of_command(parsed("seed=1,2", "dropout=0.1"))
    no_jobs = ["dry_run=true", "paths.log_dir=x", "hydra.sweeper.n_trials=3", "quiet=true"]
    assert key == key_of_command(parsed("dropout=0.1", "seed=1,2", *no_jobs))
    assert key != key_of_command(parsed("seed=1,2,3", "dropout=0.1"))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (r"data.path=../my\ opinions.csv", "data.path='../my opinions.csv'", True),
        ("x='1'", "x=1", False),
        ("x='a,b'", "x=a,b", False),
    ],
)
def test_quotes_change_the_key_only_if_they_change_the_value(one: str, other: str, is_same: bool) -> None:
    assert (key_of_command(parsed("seed=1,2", one)) == key_of_command(parsed("seed=1,2", other))) is is_same


def test_commands_that_differ_have_names_that_differ_and_a_typed_name_is_kept() -> None:
    config = chosen()
    config.update({"sweep": {"name": None}})
    two, three = (name_of_sweep(parsed(typed), config) for typed in ("seed=1,2", "seed=1,2,3"))
    assert two == f"stars_seed_{key_of_command(parsed('seed=1,2'))}" != three
    config.sweep.name = "mine/depths"
    assert name_of_sweep(parsed("seed=1,2"), config) == "mine/depths"
