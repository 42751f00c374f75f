"""The figures that only a generator has: what each needs, and what to look for in it. Imports nothing heavy."""

from firstlight.kinds.kind import Drawing, drawing

FIGURES = "firstlight.kinds.generator.figures"
DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "next_token",
        FIGURES,
        "generator",
        "What the run expects after the prompt. One long bar: it is sure; many of like length: it knows that anything "
        "may follow.",
    ),
    drawing(
        "loss_per_position",
        FIGURES,
        "generator",
        "The loss on the validation text by how many tokens were seen. Where the curve is flat, more context brings "
        "nothing more.",
    ),
    drawing(
        "surprise",
        FIGURES,
        "generator",
        "The darker a character, the less the run expected it. Words begin dark and end light; names are dark the "
        "first time and lighter the next, if the context still holds them.",
    ),
)
