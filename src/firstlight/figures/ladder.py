"""What each part of a network is worth, rung by rung."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from firstlight.figures import style


def ladder(
    names: Sequence[str], losses: Sequence[float], published: Sequence[float | None], title: str = "Names, rung by rung"
) -> Figure:
    """The validation loss of each rung, in nats for each character, lower rungs first; a diamond where others got.

    names, losses, published: (rungs,), None where nothing was published.
    """
    figure = style.new_figure(height=1.6 + 0.6 * len(names))
    style.heading(figure, title)
    axes = figure.subplots()
    style.tidy(axes)
    rows = range(len(names))
    axes.hlines(rows, min(losses), losses, color=style.PALE, linewidth=3)
    axes.plot(losses, rows, color=style.BLUE, marker="o", markersize=8, linestyle="none", label="measured")
    known = [(value, row) for value, row in zip(published, rows, strict=True) if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), color=style.VERMILION, marker="D", linestyle="none", label="the 2023 post")
    for loss, row in zip(losses, rows, strict=True):
        axes.annotate(
            f"{loss:.3f}", (loss, row), xytext=(0, 9), textcoords="offset points", ha="center", color=style.INK
        )
    axes.set_yticks(rows, [name.replace("_", " ") for name in names])
    axes.set_ylim(-0.6, len(names) - 0.2)
    axes.margins(x=0.08)
    axes.set_xlabel("validation loss (nats per character); left is better")
    axes.grid(axis="x", color=style.PALE, linewidth=style.THIN)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper right" if losses[0] > losses[-1] else "lower right", fontsize=style.TICK_SIZE)
    return figure
