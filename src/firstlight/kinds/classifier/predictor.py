"""What `predict` does with a classifier."""

from collections.abc import Iterable, Iterator
from typing import Any

from firstlight.kinds.classifier.loaded import LoadedClassifier
from firstlight.kinds.predictor import Predictor
from firstlight.terminal_text import note, write_out


class ClassPredictor(Predictor):
    """The class of each text, with the probability of every class."""

    run: LoadedClassifier

    def show(self, texts: list[str]) -> None:
        for text, prediction in zip(texts, self.run.predict_many(texts), strict=True):
            if not self.run.tokenizer.encode(text):
                note("no word; this is what the network says of an empty text")
            shares = "  ".join(f"{name} {share:.3f}" for name, share in prediction.probabilities.items())
            write_out(f"{prediction.label}  ({shares})")

    @property
    def columns(self) -> list[str]:
        return ["label", *(f"probability_{name}" for name in self.run.class_names)]

    def rows(self, texts: Iterable[str]) -> Iterator[list[Any]]:
        return ([each.label, *each.probabilities.values()] for each in self.run.predict_many(texts))
