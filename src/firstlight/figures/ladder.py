"""The figure of an ablation, which shows the loss of networks with more and more parts."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from firstlight.figures import style


def plot_ladder(
    names: Sequence[str], losses: Sequence[float], published: Sequence[float | None], title: str = "Names, rung by rung"
) -> Figure:
    """Draw the validation losses of a series of networks, from bottom to top. Each network has one part more.

    A diamond marks a published loss (post 4, names).

    Args:
        names: (rungs,) strings, the names of the networks. An underscore is shown as a space.
        losses: (rungs,) float, the validation losses, in nats per character.
        published: (rungs,) float, the published losses; None for a network without a published loss.
        title: heading of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: if the lengths differ.

    Example:
        >>> from firstlight.figures import plot_ladder
        >>> figure = plot_ladder(["one_head", "with_positions"], losses=[2.48, 2.31], published=[2.476, None])
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['one head', 'with positions']
    """
    figure, axes = style.new_axes(title, 1.6 + 0.6 * len(names))
    style.label_axes(axes, "validation loss (nats per character); lower is better", "", grid="x")
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
    style.legend(axes, loc="upper right" if losses[0] > losses[-1] else "lower right")
    return figure
