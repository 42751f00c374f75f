"""What a label column means: stars, negative or positive, or classes of any name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from firstlight.data.options import Labels
from firstlight.errors import UserError

STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
SENTIMENTS = ("negative", "positive")
LEFT_OUT = -1
SENTIMENT_OF_STAR = np.array([0, 0, LEFT_OUT, 1, 1])  # post 1: 3 stars are left out
SENTIMENT_OF_WORD = {"negative": 0, "neg": 0, "positive": 1, "pos": 1}
MOST_CLASSES = 1000
MOST_NAMED = 8  # labels or classes in one line
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class LabelReader:
    """Turns the values of a label column into numbers, and complains with file and line.

    names: the labels in order, or empty until `learn` has seen the values; sentiments: which of the two sentiments each
    label means, where the labels are sentiments.
    """

    kind: Labels
    column: str
    lowest: int = 0
    names: Sequence[str] = ()
    sentiments: Mapping[str, int] | None = None

    def learn(self, values: Iterable[Any]) -> Self:
        """Return a reader that knows what the labels mean: stars, two sentiments, or the different values in order."""
        found = {canonical(value) for value in values} - {""}
        if self.kind is not Labels.classes:
            sentiments = _sentiments(found, self.lowest) if self.kind is Labels.binary else None
            return replace(self, names=STARS if sentiments is None else SENTIMENTS, sentiments=sentiments)
        if len(found) < 2:
            raise UserError(
                f"data.label_column={self.column} has {len(found)} different value; a task needs two classes"
            )
        if len(found) > MOST_CLASSES:
            raise UserError(
                f"data.label_column={self.column} has {len(found)} different values; is it the label column?"
            )
        return replace(self, names=sorted(found, key=_numbers_first))

    def learn_sentiments(self, values: Iterable[Any]) -> Self:
        """Return a reader of labels that are known to be two sentiments, even if only one of them occurs."""
        found = {canonical(value) for value in values} - {""}
        return replace(self, names=SENTIMENTS, sentiments=_sentiments(found, self.lowest, are_known=True))

    def read(self, value: Any, place: str) -> int:
        """The number of a label, or UserError naming the place, such as reviews.csv:12."""
        text = canonical(value)
        if not text:
            raise UserError(f"{place}: the label in column {self.column} is missing; remove the row, or fill it in")
        if self.sentiments is not None and text in self.sentiments:
            return self.sentiments[text]
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


def _sentiments(values: set[str], lowest: int, *, are_known: bool = False) -> dict[str, int] | None:
    """What each label means if the labels are two sentiments; None if they are stars.

    The labels are 0 and 1, -1 and 1, the two lowest labels, or words. are_known: one of the two numbers is enough.
    """
    if values and all(value.casefold() in SENTIMENT_OF_WORD for value in values):
        return {value: SENTIMENT_OF_WORD[value.casefold()] for value in values}
    for pair in (("0", "1"), ("-1", "1"), (str(lowest), str(lowest + 1))):
        if values == set(pair) or (are_known and values and values < set(pair)):
            return dict(zip(pair, (0, 1), strict=True))
    return None


def targets_of(labels: NDArray[np.int64], kind: Labels, label_names: Sequence[str] = STARS) -> NDArray[np.int64]:
    """What is predicted of each label; LEFT_OUT where nothing is. labels: (rows,) -> (rows,).

    label_names: what the labels are: the stars, or for `Labels.binary` perhaps the sentiments themselves.
    """
    return SENTIMENT_OF_STAR[labels] if kind is Labels.binary and tuple(label_names) == STARS else labels


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


@dataclass(frozen=True)
class LabelReading:
    """How the labels of some data were read.

    targets: what is predicted of each label, LEFT_OUT where nothing is, in the order of the labels; class_names: those
    of the classes.
    """

    targets: Mapping[str, int]
    class_names: Sequence[str]

    @classmethod
    def of(cls, meanings: Mapping[str, int], kind: Labels, label_names: Sequence[str], classes: Sequence[str]) -> Self:
        """Return what is predicted of each label. meanings: the number of each label, as in `EncodedTexts`."""
        values = sorted(meanings, key=_numbers_first)
        numbers = np.array([meanings[value] for value in values], dtype=np.int64)
        return cls(dict(zip(values, targets_of(numbers, kind, label_names).tolist(), strict=True)), classes)

    def __str__(self) -> str:
        """Say it in one line, such as `labels 0, 1 → negative, positive`."""
        used = [value for value, target in self.targets.items() if target != LEFT_OUT]
        left_out = [value for value, target in self.targets.items() if target == LEFT_OUT]
        names = [self.class_names[self.targets[value]] for value in used]
        note = f" ({listed(left_out)} left out)" if left_out else ""
        return f"labels {listed(used) or 'none'} → {listed(names) or 'none'}{note}"

    def record(self) -> dict[str, str | None]:
        """Return the name of the class of each label, None where it is left out."""
        return {
            value: None if target == LEFT_OUT else self.class_names[target] for value, target in self.targets.items()
        }

    def missing(self, targets: NDArray[np.int64]) -> str | None:
        """Return a sentence about the classes that no row has, or None if there are none. targets: (rows,)."""
        without = [name for number, name in enumerate(self.class_names) if not (targets == number).any()]
        return f"no row is {listed(without, 'or')}" if without else None

    def doubt(self, lowest: int) -> str | None:
        """Return why the labels may be no stars, and what to set; None if they need not be doubted.

        This is for two classes, whose labels were taken for stars that are counted from `lowest`.
        """
        values, found = list(self.targets), set(self.targets.values()) - {LEFT_OUT}
        if len(values) == 1 and values[0] in ("1", str(lowest + 1)):
            remedy = "set data.labels=stars if they are stars, or data.labels=classes if they are 0 and 1"
        elif len(values) == 2 and len(found) < 2:
            first, second = values
            if second == str(lowest + 2) and first == str(lowest + 1):
                remedy = f"set data.lowest_label={first} if {first} is negative and {second} positive"
            else:
                remedy = "write negative and positive in the label column"
            remedy += ", or data.labels=stars if they are stars"
        else:
            return None
        return f"{self}, if they are stars from {lowest} to {lowest + len(STARS) - 1}; {remedy}"


def listed(names: Sequence[str], conjunction: str = "") -> str:
    """Return the names in one line; of many the first and the number of the others."""
    others = len(names) - MOST_NAMED
    if others > 0:
        return f"{', '.join(names[:MOST_NAMED])} and {others} more"
    if conjunction and len(names) > 1:
        return f"{', '.join(names[:-1])} {conjunction} {names[-1]}"
    return ", ".join(names)
