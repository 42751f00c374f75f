"""The ladder of the 2023 post: what each part of a transformer contributes, next to the losses in the post."""

from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from rich.table import Table

from firstlight.console import Console
from firstlight.files.rows import write_rows
from firstlight.runs.gather import gather
from firstlight.runs.summary import Run
from firstlight.sweeps.figures import save_marked

PUBLISHED = {"one_head": 2.476, "pre_norm": 2.024}  # validation losses; the post gives none for the other rungs
CHOICE = "ladder"
FIRST_STEPS = ("bigram_table", "running_averages", "raw_affinities")  # before the first head
RUNGS = (*FIRST_STEPS, "one_head", "positions", "heads", "feed_forward", "residuals", "pre_norm")


class ShowLadder(Callback):
    """Callback that prints and draws the rungs at the end of a sweep: `ladder.csv` and `ladder.png` in its folder.

    Losses on the generated sample are shown without those of the post, and the figure is marked.
    """

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        folder = Path(config.hydra.sweep.dir)
        if not folder.is_dir():  # after dry_run=true
            return
        runs = [run for run in gather(folder) if run.is_counted and run.keys.get(CHOICE) in RUNGS]
        rungs = sorted(map(rung_of, runs), key=lambda rung: (RUNGS.index(rung["rung"]), rung["seed"]))
        if not rungs:
            return
        Console().print(table_of(rungs))
        write_rows(folder / "ladder.csv", rungs)
        from firstlight.figures import plot_ladder  # imports matplotlib

        losses = [rung["validation_loss"] for rung in rungs]
        figure = plot_ladder([rung["rung"] for rung in rungs], losses, [rung["post"] for rung in rungs])
        save_marked(figure, runs, folder / "ladder.png")


def rung_of(run: Run) -> dict[str, Any]:
    """Return the row of a finished run."""
    name = str(run.keys[CHOICE])
    return {
        "rung": name,
        "seed": run.keys.get("seed"),
        "parameters": run.parameters,
        "validation_loss": run.metrics["val/loss"],
        "last_position_loss": run.metrics.get("val/last_position_loss"),
        "post": None if run.is_sample else PUBLISHED.get(name),
        "seconds": None if run.fit_seconds is None else round(run.fit_seconds),
    }


def table_of(rungs: list[dict[str, Any]]) -> Table:
    """Return the table of the rungs, from the lowest to the highest, without columns that have no value."""
    table = Table(title="Names, rung by rung")
    columns = [column for column in rungs[0] if any(rung[column] is not None for rung in rungs)]
    for column in columns:
        is_name = column == "rung"
        table.add_column(column.replace("_", " "), justify="left" if is_name else "right", no_wrap=is_name)
    for rung in rungs:
        table.add_row(*("" if rung[column] is None else _shown(rung[column]) for column in columns))
    return table


def _shown(value: Any) -> str:
    match value:
        case float():
            return f"{value:.3f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
