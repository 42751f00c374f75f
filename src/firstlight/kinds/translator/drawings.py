"""Figures of translators, with their requirements and captions. Imports no heavy library."""

from firstlight.kinds.kind import Drawing, drawing

FIGURES = "firstlight.kinds.translator.figures"
DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "cross_attention",
        FIGURES,
        "translator",
        "Attention weights of the last decoder block for the run's own translation: source tokens are on the x axis, "
        "written tokens on the y axis. A good translator follows a diagonal where both languages have the same order.",
    ),
)
