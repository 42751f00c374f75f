"""firstlight: transformers from first principles, as experiments."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from firstlight.runs.loaded_classifier import LoadedClassifier
    from firstlight.runs.loaded_generator import LoadedGenerator
    from firstlight.runs.loaded_translator import LoadedTranslator


def load(
    run: "str | Path", *, checkpoint: str = "best", log_dir: "str | Path" = "logs"
) -> "LoadedClassifier | LoadedGenerator | LoadedTranslator":
    """A trained run as an object: it can `.predict("It works.")`, `.generate("ROMEO.")` or `.translate("A man runs.")`.

    run: its folder, `latest` or `best:<metric>`; checkpoint: best or last. Raises UserError.
    """
    from firstlight.runs.load import load  # torch takes a second, and most modules here do without it

    return load(run, checkpoint=checkpoint, log_dir=log_dir)
