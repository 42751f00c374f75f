"""Folds of cross-validation, long texts, groups of rows, and rows of multiple choice. Imports nothing heavy."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from firstlight.choices import listed, require
from firstlight.errors import UserError
from firstlight.files.rows import MissingColumnError
from firstlight.text.options import PAIR_SEPARATOR


class FoldRows(Enum):
    """The rows that cross-validation divides into folds: the training rows, or the rows of all splits."""

    train = "train"
    all = "all"


@dataclass(kw_only=True)
class FoldOptions:
    """Options of cross-validation.

    Args:
        folds: Number of parts of cross-validation, of which data.fold is the test split of this run; null: no
            cross-validation. Each part has the same share of every class. With data.group_column, no group is divided.
        fold: Number of the part that is the test split, from 0.
        fold_rows: Rows that are divided: train keeps the validation split and leaves out the test split of the data,
            and all also divides these two.
        fold_seed: Seed of the division, which no other seed changes.
    """

    folds: int | None = None
    fold: int = 0
    fold_rows: FoldRows = FoldRows.train
    fold_seed: int = 0

    def check_folds(self) -> None:
        """Raise ValueError for values that are out of range."""
        folds, fold = self.folds, f"data.fold={self.fold}"
        require(self.fold_seed >= 0, f"data.fold_seed={self.fold_seed} must be at least 0")
        require(folds is not None or self.fold == 0, f"{fold} requires data.folds; set it to the number of parts")
        require(folds is None or folds >= 2, f"data.folds={folds} must be at least 2, or null")
        require(folds is None or 0 <= self.fold < folds, f"{fold} must be at least 0 and below data.folds={folds}")


class LongTexts(Enum):
    """The reading of a text longer than the context: the tokens that data.truncation keeps, or windows of all of it."""

    cut = "cut"
    windows = "windows"


@dataclass(kw_only=True)
class RowOptions:
    """Options of long texts and of groups of rows.

    Args:
        long_texts: Reading of texts longer than context_length: cut (data.truncation), or windows over the whole text,
            whose outputs are averaged. It applies to all but the training, for which data.random_span reads them.
        group_column: Column with the group of each row, such as its source, for the accuracy of each group in
            evaluation; or column:pattern, a regular expression whose first group is the name; null: no groups.
        fold_group: Group whose rows alone data.folds divides, such as the source of the texts to predict; the rows of
            the other groups are training rows of each fold; null: all rows are divided, and no group is.
        group_weights: Weight of the texts of a group in the training loss, as in 'data.group_weights={books:2}'; 1 for
            the other groups; null: 1 for all.
        finish_on: Group of which alone the last training steps draw rows, such as the source of the texts to predict;
            null: all steps draw from all rows.
        finish_share: Share of the training steps for data.finish_on, between 0 and 1.
    """

    long_texts: LongTexts = LongTexts.cut
    group_column: str | None = None
    fold_group: str | None = None
    group_weights: dict[str, float] | None = None
    finish_on: str | None = None
    finish_share: float = 0.2

    def check_rows(self, text_columns: Sequence[str]) -> None:
        """Raise ValueError for windows of several texts, a wrong pattern, and weights or a share out of range."""
        if self.long_texts is LongTexts.windows and len(text_columns) > 1:
            raise ValueError("data.long_texts=windows requires single texts; set it to cut, or name one column")
        if self.group_column is not None:
            column_and_pattern(self.group_column)
        for key in ("fold_group", "group_weights", "finish_on"):
            if self.group_column is None and getattr(self, key) is not None:
                raise ValueError(f"data.{key} requires data.group_column; set it to the column of the groups")
        require(0 < self.finish_share < 1, f"data.finish_share={self.finish_share} must lie between 0 and 1")
        given: Any = self.group_weights  # of any type on the command line
        problem = f"data.group_weights={given} must be a mapping, as in 'data.group_weights={{books:2}}'"
        require(given is None or isinstance(given, Mapping), problem)
        for name, weight in (given or {}).items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                raise ValueError(f"data.group_weights: the weight {weight} of {name} must be a finite number above 0")


def column_and_pattern(group_column: str) -> tuple[str, re.Pattern[str]]:
    """Return the column of `data.group_column`, and the pattern whose first group is the name.

    The pattern follows the first colon. Without one, the complete value is the name. Raises ValueError for a pattern
    that is not a regular expression with a group.
    """
    column, _, text = group_column.partition(":")
    try:
        pattern = re.compile(text or "(.*)", re.DOTALL)
    except re.error as error:
        raise ValueError(f"data.group_column={group_column}: {error}; correct the regular expression") from None
    problem = f"data.group_column={group_column} must be a column, or a pattern such as id:^(.+)_; change it"
    require(bool(column and pattern.groups), problem)
    return column, pattern


def groups_of(source: Any, group_column: str, rows: Iterable[int]) -> list[str]:
    """Return the name of the group of each row, which is read again from the source.

    source: a `Source`. Raises UserError for a missing column, and for a value without the pattern.
    """
    column, pattern = column_and_pattern(group_column)
    try:
        values = [str(value) for (value,) in source.values([column], rows)]
    except MissingColumnError as error:
        raise UserError(f"data.group_column={group_column}: {error}") from None
    names = [match and match[1] for match in map(pattern.search, values)]
    for value, name in zip(values, names, strict=True):
        if not name:
            problem = f"data.group_column={group_column}: {value!r} of {source.where} names no group"
            raise UserError(f"{problem}; change the column or the pattern")
    return [str(name) for name in names]


def refuse_unknown_groups(key: str, wanted: Iterable[str], groups: Iterable[str]) -> None:
    """Raise UserError for the name of no group. key: the option; groups: that of each training row."""
    known = sorted(set(map(str, groups)))
    for name in wanted:
        if name not in known:
            problem = f"data.{key}: {name} is not a group of the training rows"
            raise UserError(f"{problem}; the groups are {listed(known, most=20)}")


if TYPE_CHECKING:  # the options of the data import nothing heavy
    import numpy as np
    from numpy.typing import NDArray

LONGEST_QUOTE = 40  # characters of a text in a message


def longest(lengths: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the length of each row, (rows,). lengths: (rows,), or (rows, choices) of the pairs of each row."""
    return lengths if lengths.ndim == 1 else lengths.max(axis=1)


