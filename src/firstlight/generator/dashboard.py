"""Sections of the W&B workspace for generators."""

from typing import Any

from firstlight.kind.workspace import bars, curve, section, table


def sections() -> list[Any]:
    """Return the sections of all generators, and of bits per character, which compare vocabularies of any size."""
    generators = section(
        "Generators",
        curve("Perplexity, validation", "val/perplexity", log_y=True),
        curve("Perplexity, training", "train/perplexity", log_y=True),
        curve("Loss of the last position, validation", "val/last_position_loss"),
        bars("Perplexity of n-grams", *(f"reference/{name}_perplexity" for name in ("uniform", "unigram", "bigram"))),
        bars("Test", "test/perplexity", "test/accuracy", "test/last_position_loss"),
        table("val/samples"),
    )
    characters = section(
        "Generators of characters",
        curve("Bits per character, validation", "val/bits_per_character"),
        bars("Bits per character, test", "test/bits_per_character"),
    )
    return [generators, characters]
