"""Panel of a tagger in the playground."""

from html import escape

from firstlight.kind.panel import Answer, Inputs, Panel, beginning_of
from tagging.run import TaggerRun


class TaggerPanel(Panel):
    """Panel that shows the tag of each word."""

    kind = "tagger"
    title = "Tag the words of a text"
    run: TaggerRun

    def examples(self) -> tuple[str, ...]:
        return ("the dog sees a cat",)

    def answer(self, asked: Inputs) -> Answer:
        text, notes = beginning_of(asked.text("text"))
        if not text.strip():
            return {"notice": "Type a text. The tags change as you type."}
        words = (f"{escape(word)} <i>{escape(tag)}</i>" for word, tag in self.run.tag(text))
        return {"html": f'<p class="verdict">{" ".join(words)}</p>', "notes": notes}
