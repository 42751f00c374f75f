"""Lightning's loop with the default bar, loggers, metrics and checkpoints against a loop in plain PyTorch.

    python benchmarks/loop.py [--pairs 9] [--steps 100] [task=stars model=medium …]
    python benchmarks/loop.py --against gpt [model.dim=128 …]

Against `bare`, both loops have the same batches, network, fused optimizer, schedule and clipping. Against `gpt`, the
other side is a GPT-2 in plain PyTorch (plain_gpt.py) with the loop that goes with it, and ours is set to that network.
In one process and one after the other, block by block, so that a machine whose speed drifts slows both. Prints the
median of the pairs' ratios, and the ratio of the fastest blocks, which others on the machine disturbed least.
"""

import os
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
import tyro
from lightning.pytorch import Callback
from measure import built, composed, show, versions
from plain_gpt import GPT_2, PlainGPTLoop

from firstlight.data.table_data import TableData
from firstlight.data.tables import TokenBatch
from firstlight.lit.losses import classification_loss
from firstlight.lit.optimizers import build_optimizer

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
    threads: int = 1
    """CPU threads of torch."""


class BareLoop:
    """What Lightning is compared with: nothing but the training."""

    def __init__(self, module: Any, data: TableData, clip: float | None, total_steps: int) -> None:
        self.network, self.data, self.clip = module.network, data, clip
        self.optimizer = build_optimizer(self.network, module.optimizer_factory)
        self.scheduler = module.schedule_factory(self.optimizer, total_steps)

    def run(self, batches: list[Any]) -> float:
        """Train on the batches; returns the seconds."""
        started_at = time.perf_counter()
        for indices in batches:
            loss = self.loss(self.data.table(indices))
            self.optimizer.zero_grad()
            loss.backward()
            if self.clip is not None:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
            self.optimizer.step()
            self.scheduler.step()
        return time.perf_counter() - started_at

    def loss(self, batch: Any) -> torch.Tensor:
        """What the task's LightningModule minimizes."""
        if isinstance(batch, TokenBatch):
            return F.cross_entropy(self.network(batch.token_ids).flatten(0, 1), batch.targets.flatten())
        return classification_loss(self.network(batch.token_ids, batch.padding_mask), batch.targets)


class AlternateBlocks(Callback):
    """After each block of Lightning's steps, a block of the other loop on the very same batches."""

    def __init__(self, other: BareLoop | PlainGPTLoop, data: TableData, options: Options) -> None:
        self.other, self.options = other, options
        self.pairs: list[tuple[float, float]] = []  # Lightning, the other
        self.batches: list[Any] = []
        self.started_at = 0.0
        self._record_indices(data)

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
        other = self.other.run(self.batches)
        if step:
            self.pairs.append((seconds, other))
        self.batches = ahead
        self.started_at = time.perf_counter()


def main() -> None:
    """Measure and print."""
    options = tyro.cli(Options)
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        pairs = measure(options, Path(folder))
    ratios = [lightning / other for lightning, other in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4)
    rows = []
    for name, times in zip(("Lightning", options.against), zip(*pairs, strict=True), strict=True):
        milliseconds = [1e3 * time / options.steps for time in times]
        rows.append((name, f"{statistics.median(milliseconds):.2f}", f"{min(milliseconds):.2f}"))
    fastest = min(lightning for lightning, _ in pairs) / min(other for _, other in pairs)
    rows.append(("ratio", f"{middle:.3f} (half of them {low:.3f} to {high:.3f})", f"{fastest:.3f}"))
    print(versions(options.threads))
    title = f"{' '.join(options.overrides)} {options.pairs} pairs of {options.steps} steps".strip()
    show(title, ["", "median ms a step", "of the fastest block"], rows)


def measure(options: Options, folder: Path) -> list[tuple[float, float]]:
    """Seconds of each block: (Lightning, the other)."""
    total = WARM_UP_STEPS + options.pairs * options.steps
    gpt = GPT_2 if options.against == "gpt" else []
    config = composed([*gpt, *options.overrides, f"trainer.max_steps={total}"], folder)
    with terminal():
        parts = built(config, folder)
        clip = config.trainer.gradient_clip_val
        other: BareLoop | PlainGPTLoop
        if options.against == "gpt":
            other = PlainGPTLoop(parts.data, parts.module.network, config)  # type: ignore[arg-type]
        else:
            twin = built(config, folder)
            twin.module.train()
            other = BareLoop(twin.module, twin.data, clip, config.trainer.max_steps)
        alternate = AlternateBlocks(other, parts.data, options)
        parts.trainer.callbacks.append(alternate)  # type: ignore[attr-defined]
        parts.trainer.fit(parts.module, datamodule=parts.data)
    return alternate.pairs


class terminal:  # noqa: N801  (a context manager reads like a verb)
    """Give the progress bar a terminal to draw on, wherever this runs; what it draws is thrown away."""

    def __enter__(self) -> None:
        self.master, slave = os.openpty()
        self.stdout, sys.stdout = sys.stdout, os.fdopen(slave, "w")
        threading.Thread(target=self._drain, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        sys.stdout.close()
        sys.stdout = self.stdout

    def _drain(self) -> None:
        try:
            while os.read(self.master, 65536):
                pass
        except OSError:  # the other end was closed: Linux reports that as an error
            return


if __name__ == "__main__":
    main()
