"""The sections of the W&B workspace that show generators."""

from typing import Any

from firstlight.kinds.workspace import bars, curve, section, table


def sections() -> list[Any]:
    """Return the sections."""
    return [generators(), characters()]


def generators() -> Any:
    """Of tasks that continue a text. Where a text has no test split, the panel of the test is empty."""
    return section(
        "Generators",
        curve("Perplexity, validation", "val/perplexity", log_y=True),
        curve("Perplexity, training", "train/perplexity", log_y=True),
        curve("Loss of the last position, validation", "val/last_position_loss"),
        bars("What counting achieves", *(f"reference/{name}_perplexity" for name in ("uniform", "unigram", "bigram"))),
        bars("Test", "test/perplexity", "test/accuracy", "test/last_position_loss"),
        table("val/samples"),
    )


def characters() -> Any:
    """Of those whose tokens are certain characters, by which vocabularies of any size compare."""
    return section(
        "Generators of characters",
        curve("Bits per character, validation", "val/bits_per_character"),
        bars("Bits per character, test", "test/bits_per_character"),
    )
