"""The configuration of a task for commands that only use its data."""

from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf

from firstlight.config.checks import check
from firstlight.config.messages import explained
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.errors import UserError
from firstlight.kind.data_changes import DataChanges


def compose_task(task: str, changes: DataChanges, log_dir: Path, output_dir: Path) -> DictConfig:
    """Return the checked configuration of a task with other data.

    task: an existing task. Raises UserError for an option that its data does not have, and for missing data.
    """
    register_schemas()
    with explained():
        with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            config = hydra.compose(CONFIG_NAME, overrides=[f"task={task}"], return_hydra_config=True)
        for name in changes.given():
            if name not in config.data:
                raise UserError(f"data.{name} does not apply to --task {task}; leave it out")
        for name, value in changes.options().items():
            OmegaConf.update(config.data, name, value)
        config.paths.log_dir = str(log_dir)
        config.paths.output_dir = str(output_dir)
        check(config)
    return config
