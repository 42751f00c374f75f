"""Measure the training speed on a GPU: python benchmarks/gpu.py [data.source=sample …] (--help lists all options).

A network of each kind, and a larger generator, are trained unchanged, compiled, with CUDA graphs, in bfloat16, and in
bfloat16 compiled. The results are tokens per second and the share of the device's peak. If Lightning has no peak for
the device, it is the speed of a large product of matrices. With --jobs-per-gpu 1 2 4 …, sweeps with that number of jobs
at a time on one GPU are timed, too.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from lightning.fabric.utilities.throughput import get_available_flops
from lightning.pytorch import Callback
from measure import ROOT, show, train, versions

SIZES = {
    "names": ["task=names", "model=tiny"],
    "tiny": ["task=shakespeare", "model=tiny"],
    "large": ["task=shakespeare", "model=large", "context_length=256", "data.batch_size=64"],
    "sentiment": ["task=sentiment", "model=small"],
    "masked words": ["task=masked_reviews", "model=small"],
    "translation": ["task=translation", "model=small"],
}
VARIANTS = {
    "eager": [],
    "compiled": ["compile=true"],
    "CUDA graphs": ["compile=true", "compile_mode=reduce-overhead"],
    "bfloat16": ["trainer.precision=bf16-mixed"],
    "bfloat16, compiled": ["trainer.precision=bf16-mixed", "compile=true"],
}


@dataclass
class Options:
    """Options of the measurement."""

    overrides: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    """Changes to the configuration, as for src/train.py."""
    device: Literal["cuda", "cpu"] = "cuda"
    """The device. "cpu" runs the same code without a GPU, but its results do not apply to GPUs."""
    sizes: tuple[str, ...] = tuple(SIZES)
    """The networks: a classifier, generators of three sizes, a masked model, and a translator."""
    variants: tuple[str, ...] = tuple(VARIANTS)
    """The variants of the training. All others are compared with the first."""
    steps: int = 200
    """Number of steps that are timed."""
    warmup_steps: int = 20
    """Number of earlier steps, in which kernels are chosen and compiled."""
    repeats: int = 3
    """Number of turns. The results are medians of the turns."""
    jobs_per_gpu: tuple[int, ...] = ()
    """Numbers of jobs that share the GPU in a sweep. Each sweep has twice as many jobs, and at least eight."""


class Stopwatch(Callback):
    """Callback that measures the seconds between two steps, after the device has finished its work."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.times: list[float] = []
        self.tokens = 0

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.first < trainer.global_step <= self.last:
            self.tokens += batch.num_tokens
        if trainer.global_step in (self.first, self.last):
            if pl_module.device.type == "cuda":
                torch.cuda.synchronize()
            self.times.append(time.perf_counter())


def main() -> None:
    """Measure, and print the results."""
    options = tyro.cli(Options)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("this machine has no GPU; use --device cpu to run the same code without one", file=sys.stderr)
        sys.exit(2)
    for given, known in ((options.sizes, SIZES), (options.variants, VARIANTS)):
        if unknown := [name for name in given if name not in known]:
            print(f"error: {unknown[0]!r} is not one of {', '.join(known)}", file=sys.stderr)
            sys.exit(2)
    name = torch.cuda.get_device_name() if options.device == "cuda" else "the CPU"
    print(f"{name}; {versions()}")
    for size in options.sizes:
        runs: dict[str, list[tuple[float, float]]] = {variant: [] for variant in options.variants}
        for _ in range(options.repeats):
            for variant, found in runs.items():
                found.append(tokens_and_flops_per_second([*SIZES[size], *VARIANTS[variant]], options))
        first = statistics.median(rate for rate, _ in runs[options.variants[0]])
        rows = []
        for variant, found in runs.items():
            rate, flops = (statistics.median(column) for column in zip(*found, strict=True))
            dtype = torch.bfloat16 if variant.startswith("bfloat16") else torch.float32
            share = flops / peak_flops(torch.device(options.device), dtype)
            rows.append((variant, f"{rate:,.0f}", f"{rate / first:.2f}", f"{share:.1%}"))
        show(f"{size}: {' '.join(SIZES[size])}", ["variant", "tokens/s", "ratio", "of the peak"], rows)
    if options.jobs_per_gpu:
        show_sweeps(options)


def show_sweeps(options: Options) -> None:
    """Time a sweep for each number of jobs that share the GPU, and print a table."""
    rows = []
    accelerator = "gpu" if options.device == "cuda" else "cpu"
    common = ["hydra/launcher=joblib", *SIZES["names"], *options.overrides, "test=false"]
    common += [f"trainer.max_steps={options.steps}", f"trainer.accelerator={accelerator}"]
    for number in options.jobs_per_gpu:
        jobs = max(8, 2 * number)
        places = f"hydra.launcher.{'jobs_per_gpu' if options.device == 'cuda' else 'n_jobs'}={number}"
        with tempfile.TemporaryDirectory() as folder:
            sweep = ["-m", *common, places, f"paths.log_dir={folder}", "seed=" + ",".join(map(str, range(1, jobs + 1)))]
            command = [sys.executable, str(ROOT / "src" / "train.py"), *sweep]
            started_at = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
            wall = time.perf_counter() - started_at
        rows.append((str(number), str(jobs), f"{wall:.1f}", f"{60 * jobs / wall:.1f}"))
    title = f"sweeps of {' '.join(SIZES['names'])}, {options.steps} steps each"
    show(title, ["jobs per GPU", "jobs", "wall seconds", "jobs a minute"], rows)


def tokens_and_flops_per_second(overrides: list[str], options: Options) -> tuple[float, float]:
    """Return the tokens and the floating-point operations per second of one training."""
    last = options.warmup_steps + options.steps
    accelerator = "gpu" if options.device == "cuda" else "cpu"
    own = [f"trainer.max_steps={last}", f"trainer.accelerator={accelerator}"]
    stopwatch = Stopwatch(options.warmup_steps, last)
    with tempfile.TemporaryDirectory() as folder:
        record = train([*overrides, *options.overrides, *own], Path(folder) / "run", {"callbacks.stopwatch": stopwatch})
    started_at, ended_at = stopwatch.times
    rate = stopwatch.tokens / (ended_at - started_at)
    return rate, rate * record["flops"] / record["tokens"]


def peak_flops(device: torch.device, dtype: torch.dtype) -> float:
    """Return Lightning's peak for the device or, if it has none, the speed of a large product of matrices."""
    known = get_available_flops(device, dtype) if device.type == "cuda" else None
    if known:
        return float(known)
    size = 4096 if device.type == "cuda" else 512
    matrix = torch.randn(size, size, device=device, dtype=dtype)
    times = []
    for _ in range(10):
        started_at = time.perf_counter()
        matrix @ matrix
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started_at)
    return 2 * size**3 / min(times)


if __name__ == "__main__":
    main()
