"""Rows with a text for `explore`, as texts and as token ids."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data.encoding import EncodedTexts
from firstlight.data.options import Labels, ReviewOptions, TextOptions
from firstlight.data.sources import Source, find_source
from firstlight.errors import UserError
from firstlight.kinds.data_changes import DataChanges, changed_options


@dataclass(frozen=True, eq=False)
class Reviews:
    """Rows with a text, as texts and as token ids."""

    source: Source
    options: TextOptions
    encoded: EncodedTexts
    labels: Labels | None = None  # how the labels become targets, for a run

    def __post_init__(self) -> None:
        if not len(self.encoded.rows_of("train")):
            raise UserError(f"{self.source.where} has no train split; choose data with one")

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the texts of some rows, which are read from the source again."""
        return self.source.texts(self.options.text_columns, rows.tolist())


def find_reviews(saved: dict[str, Any], changes: DataChanges, log_dir: Path) -> tuple[Source, Any]:
    """Return the source of the texts of a run or task, and their options. saved: its data options.

    The options are `ReviewOptions` for labelled texts, else `TextOptions`.
    """
    kind = ReviewOptions if "labels" in saved else TextOptions
    known = {each.name for each in fields(kind)}  # without other options, such as those of masking
    options: TextOptions = changed_options({key: saved[key] for key in saved.keys() & known}, kind, changes, log_dir)
    return find_source(options, sample=options.sample.value), options
