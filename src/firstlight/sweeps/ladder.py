"""The ladder of the 2023 post: what each part of a transformer contributes, next to the losses in the post."""

import json
import logging
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from rich.table import Table

from firstlight.console import Console
from firstlight.files.rows import write_rows

log = logging.getLogger(__name__)

PUBLISHED = {"one_head": 2.476, "pre_norm": 2.024}  # validation losses; the post gives none for the other rungs
CHOICE = "ladder"
FIRST_STEPS = ("bigram_table", "running_averages", "raw_affinities")  # before the first head
RUNGS = (*FIRST_STEPS, "one_head", "positions", "heads", "feed_forward", "residuals", "pre_norm")


class ShowLadder(Callback):
    """Callback that prints and draws the rungs at the end of a sweep: `ladder.csv` and `ladder.png` in its folder."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        folder = Path(config.hydra.sweep.dir)
        rungs = [rung for path in folder.glob("*/metrics.json") if (rung := read_rung(path))]
        rungs.sort(key=lambda rung: (RUNGS.index(rung["rung"]), rung["seed"]))
        if not rungs:
            return
        Console().print(table_of(rungs))
        write_rows(folder / "ladder.csv", rungs)
        from firstlight.figures import plot_ladder, save  # imports matplotlib

        losses = [rung["validation_loss"] for rung in rungs]
        figure = plot_ladder([rung["rung"] for rung in rungs], losses, [rung["post"] for rung in rungs])
        save(figure, folder / "ladder.png")
        log.info("The ladder is in %s", folder)


def read_rung(path: Path) -> dict[str, Any] | None:
    """Return the row of a run; None if it has not finished."""
    record = json.loads(path.read_text(encoding="utf-8"))
    if record["status"] != "finished":
        return None
    name = next(value.partition("=")[2] for value in record["overrides"] if value.startswith(f"{CHOICE}="))
    return {
        "rung": name,
        "seed": record["seed"],
        "parameters": record["parameters"],
        "validation_loss": record["metrics"]["val/loss"],
        "last_position_loss": record["metrics"].get("val/last_position_loss"),
        "post": PUBLISHED.get(name),
        "seconds": round(record["seconds"]["fit"]),
    }


def table_of(rungs: list[dict[str, Any]]) -> Table:
    """Return the table of the rungs, from the lowest to the highest."""
    table = Table(title="Names, rung by rung")
    for column in rungs[0]:
        table.add_column(column.replace("_", " "), justify="left" if column == "rung" else "right")
    for rung in rungs:
        table.add_row(*("" if value is None else _shown(value) for value in rung.values()))
    return table


def _shown(value: Any) -> str:
    match value:
        case float():
            return f"{value:.3f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
