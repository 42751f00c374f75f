"""The sweeps of conf/wandb_sweep: what a W&B agent would run, composed and checked."""

from functools import cache
from typing import Any

import hydra
import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from firstlight.commands.train import CONFIG_DIR, CONFIG_NAME
from firstlight.config.checks import check
from firstlight.config.schema import register_schemas
from firstlight.runs.folder import lower_is_better
from tests_support import ROOT

SWEEPS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((CONFIG_DIR / "wandb_sweep").glob("*.yaml"))}
DISTRIBUTIONS = {"uniform": float, "log_uniform_values": float, "int_uniform": int}
OF_EVERY_SWEEP = pytest.mark.parametrize("sweep", SWEEPS.values(), ids=SWEEPS)


def values_of(parameter: dict[str, Any]) -> list[Any]:
    """All values of a list, or both ends of a distribution."""
    if "values" in parameter:
        return parameter["values"]
    convert = DISTRIBUTIONS[parameter["distribution"]]
    return [convert(parameter["min"]), convert(parameter["max"])]


def points_of(sweep: dict[str, Any]) -> list[dict[str, Any]]:
    """The first value of every parameter, then their second values, until each value was in one of the points."""
    values = {name: values_of(parameter) for name, parameter in sweep["parameters"].items()}
    count = max(len(choices) for choices in values.values())
    return [{name: choices[index % len(choices)] for name, choices in values.items()} for index in range(count)]


def overrides_of(sweep: dict[str, Any], point: dict[str, Any]) -> list[str]:
    """Return the overrides of the command that W&B's agent starts for a point."""
    env, interpreter, program, *fixed, values = sweep["command"]
    assert [env, interpreter, program, values] == ["${env}", "${interpreter}", "${program}", "${args_no_hyphens}"]
    return [*fixed, *(f"{name}={value}" for name, value in point.items())]


@cache
def composed(*overrides: str) -> tuple[DictConfig, dict[str, str]]:
    """The checked config of these arguments, and what was chosen of each group."""
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=list(overrides), return_hydra_config=True)
    check(config)
    return config, config.hydra.runtime.choices


def test_there_is_a_grid_and_a_bayesian_search() -> None:
    assert {name: sweep["method"] for name, sweep in SWEEPS.items()} == {"grid": "grid", "bayes_hyperband": "bayes"}
    assert list(SWEEPS["grid"]["parameters"]) == ["task", "model", "dropout", "context_length", "seed"]


@OF_EVERY_SWEEP
def test_every_value_reaches_the_configuration(sweep: dict[str, Any]) -> None:
    for point in points_of(sweep):
        config, chosen = composed(*overrides_of(sweep, point))
        for key, value in point.items():
            found = chosen[key] if key in chosen else OmegaConf.select(config, key)
            assert found == value, key
            assert type(found) is type(value), key


@OF_EVERY_SWEEP
def test_a_job_logs_to_wandb_and_leaves_the_test_split_alone(sweep: dict[str, Any]) -> None:
    config, _ = composed(*overrides_of(sweep, points_of(sweep)[0]))
    assert config.test is False
    assert list(config.logger) == ["wandb"]
    assert (ROOT / sweep["program"]).is_file()
    assert sweep["project"] == OmegaConf.load(CONFIG_DIR / "logger" / "wandb.yaml").wandb.project
    metric = sweep["metric"]
    assert metric["name"].startswith("val/")
    assert metric["goal"] == ("minimize" if lower_is_better(metric["name"]) else "maximize")


def test_hyperband_asks_at_least_three_times_in_a_run() -> None:
    """It counts lines of the metric, so that a run of few validations would never be stopped."""
    sweep = SWEEPS["bayes_hyperband"]
    trainer = composed(*overrides_of(sweep, points_of(sweep)[0]))[0].trainer
    an_epoch = 1 / trainer.val_check_interval
    rule = sweep["early_terminate"]
    bands = [rule["min_iter"] * rule["eta"] ** power for power in range(3)]
    assert rule["type"] == "hyperband"
    assert [band / an_epoch for band in bands] == [0.5, 1.5, 4.5]  # as the file says
    assert bands[-1] < trainer.max_epochs * an_epoch == 32
