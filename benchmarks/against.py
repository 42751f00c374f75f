"""Compare two complete programs, src/train.py and one that trains as nanoGPT does (--help lists all options).

    python benchmarks/against.py
    python benchmarks/against.py --others encoder trainer --nanogpt FOLDER

`plain_gpt.py` (a GPT-2 and its loop in plain PyTorch) and `src/train.py` train the same network, with the same number
of parameters, on the same text, with the same batch size, context and number of steps, on one CPU thread. Each runs
as a separate process on a terminal. They take turns, and the order changes with each turn. Neither runs a validation.
Both read encoded ids: src/train.py from its cache, plain_gpt.py from a file that is written from this cache.

The script prints the processor time of a step of the training loop, from each program's record, and the processor
time of the complete command, including its start-up, from the operating system. Other work on the machine changes
both less than wall time. The losses show only that both programs learn, since initial weights and batches differ.

`--others` takes the programs of other_programs.py into the turns, and `--nanogpt` the train.py of a clone of
github.com/karpathy/nanoGPT, which validates once at its beginning. A step of nanoGPT is the difference between a long
and a short training, divided by the number of steps.
"""

import json
import os
import pickle  # only to write a file for nanoGPT
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from gpt_2 import GPT_2, plain_settings
from lightning.pytorch import Callback
from measure import NOTHING_EVALUATED, ROOT, ratio, show, terminal, train, versions
from plain_gpt import Settings, flag

OURS = "src/train.py"
SIZES = {
    "nanogpt": ["model=medium", "data.batch_size=12"],  # nanoGPT's setting for a CPU: dim 128, 4 blocks, 12 × 64
    "tiny": ["model=tiny", "data.batch_size=32"],  # as task=shakespeare: dim 32, 3 blocks, 32 × 64
}


@dataclass
class Options:
    """Options of the comparison."""

    overrides: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    """Changes to the configuration of all sizes, as for src/train.py."""
    sizes: tuple[str, ...] = tuple(SIZES)
    """The sizes of the network and its batches that are compared."""
    pairs: int = 5
    """Number of trainings of each program."""
    steps: int = 400
    """Number of optimizer steps of a training."""
    others: tuple[str, ...] = ()
    """Programs of other_programs.py: encoder, trainer."""
    nanogpt: Path | None = None
    """A clone of nanoGPT."""


@dataclass(frozen=True)
class Measured:
    """The times of a training, in seconds of the processor. step: of a step of its loop; command: of its process."""

    step: float
    command: float
    wall: float  # seconds of a step
    loss: float
    parameters: int
    threads: int


class Prepare(Callback):
    """Callback of the first training that writes the text for plain_gpt.py and stores the settings."""

    settings: Settings

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.settings = plain_settings(Path(trainer.default_root_dir), trainer.datamodule, self.steps)


def main() -> None:
    """Compare the programs, and print the results."""
    options = tyro.cli(Options)
    if unknown := [name for name in options.sizes if name not in SIZES]:
        print(f"error: {unknown[0]!r} is not one of {', '.join(SIZES)}", file=sys.stderr)
        sys.exit(2)
    for size in options.sizes:
        given = [*SIZES[size], "trainer.accelerator=cpu", "threads=1", *options.overrides]
        with tempfile.TemporaryDirectory() as folder:
            report(f"{size}: {' '.join([*SIZES[size], *options.overrides])}", compare(given, Path(folder), options))


def compare(overrides: list[str], folder: Path, options: Options) -> dict[str, list[Measured]]:
    """Return the trainings of each program, by its name."""
    overrides = [*GPT_2, *overrides]
    prepare = Prepare(options.steps)
    record = train([*overrides, "trainer.max_steps=1"], folder / "first", {"callbacks.prepare": prepare})
    plain, threads = prepare.settings, record["threads"]
    file, given = folder / "record.json", [*overrides, f"trainer.max_steps={options.steps}"]
    works: dict[str, Callable[[int], Measured]] = {
        OURS: lambda number: train_ours(given, folder / f"ours{number}"),
        "plain_gpt.py": lambda _: train_plain(["plain_gpt.py"], plain, threads, file),
    }
    for name in options.others:
        works[name] = lambda _, name=name: train_plain(["other_programs.py", name], plain, threads, file)  # type: ignore[misc]
    if options.nanogpt is not None:
        clone = prepared_clone(options.nanogpt, plain, folder)
        works["nanoGPT"] = lambda _: train_nanogpt(clone, plain, threads)
    found: dict[str, list[Measured]] = {name: [] for name in works}
    for number in range(options.pairs):
        for name in sorted(works, reverse=bool(number % 2)):
            found[name].append(works[name](number))
    mine, theirs = (found[name][0] for name in (OURS, "plain_gpt.py"))
    assert (mine.parameters, mine.threads) == (theirs.parameters, theirs.threads), f"{mine} and {theirs} differ in size"
    return found


