"""Lightning's loop with the default bar, loggers, metrics and checkpoints against a loop in plain PyTorch.

    python benchmarks/loop.py [--pairs 9] [--steps 100] [task=stars model=medium …]
    python benchmarks/loop.py --against gpt [model.dim=128 …]

Against `bare`, both loops have the same batches, network, fused optimizer, schedule and clipping. Against `gpt`, the
other side is a GPT-2 in plain PyTorch (plain_gpt.py) with the loop that goes with it, and ours is set to that network.
Lightning's side is a run of src/train.py without validation, on one CPU thread unless threads= says otherwise.
In one process and one after the other, block by block, so that a machine whose speed drifts slows both. Prints the
processor time and the wall time of a step, and the ratios of the pairs. Other work on the machine changes processor
time less.
"""

import copy
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
import tyro
from gpt_2 import GPT_2, plain_settings
from lightning.pytorch import Callback
from measure import show, train, versions
from plain_gpt import Training

from firstlight.data.tables import TokenBatch
from firstlight.lit.losses import classification_loss
from firstlight.lit.optimizers import build_optimizer
from firstlight.networks.size import num_parameters

WARM_UP_STEPS = 20


@dataclass
class Options:
    """What to compare."""

    overrides: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    """Changes to the configuration, as for src/train.py."""
    against: Literal["bare", "gpt"] = "bare"
    """What Lightning's loop is compared with."""
    pairs: int = 9
    """Pairs of blocks, one of each loop."""
    steps: int = 100
    """Optimizer steps in a block."""


class BareLoop:
    """The training of a module and nothing else, from a copy of its network."""

    def __init__(self, trainer: Any, module: Any) -> None:
        self.network, self.table = copy.deepcopy(module.network).train(), trainer.datamodule.table
        self.clip = trainer.gradient_clip_val
        self.optimizer = build_optimizer(self.network, module.optimizer_factory)
        self.scheduler = module.schedule_factory(self.optimizer, trainer.max_steps)

    def run(self, batches: list[Any]) -> None:
        """Train on the batches of indices."""
        for indices in batches:
            loss = self.loss(self.table(indices))
            self.optimizer.zero_grad()
            loss.backward()
            if self.clip is not None:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
            self.optimizer.step()
            self.scheduler.step()

    def loss(self, batch: Any) -> torch.Tensor:
        """What the task's LightningModule minimizes."""
        if isinstance(batch, TokenBatch):
            return F.cross_entropy(self.network(batch.token_ids).flatten(0, 1), batch.targets.flatten())
        return classification_loss(self.network(batch.token_ids, batch.padding_mask), batch.targets)


class PlainGPTLoop:
    """plain_gpt.py's training of the same network on the same text, on batches of its own."""

    def __init__(self, trainer: Any, module: Any) -> None:
        settings = plain_settings(Path(trainer.default_root_dir), trainer.datamodule, trainer.max_steps)
        self.training = Training(settings)
        theirs, ours = self.training.num_parameters, num_parameters(module.network)
        assert theirs == ours, f"{theirs} parameters against {ours}"

    def run(self, batches: list[Any]) -> None:
        """As many steps as there are batches."""
        self.training.run(len(batches), is_logged=False)


LOOPS: dict[str, type[BareLoop] | type[PlainGPTLoop]] = {"bare": BareLoop, "gpt": PlainGPTLoop}


@dataclass(frozen=True)
class Seconds:
    """Two clocks, or the time between two readings of them. processor: of this process and all its threads."""

    processor: float
    wall: float

    @classmethod
    def now(cls) -> "Seconds":
        return cls(time.process_time(), time.perf_counter())

    def since(self, start: "Seconds") -> "Seconds":
        return Seconds(self.processor - start.processor, self.wall - start.wall)


class AlternateBlocks(Callback):
    """After each block of Lightning's steps, a block of the other loop on as many batches, or on the very same."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.pairs: list[tuple[Seconds, Seconds]] = []  # of a block: Lightning, the other
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
    """Measure and print."""
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
    """A row for each loop and one for their ratio."""
    rows = []
    for name, blocks in zip(("Lightning", options.against), zip(*pairs, strict=True), strict=True):
        clocks = ([block.processor for block in blocks], [block.wall for block in blocks])
        rows.append((name, *(f"{1e3 * statistics.median(each) / options.steps:.2f}" for each in clocks)))
    ratios = (
        [one.processor / other.processor for one, other in pairs],
        [one.wall / other.wall for one, other in pairs],
    )
    return [*rows, ("ratio", *map(quartiles, ratios))]


def quartiles(ratios: list[float]) -> str:
    """The median, and between what half of them lie."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} (half of them {low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
