"""The sweeper, and the search path of the user's folders of settings. Hydra finds plugins only in this package."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

PROVIDER = "own settings"


@dataclass
class ResumingSweeperConfig:
    """Options of a grid, or of a search if n_trials is set.

    params: swept values besides those of the command line, as `key: a,b,c`; n_trials: of a search, in all; sampler,
    pruner: Optuna's, by `_target_`, or by the groups hydra/sweeper/sampler and hydra/sweeper/pruner; seeds: of each
    trial, whose result is the mean over them; objectives: in place of optimized_metric, several, such as
    [val/loss,parameters]; direction: minimize or maximize for each objective, null: by its name.
    """

    defaults: list[Any] = field(default_factory=lambda: ["_self_", {"sampler": None}, {"pruner": None}])
    _target_: str = "hydra_plugins.firstlight_sweeper.ResumingSweeper"
    _recursive_: bool = False
    params: dict[str, str] = field(default_factory=dict)
    n_trials: int | None = None
    seeds: int = 1
    sampler: Any = field(default_factory=lambda: {"_target_": None})
    pruner: Any = field(default_factory=lambda: {"_target_": None})
    objectives: list[str] = field(default_factory=list)
    direction: Any = None


ConfigStore.instance().store(group="hydra/sweeper", name="resuming", node=ResumingSweeperConfig, provider="firstlight")


class ResumingSweeper(Sweeper):
    """Sweeper that skips finished jobs. The folder of a job is named by what differs, or by the number of its trial."""

    def __init__(self, params: dict[str, str] | None = None, n_trials: int | None = None, **_: Any) -> None:
        """Keep what a grid requires; sweeps/search.py reads the other options from the configuration."""
        self.params, self.n_trials = dict(params or {}), n_trials

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.context, self.task_function, self.master = hydra_context, task_function, config

    def sweep(self, arguments: list[str]) -> Any:
        from firstlight.sweeps.grid import sweep  # Hydra imports every plugin at each start
        from firstlight.sweeps.jobs import Composer

        composer = Composer(arguments, self.params, self.master, self.context.config_loader)
        if self.n_trials is None:
            return sweep(composer, self.launcher_of)
        from firstlight.sweeps.search import search

        return search(composer, self.launcher_of, self.n_trials)

    def launcher_of(self, config: DictConfig) -> Launcher:
        """Return the launcher that the configuration names."""
        return Plugins.instance().instantiate_launcher(
            hydra_context=self.context, task_function=self.task_function, config=config
        )


class OwnSettings(SearchPathPlugin):
    """Adds ./conf and --config-dir to the search path, in an application that reads the settings of firstlight.

    It also registers the options of the launcher of several jobs, which must replace those of Hydra's launcher.
    """

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        from firstlight.config_files import CONFIG_DIR, own_folders  # Hydra imports every plugin at each start
        from hydra_plugins import firstlight_launchers

        mains = [each.path.removeprefix("file://") for each in search_path.get_path() if each.provider == "main"]
        if str(CONFIG_DIR) in mains:  # the plugin is called in every Hydra application of the environment
            for folder in reversed(own_folders()):
                search_path.prepend(PROVIDER, f"file://{folder}", anchor=None)
            firstlight_launchers.register()  # here, because Hydra has found all plugins
