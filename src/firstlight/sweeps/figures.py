"""The figures of a sweep in its folder."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from firstlight.runs.summary import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)


def save_marked(figure: "Figure", runs: Sequence[Run], file: Path) -> None:
    """Save the figure of a sweep, with a mark if a run is on generated data, and report where it is."""
    from firstlight.figures import save
    from firstlight.figures.style import mark_sample

    if any(run.is_sample for run in runs):
        mark_sample(figure)
    save(figure, file)
    log.info("The figure is %s", file)
