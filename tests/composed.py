"""The configuration of a command line, composed as in a run."""

from functools import cache

import hydra
from omegaconf import DictConfig

from firstlight.commands.train import CONFIG_DIR, CONFIG_NAME
from firstlight.config.checks import check
from firstlight.config.schema import register_schemas


@cache
def composed(*overrides: str) -> DictConfig:
    """Return the checked configuration of `python src/train.py` with these arguments."""
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=list(overrides))
    check(config)
    return config
