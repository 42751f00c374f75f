"""Figures of the attention of a translator."""

from firstlight.figures import plot_attention_heads
from firstlight.kind.kind import Drawn
from firstlight.kind.subject import Subject


def cross_attention(subject: Subject) -> Drawn:
    """Return the figure of the cross-attention of all heads of the last decoder block."""
    _, notes = subject.chosen_text()
    found = subject.attention
    part = [part for part in found.maps if "cross" in part.name][-1]
    title = part.name.capitalize()
    figure = plot_attention_heads(part.weights, part.queries, part.keys, title)
    for axes in figure.axes[: len(part.weights)]:
        axes.set_xlabel("source token")
        axes.set_ylabel("written token")
    return Drawn(figure, [*notes, *found.notes])
