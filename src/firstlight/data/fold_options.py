"""The options of cross-validation. This module imports nothing heavy."""

from dataclasses import dataclass
from enum import Enum


class FoldRows(Enum):
    """The rows that cross-validation divides into folds: the training rows, or the rows of all splits."""

    train = "train"
    all = "all"


@dataclass(kw_only=True)
class FoldOptions:
    """Options of cross-validation.

    Args:
        folds: Number of parts of cross-validation, of which data.fold is the test split of this run; null: no
            cross-validation. Each part has the same share of every class.
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
        if self.fold_seed < 0:
            raise ValueError(f"data.fold_seed={self.fold_seed} must be at least 0")
        if self.folds is None:
            if self.fold != 0:
                raise ValueError(f"data.fold={self.fold} requires data.folds; set it to the number of parts")
        elif self.folds < 2:
            raise ValueError(f"data.folds={self.folds} must be at least 2, or null")
        elif not 0 <= self.fold < self.folds:
            raise ValueError(f"data.fold={self.fold} must be at least 0 and below data.folds={self.folds}")
