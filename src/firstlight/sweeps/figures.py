"""Callbacks that print a table and plot a figure at the end of a sweep, in the sweep's folder."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from firstlight.console import Console
from firstlight.files.rows import write_rows
from firstlight.lab.reports.all_runs import gather
from firstlight.lab.reports.tables import Column, Table
from firstlight.runs.folder import run_folders
from firstlight.runs.summary import SEED, Run, grouped, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

PUBLISHED = {"one_head": 2.476, "pre_norm": 2.024}  # validation losses; the post gives none for the other rungs
CHOICE = "ladder"
FIRST_STEPS = ("bigram_table", "running_averages", "raw_affinities")  # before the first head
RUNGS = (*FIRST_STEPS, "one_head", "positions", "heads", "feed_forward", "residuals", "pre_norm")
WIDTH, PARAMETRIZATION, RATE = "model.dim", "model.parametrization", "optimizer.lr"
NAMES = {"standard": "standard", "mup": "µP"}
METRIC = "val/loss"
ACTIVATIONS = "activations/"


class AtTheEnd(Callback):
    """Base of callbacks that show the finished runs of a sweep at its end."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        folder = Path(config.hydra.sweep.dir)
        if folder.is_dir() and any(run_folders(folder)):  # not so after dry_run=true
            self.show(folder, [run for run in gather(folder) if run.is_counted and METRIC in run.metrics])

    def show(self, folder: Path, runs: Sequence[Run]) -> None:
        """Print and plot the runs below the folder of their sweep."""
        raise NotImplementedError


class ShowLadder(AtTheEnd):
    """Callback that prints and plots the rungs of post 4 (names): what each part of a transformer contributes.

    The files are `ladder.csv` and `ladder.png`. The losses of the post are shown next to those of the runs, but not if
    the runs are on the generated sample; then the figure is marked.
    """

    def show(self, folder: Path, runs: Sequence[Run]) -> None:
        runs = [run for run in runs if run.keys.get(CHOICE) in RUNGS]
        rungs = sorted(map(rung_of, runs), key=lambda rung: (RUNGS.index(rung["rung"]), rung["seed"]))
        if not rungs:
            return
        Console().print(table_of_rungs(rungs).on_terminal())
        write_rows(folder / "ladder.csv", rungs)
        from firstlight.figures import plot_ladder  # imports matplotlib

        names = [f"{rung['rung']} (context {rung['context_length']})" for rung in rungs]
        losses, posts = ([rung[name] for rung in rungs] for name in ("validation_loss", "post"))
        save_marked(plot_ladder(names, losses, posts), runs, folder / "ladder.png")


class ShowLearningRates(AtTheEnd):
    """Callback that prints the best rate of each width and plots all losses, as `learning_rates.png`.

    The sweep must vary `model.dim` and `optimizer.lr`.
    """

    def show(self, folder: Path, runs: Sequence[Run]) -> None:
        runs = [run for run in runs if WIDTH in run.keys]
        if not (losses := losses_of(runs)) or are_incomparable(runs, WIDTH, PARAMETRIZATION, RATE, SEED):
            return
        Console().print(table_of_rates(losses).on_terminal())
        from firstlight.figures import plot_loss_by_rate  # imports matplotlib

        seeds = len({run.keys.get(SEED) for run in runs})
        title = f"{runs[0].task}: validation loss after {runs[0].steps:,} steps, {seeds} seed{'s' if seeds > 1 else ''}"
        save_marked(plot_loss_by_rate(losses, title=title), runs, folder / "learning_rates.png")


class ShowActivationSizes(AtTheEnd):
    """Callback that plots the sizes of activations against the width, a coordinate check, as `coordinate_check.png`.

    The runs must have `callbacks=activation_sizes`.
    """

    def show(self, folder: Path, runs: Sequence[Run]) -> None:
        runs = [run for run in runs if WIDTH in run.keys]
        if not (sizes := sizes_of(runs)) or are_incomparable(runs, WIDTH, PARAMETRIZATION, SEED):
            return
        from firstlight.figures import plot_activation_sizes  # imports matplotlib

        title = f"{runs[0].task}: mean |activation| against the width of the network"
        save_marked(plot_activation_sizes(sizes, title=title), runs, folder / "coordinate_check.png")


