"""What the figures of all kinds ask of a run, answered by a class for each kind."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from firstlight.kinds.attention import Attention
from firstlight.kinds.data_changes import DataChanges
from firstlight.kinds.loaded import LoadedRun
from firstlight.kinds.tokens import DrawnTokens

SPLIT = "validation"  # on which choices may be made
MOST_ROWS = 256  # of validation, of which the gradient is taken
SHORTEST_TEXT, LONGEST_TEXT = 12, 40  # tokens of the text that is drawn where none is given


class Vectors(NamedTuple):
    """The vectors of tokens: (vocabulary, dim) of each table, by its name; and what there is to say about them."""

    tables: dict[str, Tensor]
    notes: list[str]


class Exploration(ABC):
    """What the figures of all kinds ask of a run.

    Attributes:
        run: The run.
        changes: Other data than the run was trained on.
        log_dir: The folder below which the cache is.
    """

    data_type: ClassVar[type]  # of what open_data returns
    choice_note: ClassVar[str]  # on the text that some_text chooses
    attention_title: ClassVar[str] = "Attention, block by block"

    def __init__(self, run: Any, changes: DataChanges, log_dir: Path) -> None:
        self.run, self.changes, self.log_dir = run, changes, log_dir

    @abstractmethod
    def open_data(self) -> Any:
        """Return the data in the vocabulary of the run. Raises UserError if it is not found."""

    @abstractmethod
    def some_text(self, data: Any) -> str:
        """Return a text of the validation split of a length that can be drawn."""

    @abstractmethod
    def made_up_text(self) -> tuple[str, str]:
        """Return a text to draw where the data is not found, and a note on it."""

    def seen(self, text: str) -> str:
        """Return as much of a text that was not given by the user as the run sees."""
        return text

    @staticmethod
    @abstractmethod
    def attention(run: LoadedRun, text: str) -> Attention:
        """Return what every attention of a run looks at in a text. Raises UserError for a text that it cannot read."""

    @abstractmethod
    def loss(self, data: Any) -> Tensor:
        """Return the loss of some validation data, a scalar. Raises NothingToDrawError if it has none."""

    @abstractmethod
    def tokens(self) -> DrawnTokens:
        """Return the tokens whose vectors are drawn."""

    @property
    def vocab_size(self) -> int:
        """The number of tokens that have a vector."""
        return self.run.tokenizer.vocab_size

    def vectors(self) -> Vectors:
        """Return the embedding, and the output layer where that is another matrix."""
        network = self.run.network
        tables, notes = {"embedding": network.embedding.weight}, []
        if network.head.weight is network.embedding.weight:
            notes.append(
                "the head reads with the embedding's own matrix (model.tie_embeddings), so there is one to see"
            )
        else:
            tables["output head"] = network.head.weight
        return Vectors(tables, notes)


def first_drawable(lengths: NDArray[np.int64]) -> int:
    """Return the place of the first length that can be drawn well, or else of the one nearest to it."""
    off = np.maximum(SHORTEST_TEXT - lengths, 0) + np.maximum(lengths - LONGEST_TEXT, 0)
    return int(off.argmin())
