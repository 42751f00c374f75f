"""The figures of sweeps over widths and parametrizations: the best learning rates, and the sizes of activations."""

import logging
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from rich.table import Table

from firstlight.console import Console
from firstlight.runs.gather import found_runs
from firstlight.runs.summary import SEED, Run, shown
from firstlight.sweeps.figures import save_marked

log = logging.getLogger(__name__)

WIDTH, PARAMETRIZATION, RATE = "model.dim", "model.parametrization", "optimizer.lr"
NAMES = {"standard": "standard", "mup": "µP"}
METRIC = "val/loss"
ACTIVATIONS = "activations/"


class ShowLearningRates(Callback):
    """Callback that prints the best rate of each width and draws all losses at the end of a sweep.

    The sweep must vary `model.dim` and `optimizer.lr`. The figure is `learning_rates.png` in its folder.
    """

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        folder = Path(config.hydra.sweep.dir)
        runs = finished_runs(folder)
        if not (losses := losses_of(runs)) or are_incomparable(runs, WIDTH, PARAMETRIZATION, RATE, SEED):
            return
        Console().print(table_of(losses))
        from firstlight.figures import plot_loss_by_rate  # imports matplotlib

        seeds = len({run.keys.get(SEED) for run in runs})
        title = f"{runs[0].task}: validation loss after {runs[0].steps:,} steps, {seeds} seed{'s' if seeds > 1 else ''}"
        save_marked(plot_loss_by_rate(losses, title=title), runs, folder / "learning_rates.png")


class ShowActivationSizes(Callback):
    """Callback that draws the sizes of activations against the width at the end of a sweep: a coordinate check.

    The runs must have `callbacks=activation_sizes`. The figure is `coordinate_check.png` in the sweep's folder.
    """

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        folder = Path(config.hydra.sweep.dir)
        runs = finished_runs(folder)
        if not (sizes := sizes_of(runs)) or are_incomparable(runs, WIDTH, PARAMETRIZATION, SEED):
            return
        from firstlight.figures import plot_activation_sizes  # imports matplotlib

        figure = plot_activation_sizes(
            sizes, title=f"{runs[0].task}: mean |activation| against the width of the network"
        )
        save_marked(figure, runs, folder / "coordinate_check.png")


def finished_runs(folder: Path) -> list[Run]:
    """Return the runs of a sweep that count and have a width and a loss."""
    if not folder.is_dir():  # after dry_run=true
        return []
    return [run for run in found_runs(folder) if run.is_counted and WIDTH in run.keys and METRIC in run.metrics]


def are_incomparable(runs: Sequence[Run], *keys: str) -> bool:
    """Return whether a figure of these keys would mix different runs, and say why.

    This is so if two runs have the same values of the keys, or if the runs have different numbers of steps.
    """
    found: dict[tuple[str, ...], Run] = {}
    for run in runs:
        other = found.setdefault(tuple(shown(run.keys.get(key)) for key in keys), run)
        if other is not run:
            log.warning(
                "No figure is drawn, because %s and %s differ in something else than %s; vary only these",
                other.folder,
                run.folder,
                ", ".join(keys),
            )
            return True
    if len({run.steps for run in runs}) > 1:
        log.warning("No figure is drawn, because the runs have different numbers of steps")
        return True
    return False


def losses_of(runs: Sequence[Run]) -> dict[str, dict[int, dict[float, list[float]]]]:
    """Return the losses of the seeds by the name of the parametrization, the width and the learning rate."""
    found: dict[str, dict[int, dict[float, list[float]]]] = {}
    for run in sorted(runs, key=_place):
        if (rate := run.keys.get(RATE)) is not None:
            by_width = found.setdefault(_name(run), {}).setdefault(_width(run), {})
            by_width.setdefault(float(rate), []).append(run.metrics[METRIC])
    return found


def sizes_of(runs: Sequence[Run]) -> dict[str, dict[str, dict[int, dict[int, float]]]]:
    """Return the sizes of activations by the name of the parametrization, the layer, the step and the width.

    A size is the mean over the seeds.
    """
    found: dict[str, dict[str, dict[int, dict[int, list[float]]]]] = {}
    for run in sorted(runs, key=_place):
        for name, curve in run.curves.items():
            if name.startswith(ACTIVATIONS):
                of_layer = found.setdefault(_name(run), {}).setdefault(name.removeprefix(ACTIVATIONS), {})
                for step, size in zip(curve.steps, curve.values, strict=True):
                    of_layer.setdefault(step, {}).setdefault(_width(run), []).append(size)
    return {
        name: {
            layer: {step: {width: fmean(values) for width, values in widths.items()} for step, widths in steps.items()}
            for layer, steps in layers.items()
        }
        for name, layers in found.items()
    }


def table_of(losses: dict[str, dict[int, dict[float, list[float]]]]) -> Table:
    """Return the table of the best learning rate of each width and its mean loss over the seeds."""
    table = Table(title=f"Best {RATE} of each width, by {METRIC}", title_justify="left")
    for column in ("parametrization", WIDTH, RATE, METRIC, "seeds"):
        table.add_column(column, justify="left" if column == "parametrization" else "right")
    for name, by_width in losses.items():
        for width, by_rate in sorted(by_width.items()):
            means = {rate: sum(values) / len(values) for rate, values in by_rate.items()}
            best = min(means, key=lambda rate: means[rate])
            table.add_row(name, str(width), f"{best:g}", f"{means[best]:.3f}", str(len(by_rate[best])))
    return table


def _place(run: Run) -> int:
    """Return the place of the parametrization of a run: standard first."""
    return [*NAMES].index(_given(run))


def _given(run: Run) -> str:
    return str(run.keys.get(PARAMETRIZATION, "standard"))


def _name(run: Run) -> str:
    return NAMES[_given(run)]


def _width(run: Run) -> int:
    return int(float(str(run.keys[WIDTH])))
