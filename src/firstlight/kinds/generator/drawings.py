"""Figures of generators, with their requirements and captions. Imports no heavy library."""

from firstlight.kinds.kind import Drawing, drawing

FIGURES = "firstlight.kinds.generator.figures"
DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "next_token",
        FIGURES,
        "generator",
        "Probabilities of the next token after the prompt (x axis), with the most likely token on top. One long bar "
        "means that the run is certain; many bars of similar length mean that many tokens are possible.",
    ),
    drawing(
        "loss_per_position",
        FIGURES,
        "generator",
        "Mean loss on the validation text (y axis) against the number of visible tokens (x axis). Where the curve is "
        "flat, a longer context does not reduce the loss.",
    ),
    drawing(
        "surprise",
        FIGURES,
        "generator",
        "A text in which darker characters have a higher surprise, in bits per character. Words usually start dark and "
        "end light, and a repeated name is lighter if its first occurrence is in the context.",
    ),
)