def train_ours(overrides: list[str], folder: Path) -> Measured:
    """Return the times of a run of src/train.py."""
    command = [str(ROOT / "src" / "train.py"), *NOTHING_EVALUATED, *overrides, f"hydra.run.dir={folder}"]
    processor = processor_seconds(command)
    record = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    lines = map(json.loads, (folder / "history.jsonl").read_text(encoding="utf-8").splitlines())
    losses = [line["train/loss"] for line in lines if "train/loss" in line]
    steps, seconds = record["steps"], record["seconds"]
    return Measured(
        step=seconds["fit_processor"] / steps,
        command=processor,
        wall=seconds["fit"] / steps,
        loss=losses[-1] if losses else float("nan"),  # a training shorter than a log interval has none
        parameters=record["parameters"],
        threads=record["threads"],
    )


def train_plain(program: list[str], settings: Settings, threads: int, file: Path) -> Measured:
    """Return the times of a run of plain_gpt.py, or of another program with its arguments. program: with its name."""
    values = {name: str(value) for name, value in asdict(settings).items()}
    command = [str(ROOT / "benchmarks" / program[0]), *program[1:], values.pop("text")]
    command += [part for name, value in values.items() for part in (flag(name), value)]
    processor = processor_seconds([*command, "--threads", str(threads), "--record", str(file)])
    record = json.loads(file.read_text(encoding="utf-8"))
    return Measured(
        step=record["processor_seconds"] / record["steps"],
        command=processor,
        wall=record["wall_seconds"] / record["steps"],
        loss=record["loss"],
        parameters=record["parameters"],
        threads=record["threads"],
    )


def prepared_clone(nanogpt: Path, settings: Settings, folder: Path) -> Path:
    """Return a copy of nanoGPT's programs with the text of the settings as its data set."""
    clone = folder / "nanogpt"
    data = clone / "data" / "text"
    data.mkdir(parents=True)
    for name in ("train.py", "model.py", "configurator.py"):
        shutil.copy(nanogpt / name, clone)
    for name in ("train.bin", "val.bin"):
        (data / name).symlink_to(settings.text)
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": settings.vocab_size}))  # which its train.py reads
    return clone


def train_nanogpt(clone: Path, settings: Settings, threads: int) -> Measured:
    """Return the times of a run of nanoGPT's train.py."""
    sizes = {"n_layer": settings.num_layers, "n_head": settings.num_heads, "n_embd": settings.dim, "dropout": 0.0}
    sizes |= {"block_size": settings.context_length, "batch_size": settings.batch_size, "bias": True, "beta2": 0.99}
    rates = {"learning_rate": settings.learning_rate, "min_lr": settings.final_learning_rate}
    rates |= {"warmup_iters": settings.warmup_steps, "lr_decay_iters": settings.steps}
    given = {"dataset": "text", "device": "cpu", "compile": False, "eval_iters": 1, "eval_interval": 10**6}
    given |= {"gradient_accumulation_steps": 1, "always_save_checkpoint": False, **sizes, **rates}
    arguments = ["train.py", *(f"--{name}={value}" for name, value in given.items())]
    long, short = (
        processor_seconds([*arguments, f"--max_iters={steps}"], clone, threads) for steps in (settings.steps, 10)
    )
    step = (long - short) / (settings.steps - 10)
    return Measured(step, long, float("nan"), float("nan"), parameters=0, threads=threads)


def processor_seconds(command: Sequence[str], folder: Path | None = None, threads: int | None = None) -> float:
    """Run a Python program on a terminal, and return the processor time of its process in user and system mode."""
    environment = os.environ | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)})
    with terminal() as screen, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, *command], stdout=screen, stderr=errors, cwd=folder, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            print(errors.read(), end="", file=sys.stderr)
            sys.exit(1)
    return usage.ru_utime + usage.ru_stime


def report(title: str, found: dict[str, list[Measured]]) -> None:
    """Print a table of the medians, and the ratios of src/train.py to the others."""
    ours = found[OURS]
    rows = []
    for name, each in found.items():
        step, wall, command, loss = (
            statistics.median(getattr(one, key) for one in each) for key in ("step", "wall", "command", "loss")
        )
        ratios = [
            "" if each is ours else ratio([getattr(one, key) for one in ours], [getattr(one, key) for one in each])
            for key in ("step", "command")
        ]
        rows.append((name, f"{1e3 * step:.2f}", f"{1e3 * wall:.2f}", f"{command:.1f}", f"{loss:.3f}", *ratios))
    load = os.getloadavg()[0]
    print(f"{ours[0].parameters:,} parameters, {len(ours)} turns; {versions(ours[0].threads)}; load {load:.1f}")
    columns = ["", "processor ms a step", "wall ms a step", "processor s of the command", "last training loss"]
    show(title, [*columns, f"step: {OURS} / this", f"command: {OURS} / this"], rows)


if __name__ == "__main__":
    main()
