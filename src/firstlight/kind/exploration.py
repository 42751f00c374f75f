"""Interface between the figures of `explore` and the runs of each kind."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from firstlight.kind.attention import Attention
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.drawn import NothingToDrawError
from firstlight.kind.loaded import LoadedRun
from firstlight.kind.tokens import DrawnTokens

SPLIT = "validation"  # the test split must not influence choices
MOST_ROWS = 256  # rows of the validation split for the gradient
SHORTEST_TEXT, LONGEST_TEXT = 12, 40  # tokens of a text that is chosen automatically


class Vectors(NamedTuple):
    """Vectors of tokens.

    tables: name -> (vocabulary, dim) weights. notes: notes for the user.
    """

    tables: dict[str, Tensor]
    notes: list[str]


class Exploration(ABC):
    """Base class of the explorations: data, texts and tensors of a run for the figures.

    Attributes:
        run: The run.
        changes: Options that replace the data of the run.
        log_dir: The folder that contains the cache.
    """

    data_type: ClassVar[type]  # return type of open_data
    choice_note: ClassVar[str]  # note on the text of some_text
    attention_title: ClassVar[str] = "Attention of each block"

    def __init__(self, run: Any, changes: DataChanges, log_dir: Path) -> None:
        self.run, self.changes, self.log_dir = run, changes, log_dir

    @abstractmethod
    def open_data(self) -> Any:
        """Return the data, encoded with the vocabulary of the run. Raises UserError if it is not found."""

    @abstractmethod
    def some_text(self, data: Any) -> str:
        """Return a text of the validation split with a suitable length."""

    @abstractmethod
    def made_up_text(self) -> tuple[str, str]:
        """Return a text for the case that the data is not found, and a note on it."""

    def seen(self, text: str) -> str:
        """Return the part of an automatically chosen text that fits the context."""
        return text

    @staticmethod
    @abstractmethod
    def attention(run: LoadedRun, text: str) -> Attention:
        """Return the attention weights of a run for a text. Raises UserError for a text that it cannot read."""

    @abstractmethod
    def loss(self, data: Any) -> Tensor:
        """Return the loss on some validation data, a scalar. Raises NothingToDrawError if there is none."""

    @abstractmethod
    def tokens(self) -> DrawnTokens:
        """Return the tokens for the figure of the embeddings."""

    @property
    def vocab_size(self) -> int:
        """The number of tokens with a vector."""
        return int(self.run.network.embedding.num_embeddings)

    def vectors(self) -> Vectors:
        """Return the weights of the embedding, and of the output layer if it has its own weights."""
        network = self.run.network
        tables, notes = {"embedding": network.embedding.weight}, []
        head = getattr(network, "head", None)  # a network of your own, and a table of pairs, may have none
        weight = getattr(head, "weight", None)
        if weight is network.embedding.weight:
            notes.append(
                "the embedding and the head have the same weights (model.tie_embeddings=true), which are shown once"
            )
        elif isinstance(weight, Tensor) and weight.ndim == 2 and len(weight) == network.embedding.num_embeddings:
            tables["output head"] = weight
        return Vectors(tables, notes)


def first_drawable(lengths: NDArray[np.int64]) -> int:
    """Return the index of the first length from SHORTEST_TEXT to LONGEST_TEXT, or of the length nearest to them.

    Raises NothingToDrawError without a length.
    """
    if not len(lengths):
        raise NothingToDrawError(f"the {SPLIT} split has no rows")
    off = np.maximum(SHORTEST_TEXT - lengths, 0) + np.maximum(lengths - LONGEST_TEXT, 0)
    return int(off.argmin())
