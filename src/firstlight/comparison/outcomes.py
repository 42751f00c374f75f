"""What one run predicted for each text of a split, so that two runs can be compared on the same texts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Losses and hits of a run on the units of a split: texts, sentence pairs, or pieces of a long text.

    rows: (units,) the number of each unit in its data, ascending. losses: (units,) the summed loss in nats. tokens:
    (units,) the number of predictions in each unit, which is 1 for a classifier. correct: (units,) the number of right
    predictions. targets, predicted: (units,) the classes of a classifier; None for other kinds. key: a hash of the
    units and their targets; only outcomes with equal keys can be paired.
    """

    rows: NDArray[np.int64]
    losses: NDArray[np.float32]
    tokens: NDArray[np.int64]
    correct: NDArray[np.int64]
    key: str
    targets: NDArray[np.int64] | None = None
    predicted: NDArray[np.int64] | None = None

    @property
    def is_of_classes(self) -> bool:
        """Whether each unit is one text with one class."""
        return self.predicted is not None

    def values(self, metric: str) -> NDArray[np.float64] | None:
        """Return the mean of each unit, (units,), whose mean weighted by tokens is the metric; None for other metrics.

        A perplexity and bits per character are functions of the loss, whose values they return.
        """
        name = metric.rpartition("/")[2]
        if name in ("loss", "perplexity", "bits_per_character"):
            return self.losses / self.tokens.astype(np.float64)
        if name == "accuracy":
            return self.correct / self.tokens.astype(np.float64)
        if name == "mean_absolute_error" and self.predicted is not None and self.targets is not None:
            return np.abs(self.predicted - self.targets).astype(np.float64)
        return None
