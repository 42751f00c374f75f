"""Lightning's loop with the default bar, loggers, metrics and checkpoints against a loop in plain PyTorch.

    python benchmarks/loop.py [--pairs 9] [--steps 100] [task=stars model=medium …]
    python benchmarks/loop.py --against gpt [model.dim=128 …]

Against `bare`, both loops have the same batches, network, fused optimizer, schedule and clipping. Against `gpt`, the
other side is a GPT-2 in plain PyTorch (plain_gpt.py) with the loop that goes with it, and ours is set to that network.
Lightning's side is a run of src/train.py without validation, on one CPU thread unless threads= says otherwise.
In one process and one after the other, block by block, so that a machine whose speed drifts slows both. Prints the
median of the pairs' ratios, and the ratio of the fastest blocks, which others on the machine disturbed least.
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


class AlternateBlocks(Callback):
    """After each block of Lightning's steps, a block of the other loop on as many batches, or on the very same."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.pairs: list[tuple[float, float]] = []  # seconds of a block: Lightning, the other
        self.batches: list[Any] = []
        self.started_at = 0.0

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
        seconds = time.perf_counter() - self.started_at
        self.batches, ahead = self.batches[: self.options.steps], self.batches[self.options.steps :]
        started_at = time.perf_counter()
        self.other.run(self.batches)
        if step:
            self.pairs.append((seconds, time.perf_counter() - started_at))
        self.batches = ahead
        self.started_at = time.perf_counter()


def main() -> None:
    """Measure and print."""
    options = tyro.cli(Options)
    gpt = GPT_2 if options.against == "gpt" else []
    total = WARM_UP_STEPS + options.pairs * options.steps
    overrides = [*gpt, "threads=1", *options.overrides, f"trainer.max_steps={total}"]
    blocks = AlternateBlocks(options)
    with tempfile.TemporaryDirectory() as folder:
        record = train(overrides, Path(folder) / "run", {"callbacks.blocks": blocks})
    pairs = blocks.pairs
    ratios = [lightning / other for lightning, other in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    rows = []
    for name, times in zip(("Lightning", options.against), zip(*pairs, strict=True), strict=True):
        milliseconds = [1e3 * time / options.steps for time in times]
        rows.append((name, f"{statistics.median(milliseconds):.2f}", f"{min(milliseconds):.2f}"))
    fastest = min(lightning for lightning, _ in pairs) / min(other for _, other in pairs)
    rows.append(("ratio", f"{middle:.3f} (half of them {low:.3f} to {high:.3f})", f"{fastest:.3f}"))
    print(versions(record["threads"]))
    title = f"{' '.join(options.overrides)} {options.pairs} pairs of {options.steps} steps".strip()
    show(title, ["", "median ms a step", "of the fastest block"], rows)


if __name__ == "__main__":
    main()
