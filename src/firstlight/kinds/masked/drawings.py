"""Figure of masked language models, with its requirements and caption. Imports no heavy library."""

from firstlight.kinds.kind import Drawing, drawing

DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "fillings",
        "firstlight.kinds.masked.figures",
        "masked",
        "Probabilities (x axis) of the most probable words for each [MASK] of the text, and of all other words. One "
        "long bar means that the run is certain; many bars of equal length mean that many words are possible.",
    ),
)
