"""The command `predict` for classifiers."""

from collections.abc import Iterable, Iterator
from typing import Any

from firstlight.kinds.classifier.insight import words_of
from firstlight.kinds.classifier.loaded import LoadedClassifier
from firstlight.kinds.predictor import Predictor
from firstlight.terminal_text import note, write_out
from firstlight.text.tokenizers import Text


class ClassPredictor(Predictor):
    """Predictor of the class of each text, with the probabilities of all classes."""

    run: LoadedClassifier

    def show(self, texts: list[str]) -> None:
        for text, prediction in zip(texts, self.run.predict_many(texts), strict=True):
            if not words_of(self.run, text):
                note("the text has no word; this is the prediction for an empty text")
            shares = "  ".join(f"{name} {share:.3f}" for name, share in prediction.probabilities.items())
            write_out(f"{prediction.label}  ({shares})")

    @property
    def trained_columns(self) -> list[str]:
        return [*super().trained_columns, *(self.run.config["data"].get("choice_columns") or ())]

    @property
    def columns(self) -> list[str]:
        return ["label", *(f"probability_{name}" for name in self.run.class_names)]

    def rows(self, texts: Iterable[Text]) -> Iterator[list[Any]]:
        return ([each.label, *each.probabilities.values()] for each in self.run.predict_many(texts))
