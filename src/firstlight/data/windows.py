"""Batches of windows of a text, as a function of the seed and the step."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from firstlight.data.batches import EndlessBatches

Join = Callable[[NDArray[np.int64]], "Stream"]  # returns documents, (n,), in their order as one text


class WindowBatch(NamedTuple):
    """The positions of the tokens of some windows. Each has one more than the context, for the last target."""

    positions: Tensor  # (batch, length + 1) int64
    continues: bool | None = None  # whether they continue those of the batch before; None without a state


class Windows(Dataset[WindowBatch]):
    """Data set that turns an array of positions into a `WindowBatch`. It returns a `WindowBatch` unchanged."""

    def __getitem__(self, positions: NDArray[np.int64] | WindowBatch) -> WindowBatch:
        return positions if isinstance(positions, WindowBatch) else WindowBatch(torch.from_numpy(positions))


class RandomWindows(EndlessBatches):
    """Sampler of windows at random places, as in post 2 (plays). Batch b depends only on the seed and on b."""

    def __init__(self, text: "Stream", context_length: int, batch_size: int, seed: int, **share: int) -> None:
        """text: more than context_length tokens."""
        assert len(text) > context_length, f"{len(text)} tokens for a context of {context_length}"
        super().__init__(batch_size, seed, **share)
        self.text, self.num_starts = text, len(text) - context_length
        self.steps = max(1, len(text) // (context_length * self.batch_size))
        self.columns = np.arange(context_length + 1)

    def __len__(self) -> int:
        """Return the number of batches of an epoch, which has about as many tokens as the stream."""
        return self.steps

    def batch(self, number: int) -> NDArray[np.int64]:
        """Return the positions of one batch, for all processes together: (batch, context_length + 1)."""
        starts = np.random.default_rng((self.seed, number)).integers(self.num_starts, size=self.batch_size)
        return self.text[starts[:, None] + self.columns]

    def stream(self, epoch: int) -> "Stream":  # noqa: ARG002  (as of `ShuffledDocuments`)
        """Return the text, which is the same in every epoch."""
        return self.text


class ShuffledDocuments(EndlessBatches):
    """Sampler of consecutive windows of joined documents, in a new order in every epoch (post 4, names)."""

    def __init__(
        self,
        documents: NDArray[np.int64],
        join: Join,
        num_tokens: int,
        context_length: int,
        batch_size: int,
        seed: int,
        **share: int,
    ) -> None:
        """documents: (n,) the numbers of the documents; num_tokens: those of all together, more than context_length."""
        assert num_tokens > context_length, f"{num_tokens} tokens for a context of {context_length}"
        super().__init__(batch_size, seed, **share)
        self.documents, self.join, self.context_length = documents, join, context_length
        self.num_windows = (num_tokens - 1) // context_length

    def __len__(self) -> int:
        return -(-self.num_windows // self.batch_size)

    def epoch_batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """Return all batches of one epoch, for all processes together."""
        text = self.stream(epoch)
        firsts = np.arange(self.num_windows) * self.context_length
        windows = text[firsts[:, None] + np.arange(self.context_length + 1)]
        missing = -len(windows) % self.world_size  # every process needs the same number of windows
        windows = np.resize(windows, (len(windows) + missing, windows.shape[1]))  # repeats the first windows
        return [windows[i : i + self.batch_size] for i in range(0, len(windows), self.batch_size)]

    def stream(self, epoch: int) -> "Stream":
        """Return all documents in the order of an epoch."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.documents))
        return self.join(self.documents[order])


