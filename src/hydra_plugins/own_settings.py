"""Search path of the user's folders of settings. Hydra finds plugins only in this namespace."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

PROVIDER = "own settings"


class OwnSettings(SearchPathPlugin):
    """Adds ./conf and --config-dir to the search path, in an application that reads the settings of firstlight.

    It also registers the options of the launcher of several jobs, which must replace those of Hydra's launcher.
    """

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        from firstlight.config_files import CONFIG_DIR, own_folders  # Hydra imports every plugin at each start
        from hydra_plugins import several_jobs

        mains = [each.path.removeprefix("file://") for each in search_path.get_path() if each.provider == "main"]
        if str(CONFIG_DIR) in mains:  # the plugin is called in every Hydra application of the environment
            for folder in reversed(own_folders()):
                search_path.prepend(PROVIDER, f"file://{folder}", anchor=None)
            several_jobs.register()  # here, because Hydra has found all plugins
