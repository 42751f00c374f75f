"""Labels and their meaning: stars, negative or positive, or classes with any name."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from firstlight.choices import listed
from firstlight.data.options import Labels
from firstlight.errors import UserError

STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
SENTIMENTS = ("negative", "positive")
LEFT_OUT = -1
SENTIMENT_OF_STAR = np.array([0, 0, LEFT_OUT, 1, 1])  # 3 stars are left out, as in post 1
SENTIMENT_OF_WORD = {"negative": 0, "neg": 0, "positive": 1, "pos": 1}
MOST_CLASSES = 1000
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class LabelReader:
    """Converter of the values of a label column into numbers, whose errors name file and line.

    names: the labels in order, empty before `learn`; sentiments: the index of the sentiment of each label, None if the
    labels are not sentiments; choices: the index of each label of multiple choice, None for other labels.
    """

    kind: Labels
    column: str
    lowest: int = 0
    names: Sequence[str] = ()
    sentiments: Mapping[str, int] | None = None
    choices: Mapping[str, int] | None = None

    def learn(self, values: Iterable[Any]) -> Self:
        """Return a reader with the meaning of the labels: stars, two sentiments, or the distinct values in order."""
        found = {canonical(value) for value in values} - {""}
        if self.kind is not Labels.classes:
            sentiments = _sentiments(found, self.lowest) if self.kind is Labels.binary else None
            return replace(self, names=STARS if sentiments is None else SENTIMENTS, sentiments=sentiments)
        if len(found) < 2:
            raise UserError(
                f"data.label_column={self.column} must have 2 or more distinct values, not {len(found)}; change it"
            )
        if len(found) > MOST_CLASSES:
            raise UserError(
                f"data.label_column={self.column} has {len(found)} distinct values, over {MOST_CLASSES}; change it"
            )
        return replace(self, names=sorted(found, key=_numbers_first))

    def learn_sentiments(self, values: Iterable[Any]) -> Self:
        """Return a reader of labels that mean two sentiments, even if only one of them occurs."""
        found = {canonical(value) for value in values} - {""}
        return replace(self, names=SENTIMENTS, sentiments=_sentiments(found, self.lowest, are_known=True))

    def learn_choices(self, columns: Sequence[str]) -> Self:
        """Return a reader of labels that name one of the columns, or its number.

        The columns are numbered from `lowest`. If the name of a column is a number, labels are names only.
        """
        choices = {name: index for index, name in enumerate(columns)}
        if not any(_WHOLE_NUMBER.fullmatch(name) for name in columns):
            choices |= {str(index + self.lowest): index for index in range(len(columns))}
        return replace(self, names=tuple(columns), choices=choices)

    def read(self, value: Any, place: str) -> int:
        """Return the number of a label. Raises UserError with its place, such as reviews.csv:12."""
        text = canonical(value)
        if not text:
            raise UserError(f"{place}: the label in column {self.column} is missing; remove the row, or fill it in")
        if self.choices is not None:
            return self._read_choice(text, place)
        if self.sentiments is not None and text in self.sentiments:
            return self.sentiments[text]
        if self.kind is Labels.classes:
            if text not in self.names:
                raise UserError(f"{place}: label {text} is not a class of the training data: {', '.join(self.names)}")
            return self.names.index(text)
        if not _WHOLE_NUMBER.fullmatch(text):
            raise UserError(
                f"{place}: label {text} is not a whole number of stars; other labels require data.labels=classes, "
                "as in task=reviews"
            )
        star = int(text) - self.lowest
        if not 0 <= star < len(STARS):
            highest = self.lowest + len(STARS) - 1
            first = {0: 0, len(STARS): 1}.get(int(text))
            remedy = f"set data.lowest_label={first} if the file counts stars from {first}" if first is not None else ""
            raise UserError(f"{place}: label {text} is outside {self.lowest} to {highest}; {remedy or 'correct it'}")
        return star

    def _read_choice(self, text: str, place: str) -> int:
        assert self.choices is not None
        if text in self.choices:
            return self.choices[text]
        numbers, remedy = "", "correct it"
        if len(self.choices) > len(self.names):
            highest = self.lowest + len(self.names) - 1
            numbers = f", or a number from {self.lowest} to {highest}"
            first = {str(highest + 1): self.lowest + 1, str(self.lowest - 1): self.lowest - 1}.get(text)
            remedy = remedy if first is None else f"set data.lowest_label={first} if the file counts from {first}"
        raise UserError(f"{place}: label {text} is not one of the answers, {', '.join(self.names)}{numbers}; {remedy}")


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
        raise UserError(
            f"data.class_names=[{','.join(given)}] must be {len(label_names)} different new names, or the labels in "
            f"the order of the classes; the labels are {', '.join(label_names)}"
        )
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
        return {
            value: None if target == LEFT_OUT else self.class_names[target] for value, target in self.targets.items()
        }

    def missing(self, targets: NDArray[np.int64]) -> str | None:
        """Return a sentence that names the classes without rows, or None if each has rows. targets: (rows,)."""
        without = [name for number, name in enumerate(self.class_names) if not (targets == number).any()]
        return f"no row is {listed(without, 'or')}" if without else None

    def doubt(self, lowest: int) -> str | None:
        """Return why the labels may not be stars and which option to set, or None if they are not in doubt.

        It applies to two classes whose labels were read as stars counted from `lowest`.
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
