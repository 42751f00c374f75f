"""Rows with a text, as texts and as token ids."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data.encoding import EncodedTexts
from firstlight.data.sources import Source


@dataclass(frozen=True, eq=False)
class Texts:
    """Rows with a text. options: an instance of `TextOptions` or of a subclass."""

    source: Source
    encoded: EncodedTexts
    options: Any

    def has_split(self, split: str) -> bool:
        """Return whether a split, such as `"test"`, has rows."""
        return bool(len(self.encoded.rows_of(split)))

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the texts of some rows, which are read from the source again."""
        return self.source.texts(self.options.text_columns, rows.tolist())
