"""`hydra/sweeper=resuming`; Hydra finds plugins in this namespace alone, and the work is done in runs/sweep.py."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class ResumingSweeperConfig:
    """params: swept values besides those of the command line, as `key: a,b,c`."""

    _target_: str = "hydra_plugins.resuming_sweeper.ResumingSweeper"
    params: dict[str, str] = field(default_factory=dict)


ConfigStore.instance().store(group="hydra/sweeper", name="resuming", node=ResumingSweeperConfig, provider="firstlight")


class ResumingSweeper(Sweeper):
    """A grid whose jobs have folders named by what differs: what is finished is not run again."""

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = dict(params or {})

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.context, self.task_function, self.master = hydra_context, task_function, config

    def sweep(self, arguments: list[str]) -> Any:
        from firstlight.runs.sweep import sweep  # Hydra imports every plugin at each start

        def launcher_of(config: DictConfig) -> Launcher:
            return Plugins.instance().instantiate_launcher(
                hydra_context=self.context, task_function=self.task_function, config=config
            )

        return sweep(arguments, self.params, self.master, self.context.config_loader, launcher_of)
