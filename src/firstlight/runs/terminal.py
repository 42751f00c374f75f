"""What a training run shows on the terminal: its configuration first, its metrics last."""

from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.tree import Tree

from firstlight.runs.folder import RunFolder


@rank_zero_only
def print_config(config: DictConfig, folder: RunFolder) -> None:
    """The resolved config as a tree, on the terminal and in config.txt; as YAML it is in .hydra/."""
    tree = Tree("config", guide_style="dim")
    for key in config:
        value = config[key]
        branch = tree.add(str(key), guide_style="dim")
        text = OmegaConf.to_yaml(value, resolve=True) if OmegaConf.is_config(value) else str(value)
        branch.add(Syntax(text.rstrip() or "{}", "yaml", background_color="default"))
    Console().print(tree)
    with (folder.path / "config.txt").open("w", encoding="utf-8") as file:
        Console(file=file, width=120).print(tree)
    OmegaConf.save(config, folder.path / "config.yaml", resolve=True)


def report(folder: RunFolder, record: dict[str, Any]) -> None:
    """The end of a run on the terminal: its metrics, where it is, and what to do with it."""
    metrics = record["metrics"]
    splits = [split for split in ("val", "test") if any(name.startswith(f"{split}/") for name in metrics)]
    table = Table()
    table.add_column("metric")
    for split in splits:
        table.add_column(split, justify="right")
    for name in sorted({name.partition("/")[2] for name in metrics}):
        values = (metrics.get(f"{split}/{name}") for split in splits)
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in values))
    console = Console()
    console.print(f"{record['task']}, {record['model']}, {record['parameters']:,} parameters; the best checkpoint:")
    console.print(table)
    if record["data"]["source"] == "sample":
        console.print("Measured on a GENERATED SAMPLE: the numbers say nothing about real reviews.", style="bold")
    where = as_typed(folder.path)
    lines = (
        f"The run is in {where}",
        f"  python src/evaluate.py {where}",
        f'  python src/predict.py {where} --text "It works, and it looks good."',
    )
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def resume_command(folder: RunFolder) -> str:
    """What to type to go on with a run."""
    return f"python src/train.py resume={as_typed(folder.path)}"


def as_typed(path: Path) -> Path:
    """A path as one would type it from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
