"""How many jobs of a sweep run at a time on this machine, their worker processes, and their shares of its GPUs."""

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, TextIO

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

from firstlight.errors import RunError, UserError
from firstlight.files import locks
from firstlight.invocation import install_command

ONE_BY_ONE = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
PARALLEL = "hydra_plugins.several_jobs.SeveralJobs"
GPU_ACCELERATORS = ("auto", "gpu", "cuda")
MEMORY_OF_TENSORS = 0.9  # of a shared GPU; the CUDA contexts of the processes use the rest
MEMORY_OF_A_JOB = 2**30  # bytes of a small training on a CPU: PyTorch, Lightning and the data
IDLE: list[Any] = []  # worker processes; they keep what they have imported for the next jobs
CLAIMED: list[TextIO] = []  # the lock of the GPU that this process uses


def is_one_by_one(config: DictConfig) -> bool:
    """Return whether jobs run one after another in this process."""
    return str(config.hydra.launcher.get("_target_")) == ONE_BY_ONE


def is_parallel(hydra_config: Any) -> bool:
    """Return whether several jobs run on this machine at the same time. hydra_config: the node `hydra`."""
    return str(hydra_config.launcher.get("_target_")) == PARALLEL


def num_gpus(config: DictConfig) -> int:
    """Return how many GPUs the jobs of a sweep share; 0 if they use none, or if each job uses several."""
    trainer = config.trainer
    if trainer.get("accelerator") not in GPU_ACCELERATORS or trainer.get("devices") != 1:
        return 0
    import torch

    return torch.cuda.device_count()  # does not initialize CUDA


def usable_cores() -> int:
    """Return the number of cores that this process may use, by its affinity and the limits of its control group."""
    from joblib import cpu_count

    return int(cpu_count())


def jobs_at_a_time(config: DictConfig) -> int:
    """Return the number of jobs that run at the same time.

    hydra.launcher.n_jobs=-1 is one for every core, -2 one less. With null, it is the share of all GPUs, or on a CPU as
    many jobs of one thread as there are cores and memory for.
    """
    num_jobs = config.hydra.launcher.n_jobs
    if num_jobs is not None:
        return num_jobs if num_jobs > 0 else max(1, usable_cores() + 1 + num_jobs)
    if count := num_gpus(config):
        return count * config.hydra.launcher.jobs_per_gpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(usable_cores(), memory // MEMORY_OF_A_JOB))


def threads_of_jobs(config: DictConfig) -> int | None:
    """Return the number of threads of each job: 1 if the number of jobs is chosen by the cores, else that of config."""
    is_chosen = is_parallel(config.hydra) and config.hydra.launcher.n_jobs is None and not num_gpus(config)
    threads: int | None = config.threads
    return 1 if is_chosen and threads is None else threads


def plan_of(config: DictConfig, num_jobs: int) -> str:
    """Return how many of some jobs run at a time, in words; "" if they do not run in parallel on this machine."""
    if not is_parallel(config.hydra):
        return ""
    at_a_time = min(num_jobs, jobs_at_a_time(config))
    if count := num_gpus(config):
        each = min(config.hydra.launcher.jobs_per_gpu, at_a_time)
        return f"{at_a_time} at a time, {each} on each of {count} GPU{'s' if count > 1 else ''}"
    threads = threads_of_jobs(config)
    shown = "" if threads is None else f" with {threads} thread{'s' if threads > 1 else ''} each"
    return f"{at_a_time} at a time{shown} on {usable_cores()} cores"


def check_gpus(config: DictConfig) -> None:
    """Raise UserError if more jobs would run at a time than share the GPUs of the machine."""
    if not is_parallel(config.hydra):
        return
    per_gpu, count = config.hydra.launcher.jobs_per_gpu, num_gpus(config)
    if per_gpu < 1:
        raise UserError(f"hydra.launcher.jobs_per_gpu={per_gpu} must be an integer of at least 1")
    if not count:
        if per_gpu > 1:
            raise UserError(
                f"hydra.launcher.jobs_per_gpu={per_gpu} requires jobs that use one GPU each, and these use "
                f"none or several; set hydra.launcher.n_jobs={per_gpu}"
            )
        return
    at_a_time = jobs_at_a_time(config)
    if at_a_time > count * per_gpu:
        raise UserError(
            f"hydra.launcher.n_jobs={config.hydra.launcher.n_jobs} means {at_a_time} jobs at a time, and the machine "
            f"has {count} GPUs; set hydra.launcher.n_jobs={count * per_gpu}, hydra.launcher.jobs_per_gpu="
            f"{-(-at_a_time // count)}, or trainer=cpu"
        )


def claim_gpu(folder: Path, count: int, jobs_per_gpu: int = 1) -> None:
    """Make a GPU with a free place the only one that this process sees.

    A worker uses the same GPU for all its jobs. Call this function before CUDA is initialized.

    folder: of the sweep; count: the number of GPUs of the machine; jobs_per_gpu: the number of places of a GPU.
    """
    if CLAIMED or count == 0:
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(number) for number in range(count)]
    for place, name in product(range(jobs_per_gpu), names):
        lock = locks.take(folder / f".gpu-{name}-{place}.lock")
        if lock is None:
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = name
        CLAIMED.append(lock)  # the lock lasts as long as this process
        return
    raise RunError(f"other jobs of {folder} use all {count} GPUs; run fewer jobs at a time")


def share_gpu_memory(jobs_per_gpu: int) -> None:
    """Limit the GPU memory of this process to its share. Call this function after `claim_gpu`."""
    if jobs_per_gpu > 1:
        import torch

        torch.cuda.set_per_process_memory_fraction(MEMORY_OF_TENSORS / jobs_per_gpu)


def runner_of_jobs() -> Callable[..., JobReturn]:
    """Return the function of Hydra's launcher for joblib that runs a job. Raises UserError if it is not installed."""
    if find_spec("hydra_plugins.hydra_joblib_launcher") is None:
        raise UserError(f"hydra/launcher=joblib needs Hydra's launcher for joblib: {install_command('joblib')}")
    from hydra_plugins.hydra_joblib_launcher._core import execute_job

    return execute_job


def run_in_workers(jobs: Sequence[Callable[[], JobReturn]], at_a_time: int) -> list[JobReturn]:
    """Run jobs in worker processes, and return their results. A killed worker loses only its job, which has failed.

    Each worker is a separate pool of joblib, because a pool ends all its workers if one of them is killed.
    """
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.parallel import BACKENDS

    share_of_cores = BACKENDS["loky"]()._prepare_worker_env(at_a_time)
    results, running = dict[int, JobReturn](), dict[Future[JobReturn], tuple[int, Any]]()
    try:
        while len(results) < len(jobs):
            while len(running) < at_a_time and (number := len(results) + len(running)) < len(jobs):
                worker = IDLE.pop() if IDLE else ProcessPoolExecutor(1, env=share_of_cores)
                running[worker.submit(jobs[number])] = number, worker
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
        for _, worker in running.values():
            worker.shutdown(kill_workers=True)
        raise
    return [results[number] for number in range(len(jobs))]


def end_workers() -> None:
    """End the idle worker processes, which keep their GPU memory and their place on a GPU."""
    while IDLE:
        IDLE.pop().shutdown(wait=True)
