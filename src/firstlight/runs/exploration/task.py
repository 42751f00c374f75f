"""The config of a task of which no run is needed, since its data alone is looked at."""

from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from firstlight import config_files
from firstlight.config import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.errors import UserError
from firstlight.runs.evaluate import DataChanges
from firstlight.runs.launch import check, explained
from firstlight.runs.resume import plain


def compose_task(task: str, changes: DataChanges, log_dir: Path) -> tuple[dict[str, Any], DictConfig]:
    """The checked config of `python src/train.py task=…`: as plain types, and the node of its data.

    Raises UserError for a task that there is not, and for a key that its data does not have.
    """
    register_schemas()
    names = config_files.choices("task")
    if task not in names:
        raise UserError(f"--task {task}: there is no such task; there are {', '.join(names)}")
    with explained():
        with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            config = hydra.compose(CONFIG_NAME, overrides=[f"task={task}"], return_hydra_config=True)
        given = {name: value for name, value in vars(changes).items() if value is not None}
        for name in given:
            if name not in config.data:
                raise UserError(f"data.{name} means nothing to --task {task}; leave it out")
        if "source" in given:
            given = {"path": None} | given
        elif "path" in given:
            given["source"] = "auto"
        for name, value in given.items():
            OmegaConf.update(config.data, name, value)
        config.paths.log_dir = str(log_dir)
        config.paths.output_dir = str(log_dir / task / "figures")
        check(config)
    return plain(config), config.data
