"""What a job has to mind because of how Hydra launched it: its GPU, and who may write on the terminal."""

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
CLAIMED: list[TextIO] = []  # the lock of the GPU that this process has


def is_one_by_one(config: DictConfig) -> bool:
    """Whether jobs run one after another in this process, which leaves time to say how each went."""
    return str(config.hydra.launcher.get("_target_")) == ONE_BY_ONE


def is_parallel(hydra_config: Any) -> bool:
    """Whether a job is one of several that run on this machine at the same time; hydra_config: the node `hydra`."""
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
    """How many GPUs the jobs of a sweep may share; 0 where they use none, or each takes more than one for itself."""
    trainer = config.trainer
    if trainer.get("accelerator") not in GPU_ACCELERATORS or trainer.get("devices") != 1:
        return 0
    import torch

    return torch.cuda.device_count()  # which does not initialise CUDA


def jobs_at_a_time(num_jobs: int) -> int:
    """What hydra.launcher.n_jobs means, as joblib counts: -1 is a job for every core, -2 for all but one."""
    return num_jobs if num_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + num_jobs)


def check_gpus(config: DictConfig) -> None:
    """Raise UserError if more jobs would run at a time than there are GPUs for them."""
    if not is_parallel(config.hydra) or not (count := num_gpus(config)):
        return
    num_jobs = config.hydra.launcher.n_jobs
    if jobs_at_a_time(num_jobs) > count:
        raise UserError(
            f"hydra.launcher.n_jobs={num_jobs} is {jobs_at_a_time(num_jobs)} jobs at a time, and there are {count} "
            f"GPUs; set hydra.launcher.n_jobs={count}, or trainer=cpu"
        )


def claim_gpu(folder: Path, count: int) -> None:
    """Make one of the machine's GPUs the only one that this process sees, if no other worker of the sweep has it.

    folder: of the sweep; count: of GPUs. A worker keeps its GPU for all its jobs. Call it before CUDA is initialised.
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
    raise RunError(f"all {count} GPUs are taken by other jobs of {folder}; start fewer at a time")
