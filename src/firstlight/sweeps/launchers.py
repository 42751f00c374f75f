"""How many jobs of a sweep run at a time on this machine, their worker processes, and their shares of its GPUs."""

import ctypes
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

from firstlight.errors import RunError, UserError
from firstlight.invocation import install_command
from firstlight.lazy import exclude_imports_from_collections
from firstlight.sweeps.remote import NOT_STARTED
from firstlight.sweeps.screen import OUTPUT, STANDARD

# The launchers of jobs one after another in this process, of several on this machine, and of those on a cluster.
ONE_BY_ONE = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
PARALLEL = "hydra_plugins.firstlight_launchers.SeveralJobs"
SLURM = "hydra_plugins.firstlight_launchers.SlurmJobs"
RAY = "hydra_plugins.firstlight_launchers.RayJobs"
GPU_ACCELERATORS = ("auto", "gpu", "cuda")
MEMORY_OF_TENSORS = 0.9  # of a shared GPU; the CUDA contexts of the processes use the rest
MEMORY_OF_A_JOB = 2**30  # bytes of a small training on a CPU: PyTorch, Lightning and the data
TRAINING = "firstlight.training.fit"  # the module that trains, and imports what all jobs need
SECONDS_TO_SAVE = 20  # for the jobs of an interrupted sweep, until they are killed
AT_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG in Linux


def has_launcher(config: DictConfig, target: str) -> bool:
    """Return whether the jobs of a sweep are run by a launcher, such as PARALLEL."""
    return str(config.hydra.launcher.get("_target_")) == target


def num_gpus(config: DictConfig) -> int:
    """Return how many GPUs the jobs of a sweep share; 0 if they use none, or if each job uses several."""
    trainer, launcher = config.trainer, config.hydra.launcher
    if trainer.get("accelerator") not in GPU_ACCELERATORS or trainer.get("devices") != 1:
        return 0
    if has_launcher(config, SLURM):
        return (launcher.gpus_per_node or 0) if launcher.nodes * launcher.tasks_per_node == 1 else 0
    import torch

    return torch.cuda.device_count()  # does not initialize CUDA


def usable_cores() -> int:
    """Return the number of cores that this process may use, by its affinity and the limits of its control group."""
    from joblib import cpu_count

    return int(cpu_count())


