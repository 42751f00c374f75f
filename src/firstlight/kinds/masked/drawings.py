"""The figure that only a masked language model has. Imports nothing heavy."""

from firstlight.kinds.kind import Drawing, drawing

DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "fillings",
        "firstlight.kinds.masked.figures",
        "masked",
        "The most probable words for each [MASK] of the text, and all other words together. One long bar: the words "
        "around the mask leave no doubt; many of equal length: they allow many words.",
    ),
)
