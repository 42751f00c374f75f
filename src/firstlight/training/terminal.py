"""What a training run shows on the terminal: its configuration first, its metrics last."""

import shlex
from io import StringIO
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig, OmegaConf
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from firstlight.console import Console
from firstlight.invocation import invocation
from firstlight.kinds.kind import Kind
from firstlight.runs import foreign
from firstlight.runs.folder import SAMPLE_NOTE, RunFolder, write_atomically


@rank_zero_only
def print_config(config: DictConfig) -> None:
    """The resolved config as a tree."""
    console = Console()
    console.print(tree_of(config, is_colored=console.is_terminal))


def save_config(config: DictConfig, folder: RunFolder) -> None:
    """The resolved config into the run's folder: as a tree for people, as YAML for programs."""
    text = StringIO()
    Console(file=text, width=120).print(tree_of(config, is_colored=False))
    write_atomically(folder.path / "config.txt", text.getvalue())
    write_atomically(folder.config_file, OmegaConf.to_yaml(config, resolve=True))


def tree_of(config: DictConfig, *, is_colored: bool) -> Tree:
    """A branch for each key, its value as YAML, which is_colored highlights."""
    tree = Tree("config", guide_style="dim")
    for key in config:
        value = config[key]
        branch = tree.add(str(key), guide_style="dim")
        text = OmegaConf.to_yaml(value, resolve=True) if OmegaConf.is_config(value) else str(value)
        text = text.rstrip() or "{}"
        branch.add(Syntax(text, "yaml", background_color="default") if is_colored else Text(text, no_wrap=True))
    return tree


def report(folder: RunFolder, record: dict[str, Any], kind: Kind) -> None:
    """The end of a run on the terminal: its metrics, where it is, and what to do with it."""
    console = Console()
    console.print(f"{record['task']}, {record['model']}, {record['parameters']:,} parameters; the best checkpoint:")
    console.print(metrics_table(record["metrics"]))
    if record["data"]["source"] == "sample":
        console.print(SAMPLE_NOTE, style="bold")
    where = as_typed(folder.path)
    next_steps = (f"{invocation('evaluate')} {where}", f"{invocation(kind.command)} {where} {kind.example}")
    for line in (f"The run is in {where}", *(f"  {step}" for step in next_steps)):
        console.print(line, soft_wrap=True)


def metrics_table(metrics: dict[str, float]) -> Table:
    """A row for each metric, a column for each split."""
    splits = [split for split in ("val", "test") if any(name.startswith(f"{split}/") for name in metrics)]
    table = Table()
    table.add_column("metric")
    for split in splits:
        table.add_column(split, justify="right")
    for name in sorted({name.partition("/")[2] for name in metrics}):
        values = (metrics.get(f"{split}/{name}") for split in splits)
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in values))
    return table


def resume_command(folder: RunFolder) -> str:
    """What to type to go on with a run."""
    again = foreign.to_type_again(folder.overrides_file)  # what a folder alone may not choose
    return f"{invocation('train')} {shlex.join([f'resume={as_typed(folder.path)}', *again])}"


def as_typed(path: Path) -> Path:
    """A path as one would type it from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