class ContinuedWindows(EndlessBatches):
    """Sampler of windows that continue those of the batch before, row by row, for networks with a state.

    Each epoch divides a stream into `batch_size` rows of equal length. The rest of the stream is left out: fewer than
    batch_size · context_length tokens.
    """

    def __init__(self, streams: Callable[[int], "Stream"], context_length: int, batch_size: int) -> None:
        """streams: returns the stream of an epoch. All have the same length."""
        super().__init__(batch_size, seed=0, rank=0, world_size=1)
        self.stream, self.context_length = lru_cache(maxsize=1)(streams), context_length
        self.steps = (len(self.stream(0)) - 1) // (context_length * batch_size)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Any]:
        for number, positions in enumerate(super().__iter__(), self.start):
            yield WindowBatch(torch.from_numpy(positions), continues=number % self.steps > 0)

    def batch(self, number: int) -> NDArray[np.int64]:
        epoch, step = divmod(number, self.steps)
        firsts = (np.arange(self.batch_size) * self.steps + step) * self.context_length
        return self.stream(epoch)[firsts[:, None] + np.arange(self.context_length + 1)]


class EveryWindow(Sampler[NDArray[np.int64]]):
    """Sampler of the windows of a stream without overlap. The last one may be shorter. Each process has its own."""

    def __init__(
        self, stream: "Stream", context_length: int, batch_size: int, *, rank: int = 0, world_size: int = 1
    ) -> None:
        self.stream, self.context_length, self.batch_size = stream, context_length, batch_size
        num_windows = max(len(stream) - 1, 0) // context_length
        self.first_places = np.arange(rank, num_windows, world_size) * context_length
        self.rest = np.arange(num_windows * context_length, len(stream))
        self.has_rest = len(self.rest) > 1 and num_windows % world_size == rank

    def __len__(self) -> int:
        return -(-len(self.first_places) // self.batch_size) + self.has_rest

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        for i in range(0, len(self.first_places), self.batch_size):
            firsts = self.first_places[i : i + self.batch_size]
            yield self.stream[firsts[:, None] + np.arange(self.context_length + 1)]
        if self.has_rest:
            yield self.stream[self.rest[None]]


class ContinuedText(EveryWindow):
    """Sampler of the windows of a stream, one in each batch, which continues the one before."""

    def __iter__(self) -> Iterator[Any]:
        for number, positions in enumerate(super().__iter__()):
            yield WindowBatch(torch.from_numpy(positions), continues=number > 0)


def overlapping_windows(
    stream: "Stream", context_length: int, stride: int, batch_size: int
) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield batches of windows that start `stride` tokens apart, and the number of targets that are new in each window.

    The new targets are the last ones of a window. Each token of the stream except the first is a new target once. More
    than context_length - stride tokens of the window precede it, unless it is in the first window. The batches are
    positions, (batch, length + 1); the last window may be shorter. The stream must have at least 2 tokens.
    """
    num_targets = len(stream) - 1
    first = min(context_length, num_targets)
    yield stream[np.arange(first + 1)[None]], first
    starts = np.arange(stride, num_targets - context_length + 1, stride)
    for i in range(0, len(starts), batch_size):
        yield stream[starts[i : i + batch_size, None] + np.arange(context_length + 1)], stride
    if rest := num_targets - first - stride * len(starts):
        yield stream[np.arange(stride * (len(starts) + 1), len(stream))[None]], rest


class Stream:
    """The positions of the tokens of one long text in a table, as a range or as an array."""

    def __init__(self, positions: range | NDArray[np.int64]) -> None:
        self.positions = positions

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of some places of the text, counted from 0. places: any shape."""
        return self.positions.start + places if isinstance(self.positions, range) else self.positions[places]

    def head(self, most: int | None = None) -> NDArray[np.int64]:
        """Return the positions of the first `most` tokens, or of all: (n,)."""
        return self[np.arange(len(self) if most is None else min(len(self), most))]


def join(offsets: NDArray[np.int64], documents: NDArray[np.int64], separator: int) -> Stream:
    """Return documents as one text, with a separator before each and after the last.

    offsets: the starts of all documents in the table; documents: (n,) their numbers; separator: its position.
    """
    lengths = offsets[documents + 1] - offsets[documents] + 1  # with the separator before it
    ends = np.cumsum(lengths)
    begins = ends - lengths
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(begins - offsets[documents] + 1, lengths)
    places[begins] = separator
    return Stream(np.append(places, separator))
