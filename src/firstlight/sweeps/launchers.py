"""What a job needs from the way in which Hydra launches it: its own GPU, and its own file for its output."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from omegaconf import DictConfig

from firstlight.errors import RunError, UserError
from firstlight.files import locks
from firstlight.sweeps.screen import STANDARD, descriptors_to, stream_handlers

ONE_BY_ONE = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
PARALLEL = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
OUTPUT = "output.txt"  # in the folder of a job: what it prints; in the folder of a sweep: what nothing else has caught
GPU_ACCELERATORS = ("auto", "gpu", "cuda")
CLAIMED: list[TextIO] = []  # the lock of the GPU that this process uses


def is_one_by_one(config: DictConfig) -> bool:
    """Return whether jobs run one after another in this process."""
    return str(config.hydra.launcher.get("_target_")) == ONE_BY_ONE


def is_parallel(hydra_config: Any) -> bool:
    """Return whether several jobs run on this machine at the same time. hydra_config: the node `hydra`."""
    return str(hydra_config.launcher.get("_target_")) == PARALLEL


@contextlib.contextmanager
def own_output(folder: Path) -> Iterator[None]:
    """Let a job, its processes and its libraries write to a file in its folder instead of the terminal."""
    with (folder / OUTPUT).open("a", encoding="utf-8", buffering=1) as file, descriptors_to(folder / OUTPUT, STANDARD):
        handlers = stream_handlers()
        streams = [handler.setStream(file) for handler in handlers]
        try:
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield
        finally:
            for handler, stream in zip(handlers, streams, strict=True):
                handler.setStream(stream or sys.stderr)


def num_gpus(config: DictConfig) -> int:
    """Return how many GPUs the jobs of a sweep share; 0 if they use none, or if each job uses several."""
    trainer = config.trainer
    if trainer.get("accelerator") not in GPU_ACCELERATORS or trainer.get("devices") != 1:
        return 0
    import torch

    return torch.cuda.device_count()  # does not initialize CUDA


def jobs_at_a_time(num_jobs: int) -> int:
    """Return the number of jobs that hydra.launcher.n_jobs means: -1 is one for every core, -2 one less."""
    return num_jobs if num_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + num_jobs)


def check_gpus(config: DictConfig) -> None:
    """Raise UserError if more jobs would run at a time than the machine has GPUs."""
    if not is_parallel(config.hydra) or not (count := num_gpus(config)):
        return
    num_jobs = config.hydra.launcher.n_jobs
    if jobs_at_a_time(num_jobs) > count:
        raise UserError(
            f"hydra.launcher.n_jobs={num_jobs} means {jobs_at_a_time(num_jobs)} jobs at a time, and the machine has "
            f"{count} GPUs; set hydra.launcher.n_jobs={count}, or trainer=cpu"
        )


def claim_gpu(folder: Path, count: int) -> None:
    """Make a GPU that no other worker of the sweep uses the only one that this process sees.

    A worker uses the same GPU for all its jobs. Call this function before CUDA is initialized.

    folder: of the sweep; count: the number of GPUs of the machine.
    """
    if CLAIMED or count == 0:
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(number) for number in range(count)]
    for name in names:
        lock = locks.take(folder / f".gpu-{name}.lock")
        if lock is None:
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = name
        CLAIMED.append(lock)  # the lock lasts as long as this process
        return
    raise RunError(f"other jobs of {folder} use all {count} GPUs; run fewer jobs at a time")
