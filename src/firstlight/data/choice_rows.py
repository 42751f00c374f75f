"""Rows of multiple choice: a context with several possible answers. Each answer is read as a pair with the context."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from firstlight.errors import UserError
from firstlight.text.options import PAIR_SEPARATOR

if TYPE_CHECKING:  # the options of the data import nothing heavy
    import numpy as np
    from numpy.typing import NDArray

LONGEST_QUOTE = 40  # characters of a text in a message


def longest(lengths: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the length of each row, (rows,). lengths: (rows,), or (rows, choices) of the pairs of each row."""
    return lengths if lengths.ndim == 1 else lengths.max(axis=1)


def by_row(numbers: "NDArray[np.int64]", choices: "ChoiceRows | None") -> "NDArray[np.int64]":
    """Return an array with a number for each text, (texts,), as (rows,), or as (rows, choices) for multiple choice."""
    return numbers if choices is None else choices.by_row(numbers)


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

    def by_row(self, numbers: "NDArray[Any]") -> "NDArray[Any]":
        """Return an array with a number for each pair, (rows · choices,), as (rows, choices)."""
        return numbers.reshape(-1, self.num_choices)

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
