"""The figures that only a translator has: what each needs, and what to look for in it. Imports nothing heavy."""

from firstlight.kinds.kind import Drawing, drawing

FIGURES = "firstlight.kinds.translator.figures"
DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "cross_attention",
        FIGURES,
        "translator",
        "What the last block of the decoder looks at in the source while it writes each token of its own translation. "
        "A good translator follows the order of the source where both languages have the same.",
    ),
)
