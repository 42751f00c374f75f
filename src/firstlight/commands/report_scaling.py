"""The figures of `report --scaling`."""

from pathlib import Path
from typing import TYPE_CHECKING

from firstlight.lab.reports.scaling import Scaling
from firstlight.lab.reports.scaling_text import has_frontier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIT, FRONTIER = "scaling_fit.png", "scaling_frontier.png"
ON_FRONTIER = 60  # points of the line
UNITS = {"loss": "nats per token", "bits_per_character": "bits per character"}


def draw(found: Scaling, folder: Path) -> list[Path]:
    """Write the figures below a folder, and return their paths."""
    from firstlight.figures import save
    from firstlight.figures.style import mark_sample

    drawn = figures(found)
    if found.points[0].run.is_sample:
        for figure in drawn:
            mark_sample(figure)
    (folder / FRONTIER).unlink(missing_ok=True)  # of an earlier report, if there is no frontier any more
    return [save(figure, folder / name) for name, figure in zip((FIT, FRONTIER), drawn, strict=False)]


def figures(found: Scaling) -> "list[Figure]":
    """Return the figure of the fit, and that of the frontier if there is one."""
    import numpy as np

    from firstlight.figures import plot_scaling_fit, plot_scaling_frontier

    points = [*found.points, *found.held_out]
    size = np.array([each.parameters for each in points], dtype=float)
    tokens = np.array([each.tokens for each in points])
    kind = found.metric.rpartition("/")[2]
    unit, law = f"validation loss ({UNITS[kind]})", found.fit.law
    held = np.arange(len(points)) >= len(found.points)
    fit = plot_scaling_fit(
        size,
        tokens,
        np.array([each.loss for each in points]),
        law.loss,
        held_out=held,
        unit=unit,
        title=f"{found.task}: L = {law.irreducible:.2f} + {law.size_factor:.3g} / N^{law.size_exponent:.2f} + "
        f"{law.data_factor:.3g} / D^{law.data_exponent:.2f}",
    )
    if not has_frontier(law):
        return [fit]
    computes = np.geomspace((6 * size * tokens).min(), (6 * size * tokens).max(), ON_FRONTIER)
    optima = [found.fit.interval(lambda each, compute=compute: each.optimum(compute)[0]) for compute in computes]  # type: ignore[misc]
    frontier = plot_scaling_frontier(
        size,
        tokens,
        law.loss,
        [(compute, each.value) for compute, each in zip(computes, optima, strict=True)],
        band=[(each.low, each.high) for each in optima],
        unit=unit,
        title=f"{found.task}: N* grows as C^{law.size_share:.2f}",
    )
    return [fit, frontier]
