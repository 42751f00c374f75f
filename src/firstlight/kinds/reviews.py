"""Labelled texts that are explored, as they were found and as ids."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data.encoding import EncodedTexts
from firstlight.data.options import ReviewOptions
from firstlight.data.sources import Source, find_source
from firstlight.errors import UserError
from firstlight.kinds.data_changes import DataChanges, changed_options


@dataclass(frozen=True, eq=False)
class Reviews:
    """Labelled texts as they were found, and as ids."""

    source: Source
    options: ReviewOptions
    encoded: EncodedTexts

    def __post_init__(self) -> None:
        if not len(self.encoded.rows_of("train")):
            raise UserError(f"{self.source.where} has no train split")

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """The texts of some rows, read again from the source."""
        return self.source.texts(self.options.text_column, rows.tolist())


def find_reviews(saved: dict[str, Any], changes: DataChanges, log_dir: Path) -> tuple[Source, ReviewOptions]:
    """Return where the labelled texts of a run or task are, and how they are read. saved: its options of the data."""
    options: ReviewOptions = changed_options(saved, ReviewOptions, changes, log_dir)
    return find_source(options, sample=options.sample.value), options
