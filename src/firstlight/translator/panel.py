"""Panel of a translator in the playground: the translation of a sentence, and its cross-attention."""

import json
from typing import Any

from firstlight.kind.panel import Answer, Inputs, Panel, beginning_of, view_of
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

    def answer(self, asked: Inputs) -> Answer:
        """Return the translation and the attention. asked: text; beam_size; map and head of the attention."""
        text, notes = beginning_of(asked.text("text"))
        if not text.strip():
            return {"notice": "Type a sentence. The translation changes as you type."}
        written = self.run.write(text, beam_size=asked.integer("beam_size", 1, WIDEST_BEAM, 4) or 1)
        maps = self.run.cross_maps(text, written)
        return {
            "translation": self.run.tokenizers.target.decode(written),
            "pair": {"columns": maps[0].keys, "rows": maps[0].queries},
            "view": view_of(maps, asked),
            "notes": notes + self.run.cut_notes(text),
        }
