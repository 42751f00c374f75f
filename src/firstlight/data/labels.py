"""Labels and their meaning: stars, negative or positive, or classes with any name."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from firstlight.choices import listed
from firstlight.data.options import Labels
from firstlight.errors import UserError

STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
SENTIMENTS = ("negative", "positive")
LEFT_OUT = -1
SENTIMENT_OF_STAR = np.array([0, 0, LEFT_OUT, 1, 1])  # 3 stars are left out, as in post 1 (reviews)
SENTIMENT_OF_WORD = {"negative": 0, "neg": 0, "positive": 1, "pos": 1}
MOST_CLASSES = 1000
MOST_NUMBERS = 50  # classes that are numbers with decimals
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class LabelReader:
    """Converter of the values of a label column into numbers, whose errors name file and line.

    names: the names of the labels in order; numbers: the number of each label; lowest: the number from which the labels
    are counted, None if they are not counted; expected: what a label must be, for messages.
    """

    column: str
    names: Sequence[str]
    numbers: Mapping[str, int]
    lowest: int | None
    expected: str

    def read(self, value: Any, place: str) -> int:
        """Return the number of a label. Raises UserError with its place, such as reviews.csv:12."""
        text = canonical(value)
        if not text:
            problem = f"{place}: the label in column {self.column} is missing; remove the row, or fill it in"
            raise UserError(f"{problem}; for texts with several labels, or none, see docs/own-tasks.md")
        is_counted = self.lowest is not None and _WHOLE_NUMBER.fullmatch(text) is not None
        number = self.numbers.get(str(int(text)) if is_counted else text)
        if number is None:
            problem = self._out_of_range(int(text)) if is_counted else f"is not {self.expected}"
            raise UserError(f"{place}: label {text} {problem}")
        return number

    def _out_of_range(self, label: int) -> str:
        assert self.lowest is not None
        highest, remedy = self.lowest + len(self.names) - 1, "correct it"
        if label in (self.lowest - 1, highest + 1):
            first = self.lowest + (1 if label > highest else -1)
            remedy = f"set data.lowest_label={first} if the file counts from {first}"
        return f"is outside {self.lowest} to {highest}; {remedy}"


def reader_of(
    column: str, kind: Labels, lowest: int, values: Iterable[Any], names: Sequence[str] | None = None
) -> LabelReader:
    """Return the reader of labels that are stars, two sentiments or classes. Raises UserError.

    values: the labels that occur, of which the classes are learned; names: the classes of a trained network, or None.
    """
    found = {canonical(value) for value in values} - {""}
    are_known = kind is Labels.classes and tuple(names or ()) == SENTIMENTS
    if kind is Labels.binary or are_known:
        sentiments = _sentiments(found, lowest, are_known=are_known)
        if sentiments is not None:
            return LabelReader(column, SENTIMENTS, sentiments, None, "a sentiment")
    if kind is not Labels.classes:
        numbers = {str(lowest + star): star for star in range(len(STARS))}
        expected = "a whole number of stars; other labels require data.labels=classes, as in task=reviews"
        return LabelReader(column, STARS, numbers, lowest, expected)
    if names is None:
        names = sorted(found, key=_numbers_first)
        if len(names) == 1:
            problem = f"data.label_column={column}: every row has the label {names[0]!r}"
            raise UserError(f"{problem}; add rows of another class, or name another column")
        if not 2 <= len(names) <= MOST_CLASSES:
            allowed = f"2 to {MOST_CLASSES} distinct values"
            raise UserError(f"data.label_column={column} must have {allowed}, not {len(names)}; change it")
        are_numbers = all(_numbers_first(name)[0] == 0 for name in names)
        if are_numbers and sum("." in name for name in names) > MOST_NUMBERS:
            problem = f"data.label_column={column} has {len(names)} different numbers, such as {names[0]}"
            raise UserError(f"{problem}; docs/own-tasks.md predicts a number; for classes, give them names")
    numbers = {name: number for number, name in enumerate(names)}
    return LabelReader(column, names, numbers, None, f"a class of the training data: {', '.join(names)}")


def reader_of_choices(column: str, choices: Sequence[str], lowest: int) -> LabelReader:
    """Return a reader of labels that name one of the columns `choices`, or its number, counted from `lowest`.

    If the name of a column is a number, labels are names only.
    """
    numbers = {name: number for number, name in enumerate(choices)}
    expected = f"one of the answers, {', '.join(choices)}; correct it"
    if any(_WHOLE_NUMBER.fullmatch(name) for name in choices):
        return LabelReader(column, choices, numbers, None, expected)
    numbers |= {str(number + lowest): number for number in range(len(choices))}
    return LabelReader(column, choices, numbers, lowest, expected)


def canonical(value: Any) -> str:
    """Return a label as text. It does not depend on the file format: 4, 4.0 and "4" are the same label."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    whole = text.removesuffix(".0")
    return whole if _WHOLE_NUMBER.fullmatch(whole) else text