def by_row(numbers: "NDArray[Any]", choices: "ChoiceRows | None") -> "NDArray[Any]":
    """Return an array with a number for each text, (texts,), as (rows,), or as (rows, choices) for multiple choice."""
    return numbers if choices is None else numbers.reshape(-1, choices.num_choices)


@dataclass(frozen=True)
class ChoiceRows:
    """Layout of rows of multiple choice: the texts of the context, followed by the possible answers.

    num_contexts: the number of texts that form the context; num_choices: the number of answers.
    """

    num_contexts: int
    num_choices: int

    def pairs(self, texts: Iterable[str | Sequence[str]]) -> Iterator[tuple[str, str]]:
        """Yield `num_choices` pairs for each row: the context with each answer.

        texts: rows as sequences of texts, or as strings with ||| between their texts. Raises UserError for a row with
        another number of texts.
        """
        for text in texts:
            parts = self._parts(text)
            context = " ".join(parts[: -self.num_choices])
            for answer in parts[-self.num_choices :]:
                yield context, answer

    def _parts(self, text: str | Sequence[str]) -> list[str]:
        """Return the context, as one text or as `num_contexts` texts, and the answers."""
        parts = [part.strip() for part in text.split(PAIR_SEPARATOR)] if isinstance(text, str) else list(text)
        if len(parts) - self.num_choices in (1, self.num_contexts) and all(isinstance(part, str) for part in parts):
            return parts
        form = f"write a context and {self.num_choices} answers with {PAIR_SEPARATOR} between them"
        if not isinstance(text, str):
            form = f"give a tuple of a context and {self.num_choices} answers"
        problem = f"the network chooses among {self.num_choices} answers to a context, but a row has"
        raise UserError(f"{problem} the texts {shorten(repr(parts), LONGEST_QUOTE, placeholder='…')}; {form}")
