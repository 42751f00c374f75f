"""What a label column means: stars, negative or positive, or classes of any name."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data.options import Labels
from firstlight.errors import UserError

STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
SENTIMENTS = ("negative", "positive")
LEFT_OUT = -1
SENTIMENT_OF_STAR = np.array([0, 0, LEFT_OUT, 1, 1])  # post 1: 3 stars are left out
MOST_CLASSES = 1000
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class LabelReader:
    """Turns the values of a label column into numbers, and complains with file and line.

    names: the labels in order, or empty until `learn` has seen the values.
    """

    kind: Labels
    column: str
    lowest: int = 0
    names: Sequence[str] = ()

    def learn(self, values: Iterable[Any]) -> "LabelReader":
        """A reader that knows the classes: the stars, or the different values in order."""
        if self.kind is not Labels.classes:
            return LabelReader(self.kind, self.column, self.lowest, STARS)
        found = {canonical(value) for value in values} - {""}
        if len(found) < 2:
            raise UserError(
                f"data.label_column={self.column} has {len(found)} different value; a task needs two classes"
            )
        if len(found) > MOST_CLASSES:
            raise UserError(
                f"data.label_column={self.column} has {len(found)} different values; is it the label column?"
            )
        return LabelReader(self.kind, self.column, self.lowest, sorted(found, key=_numbers_first))

    def read(self, value: Any, place: str) -> int:
        """The number of a label, or UserError naming the place, such as reviews.csv:12."""
        text = canonical(value)
        if not text:
            raise UserError(f"{place}: the label in column {self.column} is missing; remove the row, or fill it in")
        if self.kind is Labels.classes:
            if text not in self.names:
                raise UserError(f"{place}: label {text} is not one of the classes of training: {', '.join(self.names)}")
            return self.names.index(text)
        if not _WHOLE_NUMBER.fullmatch(text):
            raise UserError(
                f"{place}: label {text} is not a whole number of stars; other labels need data.labels=classes"
            )
        star = int(text) - self.lowest
        if not 0 <= star < len(STARS):
            highest = self.lowest + len(STARS) - 1
            first = {0: 0, len(STARS): 1}.get(int(text))
            remedy = f"set data.lowest_label={first} if the file counts stars from {first}" if first is not None else ""
            raise UserError(f"{place}: label {text} is outside {self.lowest} to {highest}; {remedy or 'correct it'}")
        return star


def canonical(value: Any) -> str:
    """A label as text, the same whether it was read from CSV, JSON or Parquet: 4, 4.0 and "4" are one."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    whole = text.removesuffix(".0")
    return whole if _WHOLE_NUMBER.fullmatch(whole) else text


def targets_of(labels: NDArray[np.int64], kind: Labels) -> NDArray[np.int64]:
    """What is predicted of each label; LEFT_OUT where nothing is. labels: (rows,) -> (rows,)."""
    return SENTIMENT_OF_STAR[labels] if kind is Labels.binary else labels


def class_names_of(kind: Labels, label_names: Sequence[str], given: Sequence[str] | None = None) -> list[str]:
    """What the predicted classes are called. Raises UserError if the given names do not fit the data."""
    if kind is Labels.binary:
        return list(SENTIMENTS)
    if given is None:
        return list(label_names)
    if len(given) != len(label_names):
        raise UserError(
            f"data.class_names has {len(given)} names, but the data has {len(label_names)} classes: "
            f"{', '.join(label_names)}"
        )
    return list(given)


def _numbers_first(label: str) -> tuple[int, float, str]:
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)
