"""The plugin `hydra/launcher=joblib`. Hydra finds plugins only in this package; sweeps/launchers.py does the work."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class SeveralJobsConfig:
    """Options of several jobs at a time on this machine.

    n_jobs: number of jobs at a time, null: one for each core, or on GPUs jobs_per_gpu for each GPU; jobs_per_gpu:
    number of jobs that share a GPU, each with its share of the memory.
    """

    _target_: str = "hydra_plugins.several_jobs.SeveralJobs"
    n_jobs: int | None = None
    jobs_per_gpu: int = 1


def register() -> None:
    """Replace the options of Hydra's launcher for joblib. Call this function after Hydra has found its plugins."""
    ConfigStore.instance().store(group="hydra/launcher", name="joblib", node=SeveralJobsConfig, provider="firstlight")


class SeveralJobs(Launcher):
    """Launcher of several jobs at a time, each in a worker process of joblib."""

    def __init__(self, **_: int | None) -> None:
        """Keep nothing: sweeps/launchers.py reads the options from the configuration."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.given = hydra_context, config, task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from firstlight.sweeps.launchers import gpus_of, jobs_at_a_time, run_in_workers, runner_of_jobs

        execute, state = runner_of_jobs(), Singleton.get_state()  # Hydra imports every plugin at each start
        numbered = enumerate(job_overrides, start=initial_job_idx)
        jobs = [partial(execute, number, overrides, *self.given, state) for number, overrides in numbered]
        config = self.given[1]
        return run_in_workers(jobs, jobs_at_a_time(config), gpus_of(config))
