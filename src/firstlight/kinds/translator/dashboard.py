"""The sections of the W&B workspace that show translators."""

from typing import Any

from firstlight.kinds.workspace import bars, curve, section, table


def sections() -> list[Any]:
    """Return the sections."""
    return [translators()]


def translators() -> Any:
    """Of tasks that translate."""
    return section(
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