def jobs_at_a_time(config: DictConfig) -> int:
    """Return the number of jobs that run at the same time, on GPUs at most jobs_per_gpu for each of them.

    hydra.launcher.n_jobs=-1 is one for every core, -2 one less. With null, it is the share of all GPUs, or on a CPU as
    many jobs of one thread as there are cores and memory for.
    """
    num_jobs, places = config.hydra.launcher.n_jobs, num_gpus(config) * config.hydra.launcher.jobs_per_gpu
    if num_jobs is None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return places or max(1, min(usable_cores(), memory // MEMORY_OF_A_JOB))
    if num_jobs <= 0:
        num_jobs = max(1, usable_cores() + 1 + num_jobs)
    return min(num_jobs, places) if places else num_jobs


def plan_of(config: DictConfig, num_jobs: int) -> str:
    """Return how many of some jobs run at a time, in words; "" if they do not run in parallel on this machine."""
    return f"{min(num_jobs, jobs_at_a_time(config))} at a time" if has_launcher(config, PARALLEL) else ""


def check_launcher(config: DictConfig) -> None:
    """Raise UserError if the jobs are to run on a cluster that does not exist or cannot run them."""
    launcher = config.hydra.launcher
    if has_launcher(config, SLURM):
        from firstlight.sweeps.slurm import check_partition

        check_partition(launcher.partition)
    elif has_launcher(config, RAY):
        from firstlight.sweeps.on_ray import check_cluster

        check_cluster(launcher)


def jobs_of_a_task(config: DictConfig) -> int:
    """Return how many jobs run at a time in a task of Slurm: one, or jobs_per_gpu for each of its GPUs."""
    per_gpu: int = config.hydra.launcher.jobs_per_gpu
    return per_gpu * num_gpus(config) if per_gpu > 1 else 1


def check_gpus(config: DictConfig) -> None:
    """Raise UserError if jobs cannot share GPUs as the configuration says."""
    per_gpu = config.hydra.launcher.get("jobs_per_gpu", 1)
    if per_gpu < 1 or (per_gpu > 1 and not num_gpus(config)):
        remedy = "n_jobs for the number of jobs at a time"
        if has_launcher(config, SLURM):
            remedy = "gpus_per_node to 1 or more, with trainer=gpu and one process for each job"
        problem = "must be at least 1, and above 1 it requires jobs that use one GPU each"
        raise UserError(f"hydra.launcher.jobs_per_gpu={per_gpu} {problem}; set hydra.launcher.{remedy}")


def refuse_processes(config: DictConfig) -> None:
    """Raise UserError for a strategy that starts the complete command again in each process.

    On Slurm, which starts the processes of a job, raise it if their number is not that of the training.
    """
    strategy = str(config.trainer.get("strategy", "auto"))
    if strategy == "auto" and not (config.trainer.get("devices") in (1, "1") and config.trainer.get("num_nodes") == 1):
        strategy = "ddp"  # Lightning's choice for several devices
    is_restarted = strategy.startswith("ddp") and not re.search("spawn|fork|notebook", strategy)
    launcher = config.hydra.launcher
    if has_launcher(config, SLURM):
        started = {"num_nodes": "nodes", "devices": "tasks_per_node"}
        for key, option in started.items():
            given = config.trainer.get(key) if is_restarted or key == "num_nodes" else 1
            if str(given) not in (str(launcher[option]), "-1", "auto"):
                problem = f"must equal trainer.{key}={given} of a training by trainer=ddp"
                raise UserError(f"hydra.launcher.{option}={launcher[option]} {problem}; change one of them")
    if not is_restarted or "Slurm" in str(launcher.get("_target_")):
        return
    problem = f"trainer.strategy={strategy} would start the complete sweep again in each process"
    slurm = "hydra/launcher=slurm with hydra.launcher.tasks_per_node=<GPUs of a machine>"
    raise UserError(f"{problem}; use trainer=ddp_sim or trainer.strategy=ddp_spawn (or ddp_fork), or {slurm}")


def gpus_of(config: DictConfig) -> list[str]:
    """Return the GPUs that the jobs share, by their names in CUDA_VISIBLE_DEVICES."""
    count, visible = num_gpus(config), os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[:count] if visible else [str(number) for number in range(count)]


def use_share(config: DictConfig, hydra_config: Any) -> None:
    """Limit this process to the share of a job that runs next to others: of the memory of its GPU, or of the cores.

    hydra_config: the node `hydra`.
    """
    whole: Any = SimpleNamespace(hydra=hydra_config, trainer=config.trainer)
    launcher = hydra_config.launcher
    if has_launcher(whole, PARALLEL) and launcher.n_jobs is None and not num_gpus(whole) and config.threads is None:
        config.threads = 1  # as many jobs run as there are cores
    per_gpu = launcher.get("jobs_per_gpu", 1)
    if per_gpu > 1:
        import torch

        if torch.cuda.device_count():
            torch.cuda.set_per_process_memory_fraction(MEMORY_OF_TENSORS / per_gpu)


def runner_of_jobs() -> Callable[..., JobReturn]:
    """Return the function of Hydra's launcher for joblib that runs a job. Raises UserError if it is not installed."""
    if find_spec("hydra_plugins.hydra_joblib_launcher") is None:
        raise UserError(f"hydra/launcher=joblib needs Hydra's launcher for joblib: {install_command('joblib')}")
    from hydra_plugins.hydra_joblib_launcher._core import execute_job

    return execute_job


class Worker(NamedTuple):
    """A worker process, which keeps what it has imported for its next jobs.

    pool: a separate pool of joblib, because a pool ends all its workers if one of them is killed; gpu: the name in
    CUDA_VISIBLE_DEVICES of the only GPU that the process sees; None if the jobs use no GPU.
    """

    pool: Any
    gpu: str | None


IDLE: list[Worker] = []  # the workers that wait for a job


def fork_workers(config: DictConfig, folder: Path, num_jobs: int) -> None:
    """Fork idle workers for a number of jobs, after the imports of a job and before this process computes anything.

    folder: that of the sweep, to whose output the workers write what would disturb the table in a terminal.

    A fork lacks the threads that a computation has started, and cannot use CUDA. Where a training may have run in this
    process, where jobs use GPUs, and on macOS, whose frameworks do not work after a fork, `run_in_workers` starts new
    processes instead, as it does after the death of a worker.
    """
    if sys.platform != "linux" or not has_launcher(config, PARALLEL) or not num_jobs or TRAINING in sys.modules:
        return
    import torch

    if config.trainer.get("accelerator") in GPU_ACCELERATORS and torch.cuda.device_count():
        return
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.backend.context import LokyContext

    import_module(TRAINING)
    context, at_a_time = LokyContext(), jobs_at_a_time(config)
    variables, has_table = share_of_cores(at_a_time), sys.stdout.isatty() and not config.quiet
    given = {"initializer": begin_worker, "initargs": (variables, folder / OUTPUT if has_table else None)}
    context.Process = multiprocessing.get_context("fork").Process
    for _ in range(min(num_jobs, at_a_time)):
        pool = ProcessPoolExecutor(1, context=context, env=variables, **given)
        pool._adjust_process_count()  # forks
        IDLE.append(Worker(pool, None))
    del context.Process
    for worker in IDLE:
        worker.pool.submit(os.getpid)  # starts a thread of this process, which also ends the worker


def share_of_cores(at_a_time: int) -> dict[str, str]:
    """Return the environment variables that limit the threads of each of several jobs."""
    from joblib.parallel import BACKENDS

    return dict(BACKENDS["loky"]()._prepare_worker_env(at_a_time))


def begin_worker(variables: Mapping[str, str] | None = None, output: Path | None = None) -> None:
    """Prepare this process for jobs. If the process of the sweep dies, a job ends as by SIGTERM, with a checkpoint.

    variables: those of the environment for a fork, whose libraries have read them before; output: the file to which it
    writes instead of the terminal.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(AT_DEATH_OF_PARENT, signal.SIGTERM)
    if variables is None:
        return
    import torch
    from threadpoolctl import threadpool_limits

    os.environ.update(variables)
    torch.set_num_threads(int(variables["OMP_NUM_THREADS"]))
    threadpool_limits(int(variables["OMP_NUM_THREADS"]))
    exclude_imports_from_collections()  # a collection would also copy their memory, which the fork shares
    for number in filter(os.isatty, STANDARD if output else ()):
        os.dup2(os.open(str(output), os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)


def run_for(sweep: int, job: Callable[[], JobReturn]) -> JobReturn:
    """Run a job for a process of a sweep. If that process has died meanwhile, this one ends too."""
    try:
        return job()
    finally:
        if os.getppid() != sweep:
            os._exit(1)  # loky would wait for its next job


def run_in_workers(
    jobs: Sequence[Callable[[], JobReturn]], at_a_time: int, gpus: Sequence[str] = (), *, stops: bool = False
) -> list[JobReturn]:
    """Run jobs in worker processes, and return their results. A killed worker loses only its job, which has failed.

    gpus: the GPUs that the workers share evenly; stops: whether no further job starts after one has failed.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    variables = share_of_cores(at_a_time)
    results, running = dict[int, JobReturn](), dict[Future[JobReturn], tuple[int, Worker]]()

    def started() -> Worker:
        used = [worker.gpu for _, worker in running.values()]
        gpu = min(gpus, key=used.count, default=None)
        own = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        return Worker(ProcessPoolExecutor(1, env=variables | own, initializer=begin_worker), gpu)

    try:
        while len(results) < len(jobs):
            if stops and any(each.status is JobStatus.FAILED for each in results.values()):
                at_a_time = 0
                if not running:
                    break
            while len(running) < at_a_time and (number := len(results) + len(running)) < len(jobs):
                worker = IDLE.pop() if IDLE else started()
                running[worker.pool.submit(run_for, os.getpid(), jobs[number])] = number, worker
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number, worker = running.pop(future)
                try:
                    results[number] = future.result()
                    IDLE.append(worker)
                except BrokenExecutor as error:
                    code = "".join(re.findall(r"\w+\(-?\d+\)", str(error)))
                    why = f"its process was killed ({code}), perhaps because the memory was full"
                    lost = RunError(f"{why}; to run fewer jobs at a time, set hydra.launcher.n_jobs")
                    results[number] = JobReturn(status=JobStatus.FAILED, _return_value=lost)
    except BaseException:
        try:
            for process_id in [each for _, worker in running.values() for each in list(worker.pool._processes)]:
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGTERM)
            wait(running, timeout=SECONDS_TO_SAVE)
        finally:
            for _, worker in running.values():
                worker.pool.shutdown(kill_workers=True)
        raise
    not_started = JobReturn(status=JobStatus.FAILED, _return_value=RunError(NOT_STARTED))
    return [results.get(number, not_started) for number in range(len(jobs))]


def end_workers() -> None:
    """End the idle worker processes, which keep their GPU memory."""
    while IDLE:
        IDLE.pop().pool.shutdown(wait=True)
