"""A trained tagger."""

from collections.abc import Iterable, Iterator

import torch

from firstlight.callbacks import TokenAccuracy
from firstlight.callbacks.token_metrics import measure_tokens
from firstlight.errors import UserError
from firstlight.kind.attention import Attention, collect
from firstlight.kind.kind import Measurement
from firstlight.kind.run import SPLIT, PredictingRun, first_drawable
from firstlight.terminal_text import write_out
from tagging.data import TagData, ids_of_words


class TaggerRun(PredictingRun):
    """Trained tagger, which returns a tag for each word of a text."""

    kind = "tagger"
    metric_callbacks = (TokenAccuracy,)
    columns = ("tags",)

    def tag(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text that the network reads, each with its tag. Raises UserError without words."""
        words, ids = self.read(text)
        with torch.inference_mode():
            numbers = self.network(ids)[0].argmax(dim=1).tolist()
        names = self.metadata["class_names"]
        return [(word, names[number]) for word, number in zip(words, numbers, strict=True)]

    def read(self, text: str) -> tuple[list[str], torch.Tensor]:
        """Return the words of a text that fit the context, and their ids, (1, words)."""
        words = text.split()[: self.network.context_length]
        if not words:
            raise UserError(f"the text {text!r} has no words; write some")
        return words, torch.tensor([ids_of_words(self.tokenizer, words)])

    def rows(self, texts: Iterable[str]) -> Iterator[list[str]]:
        return ([" ".join(tag for _, tag in self.tag(text))] for text in texts)

    def show(self, texts: list[str]) -> None:
        for text in texts:
            write_out("  ".join(f"{word}/{tag}" for word, tag in self.tag(text)))

    def measure(self, data: TagData, split: str) -> Measurement:
        rows = data.rows(split)
        if not len(rows):
            raise UserError(f"{data.source.where} has no {split} rows; choose another --split")
        return Measurement(measure_tokens(self, data.evaluation_loader(rows)), {"rows": len(rows)})

    def some_text(self, data: TagData) -> str:
        rows = data.rows(SPLIT)
        return data.source.texts(["text"], rows[[first_drawable(data.lengths(rows))]].tolist())[0]

    def made_up_text(self) -> str:
        return "the dog sees a cat"

    def _attention(self, text: str) -> Attention:
        words, ids = self.read(text)
        return Attention(collect(self.network, (ids,), words, words))
