"""Copies of configurations that the tests make fast equal those that OmegaConf makes."""

import copy
from pathlib import Path
from typing import Any

import hydra
import pytest
from omegaconf import DictConfig, ListConfig, OmegaConf

from copied_fast import copied_fast
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME


@pytest.fixture(scope="module")
def config() -> DictConfig:
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return hydra.compose(CONFIG_NAME, overrides=["task=stars"], return_hydra_config=True)


def children(node: Any) -> list[Any]:
    content = node.__dict__.get("_content")
    return list(content.values() if isinstance(content, dict) else content if isinstance(content, list) else ())


def described(node: Any) -> Any:
    """Return everything that a node has except its parent and what is computed when it is read."""
    attributes = {key: value for key, value in vars(node).items() if key not in ("_parent", "_content", "_flags_cache")}
    return type(node), attributes, [described(child) for child in children(node)]


def nodes(node: Any) -> list[Any]:
    return [node, *(each for child in children(node) for each in nodes(child))]


def test_a_copy_has_everything_that_the_original_has(config: DictConfig) -> None:
    own = OmegaConf.create({"list": [1, [2.5, "x"], {"deep": None}], "path": Path("a"), "missing": "???", "raw": b"1"})
    OmegaConf.set_readonly(own, True)
    for each in (config, config.model, own, own["list"]):
        with copied_fast():
            copied = copy.deepcopy(each)
        assert described(copied) == described(each)
        assert copied._get_parent() is each._get_parent()


def test_a_copy_shares_no_node_with_the_original(config: DictConfig) -> None:
    with copied_fast():
        copied = copy.deepcopy(config)
    assert not {id(node) for node in nodes(config)} & {id(node) for node in nodes(copied)}
    for node in nodes(copied):
        for child in children(node):
            assert child._get_parent() is node
    copied.model.dim = 999
    OmegaConf.set_struct(copied.data, False)
    assert config.model.dim != 999
    assert OmegaConf.is_struct(config.data)
    assert isinstance(copied.tags, ListConfig)
    copied.tags.append("mine")
    assert "mine" not in config.tags
