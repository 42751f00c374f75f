"""The command `predict` for masked language models."""

from collections.abc import Iterable, Iterator
from typing import Any

from firstlight.kinds.masked.loaded import LoadedMasked
from firstlight.kinds.predictor import Predictor
from firstlight.lit.filling import Filling
from firstlight.terminal_text import say, write_out


class FillingPredictor(Predictor):
    """Predictor of the masked words of each text, with the candidates and their probabilities."""

    run: LoadedMasked

    def show(self, texts: list[str]) -> None:
        for text in texts:
            filled = self.run.fill_in(text)
            write_out(filled.text)
            for number, fillings in enumerate(filled.fillings, start=1):
                of_many = f" {number}" if len(filled.fillings) > 1 else ""
                say(f"  [MASK]{of_many}: {listed(fillings)}")

    @property
    def columns(self) -> list[str]:
        return ["filled", "fillings"]

    def rows(self, texts: Iterable[str]) -> Iterator[list[Any]]:
        for filled in self.run.fill_in_many(texts):
            yield [filled.text, "; ".join(map(listed, filled.fillings))]


def listed(fillings: list[Filling]) -> str:
    """Return the words for one [MASK] and their probabilities as text."""
    return ", ".join(f"{filling.word} {filling.probability:.3f}" for filling in fillings)
