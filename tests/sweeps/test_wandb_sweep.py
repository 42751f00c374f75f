"""The sweeps of conf/wandb_sweep: what a W&B agent would run, composed, checked and once run."""

import copy
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import hydra
import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from firstlight.commands.train import CONFIG_DIR, CONFIG_NAME
from firstlight.config.checks import check
from firstlight.config.schema import register_schemas
from firstlight.runs.folder import lower_is_better
from tests_support import ROOT, Scripts, environment
from wandb_files import no_key, runs_below

SWEEPS = {path.stem: path for path in sorted((CONFIG_DIR / "wandb_sweep").glob("*.yaml"))}
DISTRIBUTIONS = {"uniform": float, "log_uniform_values": float, "int_uniform": int}
OF_EVERY_SWEEP = pytest.mark.parametrize("name", SWEEPS)


def agent() -> Any:
    """What W&B's agent uses, imported late: each worker of pytest-xdist collects this file, and it takes seconds."""
    from wandb.sdk.launch.sweeps import utils

    return utils


def sweep_of(name: str) -> dict[str, Any]:
    sweep = agent().load_sweep_config(str(SWEEPS[name]))
    assert sweep is not None
    return sweep


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


def command_of(sweep: dict[str, Any], point: dict[str, Any]) -> list[str]:
    """What the agent starts for a point, put together as in wandb_agent.py."""
    arguments = agent().create_sweep_command_args({"args": {name: {"value": value} for name, value in point.items()}})
    known = arguments | {"env": ["/usr/bin/env"], "interpreter": ["python"], "program": [sweep["program"]]}
    command: list[str] = []
    for part in map(str, agent().create_sweep_command(copy.copy(sweep["command"]))):
        command += known[part[2:-1]] if part.startswith("${") else [part]
    return command


@cache
def composed(*overrides: str) -> tuple[DictConfig, dict[str, str]]:
    """The checked config of these arguments, and what was chosen of each group."""
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=list(overrides), return_hydra_config=True)
    check(config)
    return config, config.hydra.runtime.choices


def test_there_is_a_grid_and_a_bayesian_search() -> None:
    assert {name: sweep_of(name)["method"] for name in SWEEPS} == {"grid": "grid", "bayes_hyperband": "bayes"}
    assert list(sweep_of("grid")["parameters"]) == ["task", "model", "dropout", "context_length", "seed"]


@OF_EVERY_SWEEP
def test_every_value_reaches_the_configuration(name: str) -> None:
    sweep = sweep_of(name)
    for point in points_of(sweep):
        command = command_of(sweep, point)
        assert command[:3] == ["/usr/bin/env", "python", "src/train.py"]
        config, chosen = composed(*command[3:])
        for key, value in point.items():
            found = chosen[key] if key in chosen else OmegaConf.select(config, key)
            assert found == value, key
            assert type(found) is type(value), key


@OF_EVERY_SWEEP
def test_a_job_logs_to_wandb_and_leaves_the_test_split_alone(name: str) -> None:
    sweep = sweep_of(name)
    config, _ = composed(*command_of(sweep, points_of(sweep)[0])[3:])
    assert config.test is False
    assert list(config.logger) == ["wandb"]
    assert (ROOT / sweep["program"]).is_file()
    assert sweep["project"] == OmegaConf.load(CONFIG_DIR / "logger" / "wandb.yaml").wandb.project
    metric = sweep["metric"]
    assert metric["name"].startswith("val/")
    assert metric["goal"] == ("minimize" if lower_is_better(metric["name"]) else "maximize")


def test_hyperband_asks_at_least_three_times_in_a_run() -> None:
    """It counts lines of the metric, so that a run of few validations would never be stopped."""
    sweep = sweep_of("bayes_hyperband")
    trainer = composed(*command_of(sweep, points_of(sweep)[0])[3:])[0].trainer
    an_epoch = 1 / trainer.val_check_interval
    rule = sweep["early_terminate"]
    bands = [rule["min_iter"] * rule["eta"] ** power for power in range(3)]
    assert rule["type"] == "hyperband"
    assert [band / an_epoch for band in bands] == [0.5, 1.5, 4.5]  # as the file says
    assert "makes 4 per epoch" in SWEEPS["bayes_hyperband"].read_text()
    assert bands[-1] < trainer.max_epochs * an_epoch == 32


# Its parts are tested in every run: the values of the command above, the group in
# test_wandb.py::test_the_runs_of_a_sweep_of_wandbs_own_are_a_group, and what W&B is sent in test_loggers.py. The ids of
# the run and the sweep are read by W&B itself.
@pytest.mark.slow
def test_a_job_of_an_agent_is_a_run_of_the_sweep(tmp_path: Path, reviews_folder: Path) -> None:
    """The command itself, with less to do; the agent's environment as wandb_agent.py sets it."""
    sweep = sweep_of("bayes_hyperband")
    point = points_of(sweep)[0]
    parameters: dict[str, Any] = {"wandb_version": 1} | {name: {"value": value} for name, value in point.items()}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(parameters))
    agent = {"WANDB_SWEEP_ID": "7wx23k", "WANDB_RUN_ID": "q1b5", "WANDB_PROJECT": sweep["project"]}
    agent |= {"WANDB_SWEEP_PARAM_PATH": str(tmp_path / "config.yaml")}
    less = ["trainer.max_epochs=1", "trainer.limit_train_batches=4", "trainer.limit_val_batches=1"]
    less += ["data.batch_size=20", f"data.path={reviews_folder}", f"paths.log_dir={tmp_path}/logs"]
    less += ["++callbacks.confusion_matrix=null", "trainer.accelerator=cpu", "hydra.run.dir=${paths.log_dir}/job"]
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [*command_of(sweep, point), *less],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment() | no_key(tmp_path) | agent | path,
    )
    assert done.returncode == 0, done.stderr
    (run,) = runs_below(tmp_path / "logs")
    (told,) = run.all("run")
    assert (told["run_id"], told["sweep_id"], told["run_group"]) == ("q1b5", "7wx23k", "7wx23k")
    assert told["project"] == "firstlight"
    assert [step for step, _ in run.history(sweep["metric"]["name"])] == [0, 1, 2, 3]  # hyperband's four an epoch
    config = run.config
    assert (config["task"], config["model_name"]) == ("sentiment", point["model"])
    assert {name: config[name] for name in ("dropout", "context_length")} == {
        name: point[name] for name in ("dropout", "context_length")
    }
    assert config["optimizer"]["lr"] == point["optimizer.lr"]
    assert config["schedule"]["warmup_steps"] == point["schedule.warmup_steps"]
    assert run.metrics["status"] == "finished"
    assert not any(name.startswith("test/") for name in run.metrics["metrics"])
    assert [end.get("exit_code", 0) for end in run.all("exit")] == [0]


@pytest.mark.parametrize("override", ["wandb_sweep=grid", "+wandb_sweep=grid"])
def test_they_are_no_group_of_the_configuration(scripts: Scripts, override: str) -> None:
    done = scripts.run("train", override)
    assert done.returncode == 2
    assert done.stderr.startswith("error: wandb_sweep")
    assert len(done.stderr.splitlines()) == 1
