"""`train --doctor`: whether a network can learn from its data, and which change of a setting helps it."""

import copy
import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import hydra
import torch
from hydra.utils import instantiate
from lightning.pytorch import Trainer
from omegaconf import DictConfig, OmegaConf
from torch.optim import AdamW

from firstlight.callbacks.checkpoint import ReseedEveryStep
from firstlight.config_files import CONFIG_NAME
from firstlight.data.batches import steps_of
from firstlight.data.table_data import RowData, TableData
from firstlight.lit.schedules import LONG_WARMUP, warmup_of
from firstlight.lit.training import Training
from firstlight.terminal_text import say
from firstlight.training.audit import Check, audit, first_rows, training_loss
from firstlight.training.build import build_module, new_network, number_of_epochs, prepared_data
from firstlight.training.terminal import FEW_ROWS

STEPS = 50  # of each trial
MOST_VALIDATION = 20  # batches
MEMORIZED_ROWS, MEMORIZING_STEPS, MEMORIZING_RATE = 4, 200, 3e-3
MEMORIZED = 0.1  # of the first loss
MARKS = {True: "ok  ", False: "FAIL", None: "-   "}
HELPS = 0.02  # share of the loss by which a change must lower it


def report(config: DictConfig) -> None:
    """Train a few steps of a checked config with one change each, check its network, and print what was found.

    Nothing is written. Raises UserError if the data or the network cannot be used.
    """
    data = prepared_data(config)
    module = new_module(config, data)
    batch = next(iter(data.train_dataloader()))
    checks = [*audit(module, batch, compiled=False), memorizes(module, batch), length(config, data)]
    changes = changes_of(config)
    losses = losses_of(changes, config, data)
    if best_of(losses) is None:
        more = rates_of(config, {"× 10": 10, "× 100": 100})
        changes |= more
        losses |= losses_of(more, config, data)
    rows = len(data.rows("validation")) if isinstance(data, RowData) else FEW_ROWS
    say(f"      {advice(changes, losses, rows)}")
    show(checks)


def new_module(config: DictConfig, data: TableData) -> Training:
    """Return the module of a config with the weights with which its training starts."""
    module: Any = build_module(config, new_network(config, data), data)
    return module


