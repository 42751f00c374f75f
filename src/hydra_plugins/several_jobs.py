"""The plugin `hydra/launcher=joblib`. Hydra finds plugins only in this package; sweeps/launchers.py does the work."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class SeveralJobsConfig:
    """Options of several jobs at a time on this machine.

    n_jobs: number of jobs at a time, null: one for each core, or on GPUs jobs_per_gpu for each GPU; jobs_per_gpu:
    number of jobs that share a GPU, each with its share of the memory. The others are arguments of joblib.Parallel,
    with the defaults of Hydra's launcher.
    """

    _target_: str = "hydra_plugins.several_jobs.SeveralJobs"
    n_jobs: int | None = None
    jobs_per_gpu: int = 1
    prefer: str = "processes"
    require: str | None = None
    verbose: int = 0
    timeout: float | None = None
    pre_dispatch: str = "2*n_jobs"
    batch_size: str = "auto"
    temp_folder: str | None = None
    max_nbytes: str | None = None
    mmap_mode: str = "r"


def register() -> None:
    """Replace the options of Hydra's launcher for joblib. Call this function after Hydra has found its plugins."""
    ConfigStore.instance().store(group="hydra/launcher", name="joblib", node=SeveralJobsConfig, provider="firstlight")


class SeveralJobs(Launcher):
    """Launcher of several jobs at a time, by Hydra's launcher for joblib."""

    def __init__(self, n_jobs: int | None = None, jobs_per_gpu: int = 1, **options: Any) -> None:  # noqa: ARG002
        """Keep the arguments of joblib. n_jobs, jobs_per_gpu: read from the configuration."""
        self.options = options

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from firstlight.sweeps.launchers import (
            joblib_launcher,
            jobs_at_a_time,
        )  # Hydra imports every plugin at each start

        self.launcher = joblib_launcher(n_jobs=jobs_at_a_time(config), **self.options)
        self.launcher.setup(hydra_context=hydra_context, task_function=task_function, config=config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        return self.launcher.launch(job_overrides, initial_job_idx)
