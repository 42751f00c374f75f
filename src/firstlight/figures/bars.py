"""Bar charts of probabilities, with one bar for the sum of all remaining outcomes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from firstlight.figures import style


def draw_probabilities(axes: Axes, names: Sequence[str], probabilities: NDArray[Any]) -> None:
    """Draw a bar for each name, the first on top, and one bar for the remaining probability.

    names: labels of the bars, such as words; long names are shortened. probabilities: (names,) float, with a sum of at
    most 1. Raises ValueError if the lengths differ, or there are no names.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if probabilities.shape != (len(names),) or not len(names):
        problem = f"there are {len(names)} tokens and probabilities of shape {probabilities.shape}"
        raise ValueError(f"{problem}; pass one probability for each token, and at least one token")
    rest = max(1 - float(probabilities.sum()), 0.0)
    shown = [style.shorten(name) if name.strip() else name for name in names] + ["all others"]
    values = np.append(probabilities, rest)
    rows = np.arange(len(values))
    axes.barh(rows, values, color=[style.BLUE] * len(names) + [style.GREY], height=0.75)
    for row, value in zip(rows, values, strict=True):
        axes.annotate(
            f"{value:.1%}",
            (value, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.TICK_SIZE,
            color=style.INK,
        )
    axes.set_yticks(rows, shown, parse_math=False)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * max(float(values.max()), 0.01))
    axes.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0 if values.max() > 0.05 else 1))
