"""The cached compositions of the tests equal those of Hydra."""

from typing import Any

import hydra
import pytest
from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from composed_once import CREATE_LIST, MERGE, composed_once
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME

COMMAND_LINES = [
    ["task=stars", "model=tiny", "+trainer.benchmark=true", "~callbacks.early_stopping", "seed=3"],
    ["task=stars", "model=tiny", "data.batch_size=7", "+data.nonsense=1", "hydra.job.name=mine"],
    ["task=sentiment", "logger=csv", "schedule@second=constant"],
]


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
def test_a_composition_is_the_same_the_first_time_and_later(
    overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    register_schemas()
    with composed_once():
        found = [description(overrides), description(overrides)]
    monkeypatch.setattr(config_loader_impl, "create_defaults_list", CREATE_LIST)
    monkeypatch.setattr(ConfigLoaderImpl, "_compose_config_from_defaults_list", MERGE)
    assert found == [description(overrides)] * 2


def test_what_a_run_changes_is_not_kept() -> None:
    register_schemas()
    with composed_once():
        first = composed("task=stars")
        first.model.dim = 999
        first.hydra.job.name = "another"
        again = composed("task=stars")
    assert again.model.dim != 999
    assert again.hydra.job.name != "another"