def save_marked(figure: "Figure", runs: Sequence[Run], file: Path) -> None:
    """Save the figure of a sweep, with a mark if a run is on generated data, and report where it is."""
    from firstlight.figures import save
    from firstlight.figures.style import mark_sample

    if any(run.is_sample for run in runs):
        mark_sample(figure)
    save(figure, file)
    log.info("The figure is %s", file)


def rung_of(run: Run) -> dict[str, Any]:
    """Return the row of a finished run."""
    name = str(run.keys[CHOICE])
    return {
        "rung": name,
        "seed": run.keys.get("seed"),
        "context_length": run.keys.get("context_length"),
        "parameters": run.parameters,
        "validation_loss": run.metrics["val/loss"],
        "last_position_loss": run.metrics.get("val/last_position_loss"),
        "post": None if run.is_sample else PUBLISHED.get(name),
        "seconds": None if run.fit_seconds is None else round(run.fit_seconds),
    }


def table_of_rungs(rungs: list[dict[str, Any]]) -> Table:
    """Return the table of the rungs, from the lowest to the highest, without columns that have no value."""
    names = [name for name in rungs[0] if any(rung[name] is not None for rung in rungs)]
    columns = [Column(name.replace("_", " "), is_left=name == "rung", is_whole=name == "rung") for name in names]
    return Table("Names, rung by rung", columns, [[_shown(rung[name]) for name in names] for rung in rungs])


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,}" if isinstance(value, int) else number(value)


def are_incomparable(runs: Sequence[Run], *keys: str) -> bool:
    """Return whether a figure of these keys would mix different runs, and say why.

    This is so if two runs have the same values of the keys, or if the runs have different numbers of steps.
    """
    for one, *others in grouped(runs, lambda run: run.values(keys)).values():
        if others:
            difference = f"differ in something else than {', '.join(keys)}; vary only these"
            log.warning("No figure is drawn, because %s and %s %s", one.folder, others[0].folder, difference)
            return True
    if len({run.steps for run in runs}) > 1:
        log.warning("No figure is drawn, because the runs have different numbers of steps")
        return True
    return False


def by_parametrization(runs: Sequence[Run]) -> Iterator[tuple[str, int, Run]]:
    """Yield each run with the name of its parametrization, standard first, and its width."""
    for kind, name in NAMES.items():
        for run in runs:
            if run.keys.get(PARAMETRIZATION, "standard") == kind:
                yield name, int(float(str(run.keys[WIDTH]))), run


def losses_of(runs: Sequence[Run]) -> dict[str, dict[int, dict[float, list[float]]]]:
    """Return the losses of the seeds by the name of the parametrization, the width and the learning rate."""
    found: dict[str, dict[int, dict[float, list[float]]]] = {}
    for name, width, run in by_parametrization(runs):
        if (rate := run.keys.get(RATE)) is not None:
            losses = found.setdefault(name, {}).setdefault(width, {})
            losses.setdefault(float(rate), []).append(run.metrics[METRIC])
    return found


def sizes_of(runs: Sequence[Run]) -> dict[str, dict[str, dict[int, dict[int, float]]]]:
    """Return the sizes of activations by the name of the parametrization, the layer, the step and the width.

    A size is the mean over the seeds.
    """
    values: dict[tuple[str, str, int, int], list[float]] = {}
    for name, width, run in by_parametrization(runs):
        for metric, curve in run.curves.items():
            if metric.startswith(ACTIVATIONS):
                for step, size in zip(curve.steps, curve.values, strict=True):
                    values.setdefault((name, metric.removeprefix(ACTIVATIONS), step, width), []).append(size)
    found: dict[str, dict[str, dict[int, dict[int, float]]]] = {}
    for (name, layer, step, width), sizes in values.items():
        found.setdefault(name, {}).setdefault(layer, {}).setdefault(step, {})[width] = fmean(sizes)
    return found


def table_of_rates(losses: dict[str, dict[int, dict[float, list[float]]]]) -> Table:
    """Return the table of the best learning rate of each width and its mean loss over the seeds."""
    rows = []
    for name, by_width in losses.items():
        for width, by_rate in sorted(by_width.items()):
            means = {rate: fmean(values) for rate, values in by_rate.items()}
            best = min(means, key=lambda rate: means[rate])
            rows.append([name, str(width), f"{best:g}", f"{means[best]:.3f}", str(len(by_rate[best]))])
    return Table(f"Best {RATE} of each width, by {METRIC}", ("parametrization", WIDTH, RATE, METRIC, "seeds"), rows)
