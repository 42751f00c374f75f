"""Sections of the W&B workspace for translators."""

from typing import Any

from firstlight.kind.workspace import bars, curve, section, table


def sections() -> list[Any]:
    """Return the section of translation tasks."""
    translators = section(
        "Translators",
        curve("BLEU, validation", "val/bleu"),
        curve("chrF, validation", "val/chrf"),
        curve("Perplexity, validation", "val/perplexity", log_y=True),
        curve("Perplexity, training", "train/perplexity", log_y=True),
        bars("BLEU, test", "test/bleu", "test/bleu_beam4"),
        bars("chrF, test", "test/chrf", "test/chrf_beam4"),
        table("val/translations"),
        table("test/translations"),
    )
    return [translators]
