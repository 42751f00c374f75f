"""Compare two complete programs, src/train.py and one that trains as nanoGPT does (--help lists all options).

    python benchmarks/against.py

`plain_gpt.py` (a GPT-2 and its loop in plain PyTorch) and `src/train.py` train the same network, with the same number
of parameters, on the same text, with the same batch size, context and number of steps, on one CPU thread. Each runs
as a separate process on a terminal. They take turns, and the order changes with each turn. Neither runs a validation.
Both read encoded ids: src/train.py from its cache, plain_gpt.py from a file that is written from this cache.

The script prints the processor time of a step of the training loop, from each program's record, and the processor
time of the complete command, including its start-up, from the operating system. Other work on the machine changes
both less than wall time. The losses show only that both programs learn, since initial weights and batches differ.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from gpt_2 import GPT_2, plain_settings
from lightning.pytorch import Callback
from measure import NOTHING_EVALUATED, ROOT, ratio, show, terminal, train, versions
from plain_gpt import Settings, flag

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


def compare(overrides: list[str], folder: Path, options: Options) -> list[tuple[Measured, Measured]]:
    """Return pairs of trainings: (src/train.py, plain_gpt.py)."""
    overrides = [*GPT_2, *overrides]
    prepare = Prepare(options.steps)
    record = train([*overrides, "trainer.max_steps=1"], folder / "first", {"callbacks.prepare": prepare})
    pairs = []
    for number in range(options.pairs):
        ours, plain = folder / f"ours{number}", folder / f"plain{number}.json"
        works = {
            "ours": lambda: train_ours([*overrides, f"trainer.max_steps={options.steps}"], ours),  # noqa: B023
            "plain": lambda: train_plain(prepare.settings, record["threads"], plain),  # noqa: B023
        }
        done = {name: works[name]() for name in sorted(works, reverse=bool(number % 2))}
        pairs.append((done["ours"], done["plain"]))
    mine, theirs = pairs[0]
    assert (mine.parameters, mine.threads) == (theirs.parameters, theirs.threads), f"{mine} and {theirs} differ in size"
    return pairs


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


def train_plain(settings: Settings, threads: int, file: Path) -> Measured:
    """Return the times of a run of plain_gpt.py."""
    values = {name: str(value) for name, value in asdict(settings).items()}
    command = [str(ROOT / "benchmarks" / "plain_gpt.py"), values.pop("text")]
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


def processor_seconds(command: Sequence[str]) -> float:
    """Run a Python program on a terminal, and return the processor time of its process in user and system mode."""
    with terminal() as screen, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([sys.executable, *command], stdout=screen, stderr=errors)  # noqa: S603
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            print(errors.read(), end="", file=sys.stderr)
            sys.exit(1)
    return usage.ru_utime + usage.ru_stime


def report(title: str, pairs: list[tuple[Measured, Measured]]) -> None:
    """Print a table of the medians, and the ratios of the pairs."""
    rows = []
    for name, each in zip(("src/train.py", "plain_gpt.py"), zip(*pairs, strict=True), strict=True):
        step, command, wall, loss = (
            statistics.median(getattr(one, key) for one in each) for key in ("step", "command", "wall", "loss")
        )
        rows.append((name, f"{1e3 * step:.2f}", f"{1e3 * wall:.2f}", f"{command:.1f}", f"{loss:.3f}"))
    ratios = [
        ratio([getattr(ours, key) for ours, _ in pairs], [getattr(plain, key) for _, plain in pairs])
        for key in ("step", "wall", "command")
    ]
    mine, _ = pairs[0]
    print(
        f"{mine.parameters:,} parameters, {len(pairs)} pairs; {versions(mine.threads)}; load {os.getloadavg()[0]:.1f}"
    )
    columns = ["", "processor ms a step", "wall ms a step", "processor s of the command", "last training loss"]
    show(title, columns, [*rows, ("ratio", *ratios, "")])


if __name__ == "__main__":
    main()
