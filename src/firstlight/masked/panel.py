"""Panel of a masked language model in the playground: the words for each [MASK] of a text."""

from typing import Any

from firstlight.kind.attention import has_attention
from firstlight.kind.panel import Answer, Inputs, Panel, beginning_of, view_of
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.run import MaskedRun
from firstlight.text.tokenizers import MASK

NUM_WORDS = 8  # for each [MASK]
MOST_MASKS = 10  # masks with bars


class MaskedPanel(Panel):
    """Panel that shows the most probable words and the attention for a text."""

    kind = "masked"
    title = "Fill in masked words"
    network = MaskedLanguageModel
    run: MaskedRun

    def examples(self) -> tuple[str, ...]:
        return self.texts("reviews")

    def page_data(self) -> dict[str, Any]:
        return super().page_data() | {"truncation": self.run.truncation.name}

    def answer(self, asked: Inputs) -> Answer:
        """Return the most probable words and the attention. asked: text; map and head of the attention."""
        text, notes = beginning_of(asked.text("text"))
        if MASK not in text:
            return {"notice": f"Type a text with {MASK} in place of a word. The predictions change as you type."}
        filled = self.run.fill_in(text, NUM_WORDS)
        words = (zip(*fillings, strict=True) for fillings in filled.fillings[:MOST_MASKS])
        bars = [{"names": names, "shares": shares} for names, shares in words]
        answer: Answer = {"verdict": filled.text, "bars": bars, "notes": notes}
        if has_attention(self.run.network):
            maps = self.run.attention(text).maps
            answer |= {"tokens": maps[0].keys, "view": view_of(maps, asked)}
        return answer
