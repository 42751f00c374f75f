"""What `predict` does with a translator."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.kinds.predictor import Predictor
from firstlight.kinds.translator.loaded import LoadedTranslator
from firstlight.terminal_text import say, write_out


class TranslationPredictor(Predictor):
    """The translation of each text, and a figure of what was looked at for it."""

    run: LoadedTranslator
    column_key = "source_column"

    @property
    def search(self) -> dict[str, Any]:
        """What the command line says of how a translation is looked for."""
        return {name: value for name, value in self.options.items() if name != "attention"}

    def show(self, texts: list[str]) -> None:
        for number, text in enumerate(texts, start=1):
            if not text.strip():
                raise UserError(f"sentence {number} of --text is empty; write one, or leave it out")
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
        """What the last block of the decoder looked at, head by head, as a figure."""
        from firstlight.figures import plot_attention_heads, save

        found = self.run.cross_attention(text, written)
        try:
            save(plot_attention_heads(found.weights[-1].numpy(), found.written, found.source, "Cross-attention"), path)
        except ValueError as error:
            raise UserError(f"--attention: {error}") from error
        say(f"wrote {path}", to=sys.stderr)
