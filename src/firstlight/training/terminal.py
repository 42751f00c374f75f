"""What a run prints: its description at the start, its metrics and the next commands at the end."""

import logging
import math
import shlex
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from omegaconf import DictConfig
from rich.table import Table
from rich.text import Text

from firstlight.console import is_watched, one_console, terminal
from firstlight.invocation import invocation
from firstlight.kind.kind import Kind
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.lit.losses import expected_loss
from firstlight.runs import foreign
from firstlight.runs.folder import SAMPLE_NOTE, RunFolder, as_typed
from firstlight.terminal_text import Handler, say

log = logging.getLogger(__name__)

LABEL_WIDTH = 9  # columns
SAMPLE_MARK = "GENERATED SAMPLE, not real data"
FEW_ROWS = 50  # of a split; its metrics are rough
NOT_SAVED = "Interrupted before the first checkpoint; it starts again at step 0"


def one_console_of(config: DictConfig) -> AbstractContextManager[object]:
    """Print all of a run through one console; with quiet=true nothing but warnings and errors."""
    if config.quiet:
        for handler in logging.getLogger().handlers:
            if isinstance(handler, Handler):
                handler.setLevel(logging.WARNING)
    return one_console(quiet=config.quiet)


def preparing() -> AbstractContextManager[object]:
    """Show on a terminal that the run is being prepared, and remove that line at the end."""
    console = terminal()
    if console.quiet or not is_watched():
        return nullcontext()
    return console.status("Preparing the data and the network …")


def show_start(
    config: DictConfig, kind: Kind, folder: RunFolder, record: dict[str, Any], trainer: Trainer, first_step: int | None
) -> None:
    """Print what a run is, before its first step. first_step: the step from which it resumes; None for a new run."""
    data = record["data"]
    is_sample = data["source"] == "sample"
    experiment = record["experiment"]
    counts = data.get("rows") or data["tokens"]
    splits = "  ".join(f"{split} {count:,}" for split, count in counts.items() if count)
    classes = f"classes {', '.join(data['classes'])}" if data.get("classes") else ""
    meaning = data["labels"] if config.data.get("class_names") else classes  # names could be given in another order
    state = "new" if first_step is None else f"resumed at step {first_step}"
    threads = record["threads"]
    notes = [*more_epochs(config, trainer), *few_rows(data)]
    expected = expected_loss(len(data.get("classes", ())), data["vocab_size"])
    lines = {
        "task": record["task"] + (f"  experiment {experiment}" if experiment else ""),
        "data": str(data["path"]) + (f"  {SAMPLE_MARK}" if is_sample else ""),
        "rows" if "rows" in data else "tokens": f"{splits}  {meaning}".rstrip(),
        "network": f"{kind.noun}  {record['model']}  {record['parameters']:,} parameters",
        "loss": f"expected at initialization: {expected:.3f}" if kind.cross_entropy else "",
        "device": f"{device_of(trainer)}  {threads} thread{'' if threads == 1 else 's'}",
        "run": f"{state}  {as_typed(folder.path)}",
        "note": "; ".join(notes),
    }
    console = terminal()
    for label, text in lines.items():
        style = "bold yellow" if SAMPLE_MARK in text else ""
        if text:
            console.print(Text(f"{label:<{LABEL_WIDTH}}", style="bold").append(text, style=f"not bold {style}"))


def more_epochs(config: DictConfig, trainer: Trainer) -> list[str]:
    """Return a note if config.min_steps gives a training more epochs than config.epochs."""
    is_longer = config.trainer.max_epochs is None and (trainer.max_epochs or 0) > config.epochs
    return [f"{trainer.max_epochs} epochs in place of {config.epochs}, for min_steps={config.min_steps}"] * is_longer


def few_rows(data: dict[str, Any]) -> list[str]:
    """Return a note for each split whose metrics are rough, because it has few rows. data: that of a record."""
    notes = []
    for split in ("validation", "test"):
        if 0 < (count := data.get("rows", {}).get(split, 0)) < FEW_ROWS:
            weight = f"{100 / count:.0f}% of each metric"
            if data.get("classes"):
                weight = f"{100 / count:.0f} points of accuracy (95% interval: ± {98 / math.sqrt(count):.0f})"
            notes.append(f"{split} has {count} texts: one text is {weight}")
    return notes


def device_of(trainer: Trainer) -> str:
    """Return the devices of a trainer, such as `cpu` or `2 x NVIDIA H100`."""
    device = trainer.strategy.root_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return name if trainer.world_size == 1 else f"{trainer.world_size} x {name}"


def report(config: DictConfig, kind: Kind, folder: RunFolder, record: dict[str, Any]) -> None:
    """Print the end of a run: its metrics, where it is, and what to do with it."""
    console = terminal()
    if console.quiet:
        say(as_typed(folder.path))
        return
    if record["status"] == "pruned":
        console.print(f"This trial was {record['reason']}; resume= trains it to its end.")
    console.print(f"{record['task']}, {record['model']}, {record['parameters']:,} parameters; {measured(record)}:")
    console.print(metrics_table(record["metrics"]), soft_wrap=False)
    if record["data"]["source"] == "sample":
        console.print(SAMPLE_NOTE, style="bold")
    console.print(f"The run is in {as_typed(folder.path)}. To continue:")
    log_dir = Path(config.paths.log_dir)
    compared = log_dir if folder.path.is_relative_to(log_dir.absolute()) else as_typed(folder.path)
    for command in next_commands(folder, compared, kind.command, kind.example(config)):
        console.print(command)


def measured(record: dict[str, Any]) -> str:
    """Return which weights have the metrics of a record, such as `the best checkpoint (step 357)`."""
    if record["checkpoint"] is None:
        return f"the weights of step {record['steps']}"
    return f"the {Path(record['checkpoint']).stem} checkpoint (step {record['checkpoint_step']})"


def next_commands(folder: RunFolder, compared: Path, command: str, example: str) -> list[str]:
    """Return the commands that apply to a finished run.

    compared: the folder of the runs that `report` compares; command, example: the command that applies the run, and
    options for it.
    """
    run = shlex.quote(str(as_typed(folder.path)))
    return [
        f"  {invocation(command)} {run} {example}",
        f"  {invocation('explore')} {run}",
        f"  {invocation('playground')} {run}",
        f"  {invocation('report')} {shlex.quote(str(compared))}",
    ]


def metrics_table(metrics: dict[str, float]) -> Table:
    """Return a table with a row for each metric and a column for each split."""
    splits = [split for split in ("val", "test", "other") if any(name.startswith(f"{split}/") for name in metrics)]
    table = Table()
    table.add_column("metric")
    for split in splits:
        table.add_column(split, justify="right")
    for name in sorted({name.partition("/")[2] for name in metrics}):
        values = (metrics.get(f"{split}/{name}") for split in splits)
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in values))
    return table


def say_interrupted(folder: RunFolder) -> None:
    """Log the step of the checkpoint of an interrupted run, and the command that resumes it."""
    last = folder.last_checkpoint
    where = f"Interrupted at step {read_checkpoint(last)['global_step']}" if last.is_file() else NOT_SAVED
    log.info("%s. To resume:\n  %s", where, resume_command(folder))


def resume_command(folder: RunFolder) -> str:
    """Return the command that resumes a run."""
    again = foreign.to_type_again(folder.overrides_file)  # what a folder alone may not choose
    return f"{invocation('train')} {shlex.join([f'resume={as_typed(folder.path)}', *again])}"