def _sentiments(values: set[str], lowest: int, *, are_known: bool = False) -> dict[str, int] | None:
    """Return the sentiment of each label, or None if the labels are stars.

    Sentiments are 0 and 1, -1 and 1, the two lowest labels, or words. are_known: accept only one of the two numbers.
    """
    if values and all(value.casefold() in SENTIMENT_OF_WORD for value in values):
        return {value: SENTIMENT_OF_WORD[value.casefold()] for value in values}
    for pair in (("0", "1"), ("-1", "1"), (str(lowest), str(lowest + 1))):
        if values == set(pair) or (are_known and values and values < set(pair)):
            return dict(zip(pair, (0, 1), strict=True))
    return None


def targets_of(labels: NDArray[np.int64], kind: Labels, label_names: Sequence[str] = STARS) -> NDArray[np.int64]:
    """Return the class to predict for each label, or LEFT_OUT. labels: (rows,) -> (rows,).

    label_names: the names of the labels. For `Labels.binary` these are the stars or the two sentiments.
    """
    return SENTIMENT_OF_STAR[labels] if kind is Labels.binary and tuple(label_names) == STARS else labels


def class_names_of(kind: Labels, label_names: Sequence[str], given: Sequence[str] | None = None) -> list[str]:
    """Return the names of the classes.

    Raises UserError if the number of given names differs from that of the data, or if a name is another class's label.
    """
    if kind is Labels.binary:
        return list(SENTIMENTS)
    if given is None:
        return list(label_names)
    given = list(map(str, given))
    swaps = any(name in label_names and name != label for name, label in zip(given, label_names, strict=False))
    if swaps or len(given) != len(label_names) or len(set(given)) < len(given):
        problem = f"data.class_names=[{','.join(given)}] must be {len(label_names)} different new names, or the labels"
        raise UserError(f"{problem} in the order of the classes; the labels are {', '.join(label_names)}")
    return given


def alike(labels: Iterable[str]) -> str | None:
    """Return a sentence on two labels that look or mean the same, or None if all differ.

    These are numbers of the same value, and texts without their case, spaces, invisible characters and Unicode form.
    """
    found: dict[str, str] = {}
    for label in labels:
        kind, number, _ = _numbers_first(label)
        text = unicodedata.normalize("NFKC", label).casefold()
        visible = "".join(c for c in text if not c.isspace() and unicodedata.category(c) != "Cf")
        if (other := found.setdefault(visible if kind else repr(number), label)) != label:
            return f"the labels {other!a} and {label!a} are two classes; if they mean the same, write them alike"
    return None


def _numbers_first(label: str) -> tuple[int, float, str]:
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)


@dataclass(frozen=True)
class LabelReading:
    """How the labels of some data were read.

    targets: the class to predict for each label, or LEFT_OUT, in the order of the labels; class_names: the names of
    the classes.
    """

    targets: Mapping[str, int]
    class_names: Sequence[str]

    @classmethod
    def of(cls, meanings: Mapping[str, int], kind: Labels, label_names: Sequence[str], classes: Sequence[str]) -> Self:
        """Return the reading of some labels. meanings: the number of each label, as in `EncodedTexts`."""
        values = sorted(meanings, key=_numbers_first)
        numbers = np.array([meanings[value] for value in values], dtype=np.int64)
        return cls(dict(zip(values, targets_of(numbers, kind, label_names).tolist(), strict=True)), classes)

    def __str__(self) -> str:
        """Return a line such as `labels 0, 1 → negative, positive`."""
        used = [value for value, target in self.targets.items() if target != LEFT_OUT]
        left_out = [value for value, target in self.targets.items() if target == LEFT_OUT]
        names = [self.class_names[self.targets[value]] for value in used]
        note = f" ({listed(left_out)} left out)" if left_out else ""
        return f"labels {listed(used) or 'none'} → {listed(names) or 'none'}{note}"

    def record(self) -> dict[str, str | None]:
        """Return the class name of each label, or None if the label is left out."""
        names = {LEFT_OUT: None} | dict(enumerate(self.class_names))
        return {value: names[target] for value, target in self.targets.items()}

    def missing(self, targets: NDArray[np.int64]) -> str | None:
        """Return a sentence that names the classes without rows, or None if each has rows. targets: (rows,)."""
        without = [name for number, name in enumerate(self.class_names) if not (targets == number).any()]
        return f"no row is {listed(without, 'or')}" if without else None

    def doubt(self, lowest: int) -> str | None:
        """Return why two labels, read as stars counted from `lowest`, may be two classes, and which option to set.

        Returns None unless they are two labels of one class.
        """
        if len(self.targets) != 2 or len(set(self.targets.values()) - {LEFT_OUT}) == 2:
            return None
        first, second = self.targets
        problem = f"{self}, if they are stars from {lowest} to {lowest + len(STARS) - 1}"
        remedy = f"set data.lowest_label={first} if {first} is negative and {second} positive"
        return f"{problem}; {remedy}, or data.labels=stars if they are stars"
