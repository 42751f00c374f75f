"""The cached compositions of the tests equal those of Hydra."""

from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from composed_once import ComposedOnce, replaced
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME

COMMAND_LINES = [
    ["task=stars", "model=tiny", "+trainer.benchmark=true", "~callbacks.early_stopping", "seed=3"],
    ["task=stars", "model=tiny", "data.batch_size=7", "+data.nonsense=1", "hydra.job.name=mine"],
    ["task=sentiment", "logger=csv", "schedule@second=constant"],
]


@pytest.fixture(scope="module", autouse=True)
def schemas() -> None:
    register_schemas()


def composed(*overrides: str) -> DictConfig:
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return hydra.compose(CONFIG_NAME, overrides=list(overrides), return_hydra_config=True)


def description(overrides: list[str]) -> Any:
    """Return the full result of a composition: values, classes and flags, or the error."""
    try:
        config = composed(*overrides)
    except HydraException as error:
        return str(error)
    return OmegaConf.to_container(config), described(config)


def described(node: Any) -> Any:
    if not isinstance(node, DictConfig):
        return type(node), getattr(node, "_metadata", None)
    children = {key: described(node._get_node(key)) for key in node}
    flags = {name: node._get_flag(name) for name in ("struct", "readonly", "no_deepcopy_set_nodes")}
    return OmegaConf.get_type(node), flags, children


@pytest.mark.parametrize("overrides", COMMAND_LINES, ids=" ".join)
def test_a_composition_is_the_same_the_first_time_and_later(overrides: list[str], tmp_path: Path) -> None:
    with replaced():
        true = description(overrides)
    with ComposedOnce(tmp_path).active():
        assert [description(overrides), description(overrides)] == [true, true]
    kept = set(tmp_path.iterdir())
    with ComposedOnce(tmp_path).active():  # as in another process
        assert description(overrides) == true
    assert set(tmp_path.iterdir()) == kept


def test_what_a_run_changes_is_not_kept() -> None:
    with ComposedOnce().active():
        first = composed("task=stars")
        first.model.dim = 999
        first.hydra.job.name = "another"
        again = composed("task=stars")
    assert again.model.dim != 999
    assert again.hydra.job.name != "another"
