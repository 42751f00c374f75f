"""Interface between `predict` and the runs of each kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar


class Predictor(ABC):
    """Base class of the predictors, which return the predictions of a run for texts.

    Attributes:
        run: The run.
        options: The given options by name. They are a subset of the kind's `prediction_options`.
    """

    column_key: ClassVar[str] = "text_column"  # data option of the training with the name of the column

    def __init__(self, run: Any, options: dict[str, Any]) -> None:
        self.run, self.options = run, options

    @property
    def trained_columns(self) -> list[str]:
        """Return the columns of the texts in the training data."""
        named = self.run.config["data"].get(self.column_key)
        return [named] if isinstance(named, str) else list(named or ())

    @abstractmethod
    def show(self, texts: list[str]) -> None:
        """Print the prediction for each text. Raises UserError for a text that cannot be read."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of the values of `rows`."""

    @abstractmethod
    def rows(self, texts: Iterable[Any]) -> Iterator[list[Any]]:
        """Yield the values of `columns` for each text, or for each tuple of texts if the run reads several columns."""
