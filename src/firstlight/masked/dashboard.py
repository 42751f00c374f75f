"""Sections of the W&B workspace for masked language models."""

from typing import Any

from firstlight.kind.workspace import bars, curve, section


def sections() -> list[Any]:
    """Return the section of masked language models, whose metrics are those of the masked words."""
    masked = section(
        "Masked language models",
        curve("Perplexity of the masked words, validation", "val/perplexity", log_y=True),
        curve("Perplexity of the masked words, training", "train/perplexity", log_y=True),
        curve("Accuracy of the masked words, validation", "val/accuracy"),
        bars("Test", "test/perplexity", "test/accuracy"),
    )
    return [masked]
