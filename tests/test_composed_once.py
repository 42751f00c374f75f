"""The cached compositions of the tests equal those of Hydra."""

import hydra
from omegaconf import DictConfig

from composed_once import composed_once
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME


def composed(*overrides: str) -> DictConfig:
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return hydra.compose(CONFIG_NAME, overrides=list(overrides), return_hydra_config=True)


def test_what_a_run_changes_is_not_kept() -> None:
    register_schemas()
    with composed_once():
        first = composed("task=stars")
        first.model.dim = 999
        first.hydra.job.name = "another"
        again = composed("task=stars")
    assert again.model.dim != 999
    assert again.hydra.job.name != "another"
