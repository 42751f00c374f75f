"""Panel of a masked language model in the playground: the words for each [MASK] of a text."""

from html import escape
from typing import Any

from firstlight.kind import markup
from firstlight.kind.attention import has_attention
from firstlight.kind.panel import Inputs, Panel, beginning_of
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

    def answer(self, asked: Inputs) -> str:
        """Return the most probable words and the attention, as HTML. asked: text; map and head of the attention."""
        text, notes = beginning_of(asked.text("text"))
        if MASK not in text:
            return markup.notice(f"Type a text with {MASK} in place of a word. The predictions change as you type.")
        filled = self.run.fill_in(text, NUM_WORDS)
        parts = [f'<p class="verdict">{escape(filled.text)}</p>']
        for fillings in filled.fillings[:MOST_MASKS]:
            shares = {filling.word: filling.probability for filling in fillings}
            parts.append(markup.bars(shares, fillings[0].word))
        if has_attention(self.run.network):
            attention = self.run.attention(text)
            view = markup.View(attention.maps, asked)
            words = markup.tokens(attention.maps[0].keys, "row", "column")
            parts += [markup.LEGEND, f'<div class="text attention" {view.data()}>{words}</div>', view.choices()]
        return "".join([*parts, markup.notes(notes)])