def memorizes(module: Training, batch: Any) -> Check:
    """Return whether a copy of a module learns a few rows by heart, as every network without a mistake can."""
    module = copy.deepcopy(module).eval()  # without dropout
    batch = first_rows(batch, MEMORIZED_ROWS)
    optimizer, losses = AdamW(module.parameters(), lr=MEMORIZING_RATE, weight_decay=0.0), []
    for step in range(MEMORIZING_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = MEMORIZING_RATE * min(1.0, (step + 1) / 20)
        optimizer.zero_grad()
        loss = training_loss(module, batch)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    text = (
        f"the loss of {MEMORIZED_ROWS} rows falls from {losses[0]:.3g} to {losses[-1]:.3g} in {MEMORIZING_STEPS} steps "
        f"of AdamW with a rate of {MEMORIZING_RATE}, not optimizer.lr"
    )
    if losses[-1] <= MEMORIZED * losses[0]:
        return Check("memorizing", True, text)
    return Check("memorizing", False, f"{text}; a network that cannot memorize them has a mistake, or is too small")


def length(config: DictConfig, data: TableData) -> Check:
    """Return whether the warm-up is short beside the complete training."""
    steps = complete_steps(config, data)
    warmup = warmup_of(config.schedule.get("warmup_steps", 0), steps)
    text = f"{steps:,} steps, of which {warmup:,} are the warm-up"
    if steps < 1 or warmup <= LONG_WARMUP * steps:
        return Check("length", True, text)
    return Check("length", False, f"{text}; raise epochs or set schedule.warmup_steps={steps // 10}")


def complete_steps(config: DictConfig, data: TableData) -> int:
    """Return the number of steps of the complete training."""
    trainer = config.trainer.copy()
    trainer.max_epochs = number_of_epochs(config, data)
    return steps_of(trainer, len(data.train_dataloader()))


def changes_of(config: DictConfig) -> dict[str, dict[str, float]]:
    """Return the trials by name, each with the values that it changes. The first one changes nothing."""
    changes: dict[str, dict[str, float]] = {"as configured": {}}
    factors = {"× 3": 3.0, "÷ 3": 1 / 3}
    default, lr = default_rate(config), config.optimizer.get("lr")
    if default and lr and default != lr:
        name = f"× {default / lr:,.4g}" if default > lr else f"÷ {lr / default:,.4g}"
        factors[f"{name}, the default"] = default / lr
    changes |= rates_of(config, factors)
    dropouts = {
        f"model.{key}": 0.0
        for key, value in config.model.items()
        if str(key).endswith("dropout") and isinstance(value, float) and value
    }
    if dropouts:
        changes["no dropout"] = dropouts
    if config.schedule.get("warmup_steps"):
        changes["no warm-up"] = {"schedule.warmup_steps": 0}
    return changes


def rates_of(config: DictConfig, factors: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return trials with multiples of the learning rate, {} for an optimizer without one. factors: by their names."""
    lr = config.optimizer.get("lr")
    return {f"learning rate {name}": {"optimizer.lr": factor * lr} for name, factor in factors.items()} if lr else {}


def default_rate(config: DictConfig) -> float | None:
    """Return the learning rate of a config without the override of it."""
    overrides = [each for each in config.hydra.overrides.task if each.partition("=")[0].lstrip("+") != "optimizer.lr"]
    return hydra.compose(CONFIG_NAME, overrides).optimizer.get("lr")


def losses_of(changes: Mapping[str, Mapping[str, float]], config: DictConfig, data: TableData) -> dict[str, float]:
    """Return the loss of each trial, and print it."""
    losses = {}
    for name, values in changes.items():
        losses[name] = loss_after_steps(config, values, data)
        say(f"      {name:<33} val/loss {losses[name]:.4f} after {STEPS} steps")
    return losses


def loss_after_steps(config: DictConfig, changes: Mapping[str, float], data: TableData) -> float:
    """Return the loss on the first validation batches after a short training, infinity if it is not finite.

    The schedule is that of the complete training, with its warm-up shortened in proportion.

    changes: values that replace those of the config, by their keys.
    """
    config = copy.deepcopy(config)
    for key, value in changes.items():
        OmegaConf.update(config, key, value)
    if "warmup_steps" in config.schedule:
        complete = complete_steps(config, data)
        warmup = warmup_of(config.schedule.warmup_steps, complete)
        config.schedule.warmup_steps = round(STEPS * min(1.0, warmup / complete))
    module = new_module(config, data)
    short = {"max_steps": STEPS, "max_epochs": -1, "min_epochs": None, "min_steps": None, "max_time": None}
    one_device = {"devices": 1, "strategy": "auto", "num_nodes": 1}
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "limit_val_batches": 0}
    callbacks = [ReseedEveryStep(config.seed)]
    trainer: Trainer = instantiate(config.trainer, **short, **one_device, **quiet, callbacks=callbacks, _convert_="all")
    trainer.fit(module, datamodule=data)
    module.eval()
    total, weight = 0.0, 0
    with torch.inference_mode():
        for batch in islice(data.val_dataloader(), MOST_VALIDATION):
            outputs, count = module.measure(batch)
            total, weight = total + float(outputs["loss"]) * count, weight + count
    return total / weight if math.isfinite(total) else math.inf


def best_of(losses: Mapping[str, float]) -> str | None:
    """Return the name of the change that lowers the loss most, None if none lowers it enough."""
    best = min(losses, key=losses.__getitem__)
    return best if losses[best] < (1 - HELPS) * losses["as configured"] else None


def advice(changes: Mapping[str, Mapping[str, float]], losses: Mapping[str, float], rows: int) -> str:
    """Return what the losses of the trials say, in one sentence. rows: the number of validation texts."""
    measured = f"after {STEPS} steps" + (f", of only {rows} texts," if rows < FEW_ROWS else "")
    best = best_of(losses)
    if best is None:
        remedy = "docs/learning.md says what to try"
        return f"no change lowers the loss {measured} by {100 * HELPS:.0f}% or more (one seed); {remedy}"
    overrides = " ".join(f"{key}={value:.3g}" for key, value in changes[best].items())
    share = 100 * (1 - losses[best] / losses["as configured"])
    return f"{best} helps most: the loss {measured} is {share:.0f}% lower; try {overrides}"


def show(checks: Sequence[Check]) -> None:
    """Print a line for each check. Raise SystemExit with code 1 if one has failed."""
    for each in checks:
        say(f"{MARKS[each.passed]}  {each.name:<12}{each.found}")
    if any(each.passed is False for each in checks):
        raise SystemExit(1)
