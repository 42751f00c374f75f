"""`report --scaling`: a scaling law fitted to sizes × budgets, on the terminal, as figures and on the page."""

import base64
import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from firstlight.lab.reports import text
from firstlight.lab.reports.scaling import Scaling, scaling
from firstlight.lab.reports.scaling_text import has_frontier, sentences, tables
from firstlight.runs.summary import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIT, FRONTIER = "scaling_fit.png", "scaling_frontier.png"
ON_FRONTIER = 60  # points of the line
UNITS = {"loss": "nats per token", "bits_per_character": "bits per character"}


def scaling_of(
    runs: Sequence[Run], metric: str | None, hold_out: Sequence[str] | None, named: Callable[[Run, Sequence[str]], bool]
) -> Scaling:
    """Return the fit to the runs. named: whether a run has the values of --hold-out. Raises UserError."""
    held = list(hold_out or ())
    return scaling(runs, metric, lambda run: bool(held) and named(run, held), " ".join(held))


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


def section(found: Scaling, drawn: Sequence[Path]) -> str:
    """Return the section of the page: sentences, figures and tables."""
    says = "\n".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences(found))
    images = "\n".join(
        f'<p><img class="figure" alt="{html.escape(path.stem)}" src="data:image/png;base64,'
        f'{base64.b64encode(path.read_bytes()).decode()}"></p>'
        for path in drawn
    )
    found_tables = "\n".join(table.html() for table in tables(found))
    return f"<section>\n<h2>Scaling law</h2>\n{says}\n{images}\n</section>\n{found_tables}"


def markdown(found: Scaling, drawn: Sequence[Path]) -> str:
    """Return the section of report.md."""
    return text.section("Scaling law", sentences(found), [path.name for path in drawn], tables(found))


def show(found: Scaling, drawn: Sequence[Path]) -> None:
    """Print the sentences and the tables, and where the figures are."""
    from firstlight.console import Console

    console = Console()
    for sentence in sentences(found):
        console.print(sentence)
    for each in tables(found):
        console.print(each.on_terminal())
    console.print(f"The figure{'s are' if len(drawn) > 1 else ' is'} {' and '.join(map(str, drawn))}", soft_wrap=True)
