"""The launchers joblib, slurm and ray. Hydra finds plugins only in this package; firstlight/sweeps/ does the work."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
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

    _target_: str = "hydra_plugins.firstlight_launchers.SeveralJobs"
    n_jobs: int | None = None
    jobs_per_gpu: int = 1


@dataclass
class StackedJobsConfig:
    """Options of jobs that are trained together as one network, if they differ only in numbers.

    jobs_per_stack: largest number of jobs that are trained together.
    """

    _target_: str = "hydra_plugins.firstlight_launchers.StackedJobs"
    jobs_per_stack: int = 32


@dataclass
class SlurmJobsConfig:
    """Options of jobs on Slurm; null: what the cluster sets.

    Args:
        partition: Partition of the cluster.
        timeout_min: Time limit of a task, in minutes; a job that reaches it is saved, and continues in another task.
        signal_delay_s: Seconds before the limit at which a job is asked to save.
        nodes: Number of nodes of a job.
        tasks_per_node: Number of processes of a job on each node, for trainer=ddp.
        cpus_per_task: Number of cores of a process.
        gpus_per_node: Number of GPUs of a job on each node.
        mem_gb: Memory of a job on each node.
        array_parallelism: Largest number of tasks at a time.
        jobs_per_task: Number of jobs of one task, which run one after another, or jobs_per_gpu at a time.
        jobs_per_gpu: Number of jobs that share a GPU, each with its share of the memory.
        wait: Whether the command waits for the jobs; with false, the same command collects them later.
        setup: Lines of shell before a job, such as "module load cuda".
        sbatch: Further options of sbatch, such as `account: physics`; null for one without a value.
    """

    _target_: str = "hydra_plugins.firstlight_launchers.SlurmJobs"
    partition: str | None = None
    timeout_min: int | None = None
    signal_delay_s: int = 120
    nodes: int = 1
    tasks_per_node: int = 1
    cpus_per_task: int = 1
    gpus_per_node: int | None = None
    mem_gb: float | None = None
    array_parallelism: int | None = None
    jobs_per_task: int = 1
    jobs_per_gpu: int = 1
    wait: bool = True
    setup: list[str] = field(default_factory=list)
    sbatch: Any = None  # a mapping; Hydra refuses new keys of a typed one


@dataclass
class RayJobsConfig:
    """Options of jobs on a Ray cluster.

    Args:
        address: Address of the cluster, such as 10.0.0.1:6379, or auto for the one of this machine; null: a cluster of
            this machine alone, which ends with the sweep.
        num_cpus: Number of cores of a job, which is also the number of its threads.
        num_gpus: Number of GPUs of a job; with 0.1, ten jobs share a GPU.
        memory_gb: Memory of a job; null: Ray does not count it.
        resources: Further resources of a job that nodes of the cluster offer, such as `fast_disk: 1`.
        retries: How often a job starts again after the loss of its node.
    """

    _target_: str = "hydra_plugins.firstlight_launchers.RayJobs"
    address: str | None = None
    num_cpus: float = 1
    num_gpus: float = 0
    memory_gb: float | None = None
    resources: Any = None
    retries: int = 10


LAUNCHERS = {"joblib": SeveralJobsConfig, "stacked": StackedJobsConfig, "slurm": SlurmJobsConfig, "ray": RayJobsConfig}


def register() -> None:
    """Register the options of the launchers. Call this function after Hydra has found its own launcher for joblib."""
    for name, options in LAUNCHERS.items():
        ConfigStore.instance().store(group="hydra/launcher", name=name, node=options, provider="firstlight")


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
        stops = config.sweep.stop_at_first_failure
        return run_in_workers(jobs, jobs_at_a_time(config), gpus_of(config), stops=stops)


class StackedJobs(BasicLauncher):
    """Launcher of jobs in this process, which trains the weights of similar jobs together."""

    def __init__(self, **_: int) -> None:
        """Keep nothing: `launch` reads the option from the configuration."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from firstlight.sweeps.stacked import run_stacked
        from firstlight.training.stack import Stack

        context, config, task = self.hydra_context, self.config, self.task_function
        assert context is not None and config is not None and task is not None

        def run(number: int, **options: Any) -> JobReturn:
            self.task_function = partial(task, **options)
            (result,) = BasicLauncher.launch(self, [job_overrides[number]], initial_job_idx + number)
            return result

        configs = [context.config_loader.load_sweep_config(config, list(each)) for each in job_overrides]
        return run_stacked(config, configs, run, Stack)


class SlurmJobs(SeveralJobs):
    """Launcher of jobs on Slurm, which reads their results from their folders."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from firstlight.sweeps.launchers import jobs_of_a_task
        from firstlight.sweeps.slurm import launch

        return launch(self.given[1], job_overrides, jobs_of_a_task(self.given[1]))


class RayJobs(SeveralJobs):
    """Launcher of jobs on Ray, which reads their results from their folders."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from firstlight.sweeps.on_ray import launch

        return launch(self.given[1], job_overrides)
