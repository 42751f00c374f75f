"""Compare Lightning's loop with the default bar, loggers, metrics and checkpoints with a loop in plain PyTorch.

    python benchmarks/loop.py [--pairs 9] [--steps 100] [task=stars model=medium …]
    python benchmarks/loop.py --against gpt [model.dim=128 …]

With `--against bare`, both loops have the same batches, training step, fused optimizer, schedule and clipping. With
`--against gpt`, the other side is a GPT-2 in plain PyTorch (plain_gpt.py) with its own loop, and Lightning trains the
same network. Lightning's side is a run of src/train.py without validation, on one CPU thread unless threads= is set.
The loops run in turns in one process, block by block, so that a change of the machine's speed affects both. The script
prints the processor time and the wall time of a step, and the ratios of the pairs. Other work on the machine changes
processor time less than wall time.
"""

import copy
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from gpt_2 import GPT_2, plain_settings
from lightning.pytorch import Callback
from measure import show, train, versions
from plain_gpt import Training

from firstlight.lit.optimizers import build_optimizer
from firstlight.networks.layers import num_parameters

WARM_UP_STEPS = 20


@dataclass
class Options:
    """Options of the comparison."""

    overrides: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    """Changes to the configuration, as for src/train.py."""
    against: Literal["bare", "gpt"] = "bare"
    """The loop that Lightning's loop is compared with."""
    pairs: int = 9
    """Number of pairs of blocks. A pair has a block of each loop."""
    steps: int = 100
    """Number of optimizer steps in a block."""


class BareLoop:
    """A bare training loop with the training step of a module and a copy of its network."""

    def __init__(self, trainer: Any, module: Any) -> None:
        self.module, self.table = copy.copy(module), trainer.datamodule.table
        self.module._modules = dict(module._modules)  # else both would have the same network
        self.module.network = copy.deepcopy(module.network).train()
        self.clip = trainer.gradient_clip_val
        self.optimizer = build_optimizer(self.module.network, module.optimizer_factory)
        self.scheduler = module.schedule_factory(self.optimizer, trainer.max_steps)

    def run(self, batches: list[Any]) -> None:
        """Train on the batches of indices."""
        for indices in batches:
            loss = self.module.training_step(self.table(indices))["loss"]
            self.optimizer.zero_grad()
            loss.backward()
            if self.clip is not None:
                torch.nn.utils.clip_grad_norm_(self.module.network.parameters(), self.clip)
            self.optimizer.step()
            self.scheduler.step()


class PlainGPTLoop:
    """The training of plain_gpt.py with the same network and text, but its own batches."""

    def __init__(self, trainer: Any, module: Any) -> None:
        settings = plain_settings(Path(trainer.default_root_dir), trainer.datamodule, trainer.max_steps)
        self.training = Training(settings)
        theirs, ours = self.training.num_parameters, num_parameters(module.network)
        assert theirs == ours, f"{theirs} parameters against {ours}"

    def run(self, batches: list[Any]) -> None:
        """Train for one step per batch."""
        self.training.run(len(batches), is_logged=False)


LOOPS: dict[str, type[BareLoop] | type[PlainGPTLoop]] = {"bare": BareLoop, "gpt": PlainGPTLoop}


@dataclass(frozen=True)
class Seconds:
    """The readings of two clocks, or a difference of readings. processor: of this process and all its threads."""

    processor: float
    wall: float

    @classmethod
    def now(cls) -> "Seconds":
        return cls(time.process_time(), time.perf_counter())

    def since(self, start: "Seconds") -> "Seconds":
        return Seconds(self.processor - start.processor, self.wall - start.wall)


class AlternateBlocks(Callback):
    """Callback that runs a block of the other loop after each block of Lightning's steps."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.pairs: list[tuple[Seconds, Seconds]] = []  # the times of a block: of Lightning, and of the other loop
        self.batches: list[Any] = []
        self.started_at = Seconds.now()

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.other = LOOPS[self.options.against](trainer, pl_module)
        self._record_indices(trainer.datamodule)

    def _record_indices(self, data: Any) -> None:
        look_up = data.on_after_batch_transfer

        def recording(batch: Any, dataloader_idx: int) -> Any:
            if isinstance(batch, data.index_batch):
                self.batches.append(batch)
            return look_up(batch, dataloader_idx)

        data.on_after_batch_transfer = recording

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        step = trainer.global_step - WARM_UP_STEPS
        if step < 0 or step % self.options.steps:
            return
        lightning = Seconds.now().since(self.started_at)
        self.batches, ahead = self.batches[: self.options.steps], self.batches[self.options.steps :]
        started_at = Seconds.now()
        self.other.run(self.batches)
        if step:
            self.pairs.append((lightning, Seconds.now().since(started_at)))
        self.batches = ahead
        self.started_at = Seconds.now()


def main() -> None:
    """Measure, and print the results."""
    options = tyro.cli(Options)
    gpt = GPT_2 if options.against == "gpt" else []
    total = WARM_UP_STEPS + options.pairs * options.steps
    overrides = [*gpt, "threads=1", *options.overrides, f"trainer.max_steps={total}"]
    blocks = AlternateBlocks(options)
    with tempfile.TemporaryDirectory() as folder:
        record = train(overrides, Path(folder) / "run", {"callbacks.blocks": blocks})
    print(versions(record["threads"]))
    title = f"{' '.join(options.overrides)} {options.pairs} pairs of {options.steps} steps".strip()
    show(title, ["median of the blocks", "processor ms a step", "wall ms a step"], table(blocks.pairs, options))


def table(pairs: list[tuple[Seconds, Seconds]], options: Options) -> list[tuple[str, ...]]:
    """Return a row for each loop, a row for their difference and a row for their ratio."""
    rows = []
    for name, blocks in zip(("Lightning", options.against), zip(*pairs, strict=True), strict=True):
        clocks = ([block.processor for block in blocks], [block.wall for block in blocks])
        rows.append((name, *(f"{1e3 * statistics.median(each) / options.steps:.2f}" for each in clocks)))
    ratios = (
        [one.processor / other.processor for one, other in pairs],
        [one.wall / other.wall for one, other in pairs],
    )
    differences = (
        [1e3 * (one.processor - other.processor) / options.steps for one, other in pairs],
        [1e3 * (one.wall - other.wall) / options.steps for one, other in pairs],
    )
    return [*rows, ("difference", *map(quartiles, differences)), ("ratio", *map(quartiles, ratios))]


def quartiles(values: list[float]) -> str:
    """Return the median and the quartiles as a text."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} (half of them {low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
