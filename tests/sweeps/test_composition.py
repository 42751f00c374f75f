"""Test of the loader that composes the jobs of a sweep: it returns what Hydra's own loader returns."""

import hydra
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from firstlight.commands.train import composed
from firstlight.config.schema import OnceForEachChoice, register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME

JOBS = [
    ["task=names", "seed=1", "hydra.sweep.subdir=a"],
    ["task=names", "hydra.sweep.subdir=b", "tags=[x,y]", "seed=2"],
    ["task=stars", "model=small", "+model.options.x=3", "~callbacks.checkpoint", "model.dim=8"],
    ["task=stars", "model=small", "+model.options.x=4", "~callbacks.checkpoint", "model.dim=16"],
]


@pytest.mark.usefixtures("working_folder")
def test_a_job_is_composed_as_by_hydra() -> None:
    register_schemas()
    with hydra.initialize_config_dir(str(CONFIG_DIR), job_name=CONFIG_NAME, version_base="1.3"):
        app = GlobalHydra.instance().hydra
        master = composed(app, ["task=names", "seed=1,2", "threads=1"], is_sweep=True)
        loader = OnceForEachChoice(app.config_loader)
        for overrides in JOBS:
            expected = app.config_loader.load_sweep_config(master, list(overrides))
            assert OmegaConf.to_yaml(loader.load_sweep_config(master, overrides)) == OmegaConf.to_yaml(expected)
