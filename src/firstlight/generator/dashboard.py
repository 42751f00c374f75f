"""Sections of the W&B workspace for generators."""

from typing import Any

from firstlight.kind.workspace import bars, curve, section, table


def sections() -> list[Any]:
    """Return the sections."""
    return [generators(), characters()]


def generators() -> Any:
    """Return the section of tasks that continue a text. The test panel is empty for data without a test split."""
    return section(
        "Generators",
        curve("Perplexity, validation", "val/perplexity", log_y=True),
        curve("Perplexity, training", "train/perplexity", log_y=True),
        curve("Loss of the last position, validation", "val/last_position_loss"),
        bars("Perplexity of n-grams", *(f"reference/{name}_perplexity" for name in ("uniform", "unigram", "bigram"))),
        bars("Test", "test/perplexity", "test/accuracy", "test/last_position_loss"),
        table("val/samples"),
    )


def characters() -> Any:
    """Return the section of bits per character, which are comparable between vocabularies of any size."""
    return section(
        "Generators of characters",
        curve("Bits per character, validation", "val/bits_per_character"),
        bars("Bits per character, test", "test/bits_per_character"),
    )
