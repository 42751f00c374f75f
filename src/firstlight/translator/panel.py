"""Panel of a translator in the playground: the translation of a sentence, and its cross-attention."""

import json
from html import escape
from typing import Any

from firstlight.kind import markup
from firstlight.kind.panel import Inputs, Panel, beginning_of
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.run import TranslatorRun

WIDEST_BEAM = 10


class TranslatorPanel(Panel):
    """Panel that shows the translation and the cross-attention for a sentence."""

    kind = "translator"
    title = "Translate a sentence"
    network = EncoderDecoder
    run: TranslatorRun

    def examples(self) -> tuple[str, ...]:
        is_english = str(self.run.config["data"].get("source_column")).startswith("en")
        return self.texts("english") if is_english else ()

    def page_data(self) -> dict[str, Any]:
        return {"tokenizers": [json.loads(each.to_json()) for each in self.run.tokenizers]}

    def answer(self, asked: Inputs) -> str:
        """Return the translation and the attention, as HTML. asked: text; beam_size; map and head of the attention."""
        text, notes = beginning_of(asked.text("text"))
        if not text.strip():
            return markup.notice("Type a sentence. The translation changes as you type.")
        written = self.run.write(text, beam_size=asked.integer("beam_size", 1, WIDEST_BEAM, 4) or 1)
        maps = self.run.cross_maps(text, written)
        view = markup.View(maps, asked)
        translation = self.run.tokenizers.target.decode(written)
        return (
            f'<p class="verdict translation">{escape(translation) or "<i>The translation is empty.</i>"}</p>'
            f"{markup.LEGEND}"
            f'<div class="attention" {view.data()}>'
            f'<div class="text">{markup.tokens(maps[0].keys, "column")}</div>'
            f'<div class="text written">{markup.tokens(maps[0].queries, "row")}</div></div>'
            f"{view.choices()}{markup.notes(notes + self.run.cut_notes(text))}"
        )
