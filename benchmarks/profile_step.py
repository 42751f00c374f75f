"""Profile a training step: python benchmarks/profile_step.py task=sentiment model=small (--help lists all options).

Lightning reports the begin and the end of each part of a step, and hooks do the same for the network's parts. The
processor time of a part does not include the parts inside it. A second table shows the operations that take the most
time, from torch.profiler. The script uses one CPU thread unless threads= is given. It does not suit a GPU, which works
asynchronously, so that its time would be attributed to the part in which the CPU waits for it.
"""

import re
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from lightning.pytorch import Callback
from lightning.pytorch.profilers import Profiler
from measure import show, train, versions
from torch import nn

from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.block import FeedForward, GatedFeedForward, LinearFeedForward

ELSEWHERE = "Lightning's loop and the rest"
ACTIONS = {  # Lightning's names of the parts of a step, and the names in the table; the first match is used
    r"dataloader|batch_to_device|batch_transfer|transfer_batch": "batch",
    r"training_step$": "loss",
    r"backward": "backward",
    r"clip": "clipping",
    r"zero_grad|optimizer_step|configure_optimizers": "optimizer",
    r"lr_scheduler_step": "schedule",
    r"Callback|Logger|log": "callbacks and logging",
}
NORMS = (nn.LayerNorm, nn.RMSNorm)
FEED_FORWARDS = (FeedForward, GatedFeedForward, LinearFeedForward)


@dataclass
class Options:
    """Options of the profile."""

    overrides: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    """Changes to the configuration, as for src/train.py."""
    steps: int = 200
    """Number of steps that are timed."""
    operations: int = 8
    """Number of lines of the table of operations. 0: no table."""


class Parts(Profiler):
    """Profiler of the processor seconds of each part, without the parts inside it, while it is switched on."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.is_on = False
        self._open: list[str] = []
        self._since = 0.0

    def start(self, action_name: str) -> None:
        """Enter the part of a Lightning action. An action without a part counts as the part around it."""
        inherited = self._open[-1] if self._open else ELSEWHERE
        self.enter(next((ours for theirs, ours in ACTIONS.items() if re.search(theirs, action_name)), inherited))

    def stop(self, action_name: str) -> None:
        """Leave the part of a Lightning action."""
        self.leave()

    def enter(self, part: str) -> None:
        """Count the time from now on for this part."""
        self._account()
        self._open.append(part)

    def leave(self) -> None:
        """Count the time from now on for the part around the current one."""
        self._account()
        self._open.pop()

    def _account(self) -> None:
        now = time.process_time()
        if self.is_on:
            self.seconds[self._open[-1] if self._open else ELSEWHERE] += now - self._since
        self._since = now

    def watch(self, network: nn.Module) -> None:
        """Count the parts of a network separately."""
        for name, module in network.named_modules():
            if part := forward_part(name, module):
                module.register_forward_pre_hook(lambda *_, part=part: self.enter(part))
                module.register_forward_hook(lambda *_: self.leave())


def forward_part(name: str, module: nn.Module) -> str | None:
    """Return the name under which a module of a network is counted, or None."""
    if not name:
        return "forward: the rest"
    if isinstance(module, MultiHeadAttention):
        return "forward: attention"
    if isinstance(module, FEED_FORWARDS):
        return "forward: feed-forward"
    if isinstance(module, NORMS):
        return "forward: norms"
    if isinstance(module, nn.Dropout):
        return "forward: dropout"
    if isinstance(module, nn.Embedding) and "positions" not in name:
        return "forward: embedding"
    return "forward: head" if name in ("head", "pool", "pooling") else None


class Steps(Callback):
    """Callback that runs some warm-up steps, the steps that are timed, and ten steps for torch.profiler."""

    def __init__(self, parts: Parts, options: Options) -> None:
        self.parts, self.options = parts, options
        self.operations = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        self.first = 20
        self.last = self.first + options.steps
        self.end = self.last + 10 * (options.operations > 0)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.parts.watch(pl_module.network)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        step = trainer.global_step
        if step == self.first:
            self.parts.is_on = True
        if step == self.last:
            self.parts.is_on = False
            if self.options.operations:
                self.operations.start()
        if step == self.end and self.options.operations:
            self.operations.stop()


def main() -> None:
    """Profile a training, and print the results."""
    options = tyro.cli(Options)
    parts = Parts()
    steps = Steps(parts, options)
    own = ["threads=1", *options.overrides, f"trainer.max_steps={steps.end}"]
    with tempfile.TemporaryDirectory() as folder:
        record = train(own, Path(folder) / "run", {"trainer.profiler": parts, "callbacks.steps": steps})
    total = sum(parts.seconds.values())
    step = f"{1e3 * total / options.steps:.2f} processor ms a step"
    print(f"{' '.join(options.overrides)}: {step}; {versions(record['threads'])}")
    ranked = sorted(parts.seconds.items(), key=lambda item: -item[1])
    rows = [(name, f"{spent / total:.1%}", f"{1e3 * spent / options.steps:.3f}") for name, spent in ranked]
    show("parts of a step", ["part", "share", "ms"], rows)
    if options.operations:
        show_operations(steps.operations, options.operations)


def show_operations(profile: torch.profiler.profile, most: int) -> None:
    """Print the operations of torch that took the most time themselves."""
    events = sorted(profile.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    rows = [(event.key, f"{event.self_cpu_time_total / total:.1%}", event.count // 10) for event in events[:most]]
    show("operations, by torch.profiler (which slows small ones)", ["operation", "share", "a step"], rows)


if __name__ == "__main__":
    main()
