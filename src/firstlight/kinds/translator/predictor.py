"""The command `predict` for translators."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.kinds.predictor import Predictor
from firstlight.kinds.translator.loaded import LoadedTranslator
from firstlight.terminal_text import say, write_out


class TranslationPredictor(Predictor):
    """Predictor of the translation of each text, and of the figure of its attention."""

    run: LoadedTranslator
    column_key = "source_column"

    @property
    def search(self) -> dict[str, Any]:
        """The options of the beam search."""
        return {name: value for name, value in self.options.items() if name != "attention"}

    def show(self, texts: list[str]) -> None:
        for number, text in enumerate(texts, start=1):
            if not text.strip():
                raise UserError(f"--text: sentence {number} is empty; write a sentence or leave it out")
        if "attention" not in self.options:
            write_out("\n".join(self.run.translate_many(texts, **self.search)))
            return
        written = self.run.write(texts[0], **self.search)
        write_out(self.run.tokenizers.target.decode(written))
        self._draw_attention(texts[0], written, self.options["attention"])

    @property
    def columns(self) -> list[str]:
        return ["translation"]

    def rows(self, texts: Iterable[str]) -> Iterator[list[Any]]:
        return ([text] for text in self.run.translate_many(texts, **self.search))

    def _draw_attention(self, text: str, written: list[int], path: Path) -> None:
        """Save the figure of the cross-attention of the last decoder block."""
        from firstlight.figures import plot_attention_heads, save

        found = self.run.cross_attention(text, written)
        try:
            save(plot_attention_heads(found.weights[-1].numpy(), found.written, found.source, "Cross-attention"), path)
        except ValueError as error:
            raise UserError(f"--attention: {error}") from error
        say(f"wrote {path}", to=sys.stderr)
