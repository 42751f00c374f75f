"""What `predict` asks of a run, answered by a class for each kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar


class Predictor(ABC):
    """Predictions of a run for texts.

    Attributes:
        run: The run.
        options: Those of the kind's `prediction_options` that were given, by name.
    """

    column_key: ClassVar[str] = "text_column"  # the option of the training's data that names the column of the texts

    def __init__(self, run: Any, options: dict[str, Any]) -> None:
        self.run, self.options = run, options

    @abstractmethod
    def show(self, texts: list[str]) -> None:
        """Print the prediction for each text. Raises UserError for a text that cannot be read."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of the values that `rows` yields."""

    @abstractmethod
    def rows(self, texts: Iterable[str]) -> Iterator[list[Any]]:
        """Yield the values of `columns` for each text."""
