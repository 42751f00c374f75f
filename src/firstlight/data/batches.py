"""Which rows make up which batch: a function of the seed and the step, so that a killed run can go on exactly."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from firstlight.data.workers import batches_of, become_worker
from firstlight.errors import UserError

POOL_OF_BATCHES = 50  # bucketing sorts this many batches' rows by length


class RowBatch(NamedTuple):
    """The rows of a batch, before anything is looked up."""

    rows: Tensor  # (batch,) int64
    longest: int  # the length of the longest of them, in tokens, at least 1
    num_tokens: int  # the length of all of them together
    are_counted: bool = False  # whether their own classes are removed from the features that were counted on them


class Rows(Dataset[RowBatch]):
    """Turns an array of row numbers into a RowBatch; there is no work for each row."""

    def __init__(self, lengths: np.ndarray, *, are_counted: bool = False) -> None:
        """lengths: (rows,) tokens in each row of the whole table; are_counted: as in RowBatch."""
        self.lengths, self.are_counted = lengths, are_counted

    def __getitem__(self, rows: np.ndarray) -> RowBatch:
        lengths = self.lengths[rows]
        return RowBatch(torch.from_numpy(rows), int(lengths.max(initial=1)), int(lengths.sum()), self.are_counted)


class PassesWithoutEnd(Sampler[np.ndarray]):
    """Pass after pass over some data, each in an order of its own: batch number b depends on the seed and on b alone.

    Under several processes each takes its own share of every batch. A subclass says how many batches a pass has.
    """

    def __init__(self, batch_size: int, seed: int, rank: int, world_size: int) -> None:
        """batch_size: of one process."""
        self.batch_size, self.seed = batch_size * world_size, seed
        self.rank, self.world_size = rank, world_size
        self.start = 0

    def __iter__(self) -> Iterator[np.ndarray]:
        """One pass' worth of batches, from batch number `start`, into the next pass where that comes first."""
        epoch, position = divmod(self.start, len(self))
        self.start = 0
        remaining = len(self)
        while remaining:
            batches = self.epoch_batches(epoch)[position : position + remaining]
            for batch in batches:
                yield batch[self.rank :: self.world_size]
            remaining -= len(batches)
            epoch, position = epoch + 1, 0

    def __len__(self) -> int:
        """The batches of one pass."""
        raise NotImplementedError

    def epoch_batches(self, epoch: int) -> list[np.ndarray]:
        """All batches of one pass, for all processes together."""
        raise NotImplementedError


class TrainingBatches(PassesWithoutEnd):
    """Shuffled batches of row numbers without end: batch number b depends on the seed and on b alone.

    The rows of one pass are a permutation drawn from (seed, pass). Under several processes each takes its own share of
    every batch.
    """

    def __init__(
        self,
        rows: np.ndarray,
        batch_size: int,
        seed: int,
        *,
        lengths: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """rows: (n,) row numbers; lengths: (n,), to batch rows of like length; weights: (n,), to draw rows by."""
        super().__init__(batch_size, seed, rank, world_size)
        self.rows, self.lengths, self.weights = rows, lengths, weights

    def __len__(self) -> int:
        """The batches of one pass over the rows."""
        return -(-len(self.rows) // self.batch_size)

    def epoch_batches(self, epoch: int) -> list[np.ndarray]:
        """All batches of one pass, for all processes together."""
        random = np.random.default_rng((self.seed, epoch))
        if self.weights is None:
            order = random.permutation(len(self.rows))
        else:
            order = random.choice(len(self.rows), size=len(self.rows), p=self.weights / self.weights.sum())
        missing = -len(order) % self.world_size  # every process needs the same number of rows
        order = np.resize(order, len(order) + missing)  # begins again
        if self.lengths is not None:
            order = self._bucketed(order, self.lengths)
        batches = [self.rows[order[i : i + self.batch_size]] for i in range(0, len(order), self.batch_size)]
        if self.lengths is not None:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def _bucketed(self, order: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Sort every pool of batches by length, so that the rows of a batch are about equally long."""
        pool = POOL_OF_BATCHES * self.batch_size
        pools = (order[i : i + pool] for i in range(0, len(order), pool))
        return np.concatenate([rows[np.argsort(lengths[rows], kind="stable")] for rows in pools])


class LengthBatches(PassesWithoutEnd):
    """Batches of rows of like length, as many as `batch_tokens` tokens hold, padding included; otherwise at random.

    The lengths of a pass stand in order and are always cut at the same places, so that every pass has the same number
    of batches; which of the rows of a length comes into which batch, and their order, depends on (seed, pass).
    """

    def __init__(
        self,
        rows: np.ndarray,
        lengths: np.ndarray,
        batch_tokens: int,
        seed: int,
        *,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """rows: (n,) row numbers; lengths: (n,) tokens of each; batch_tokens: of one process."""
        super().__init__(batch_tokens, seed, rank, world_size)
        self.batch_tokens = batch_tokens * world_size  # of all processes together
        self.rows, self.lengths = rows, lengths
        self._cuts = self._cut(self._padded(np.sort(lengths)))

    def __len__(self) -> int:
        """The batches of one pass over the rows."""
        return len(self._cuts) + 1

    def epoch_batches(self, epoch: int) -> list[np.ndarray]:
        """All batches of one pass, for all processes together."""
        random = np.random.default_rng((self.seed, epoch))
        order = random.permutation(len(self.rows))
        order = self._padded(order[np.argsort(self.lengths[order], kind="stable")])
        batches = np.split(self.rows[order], self._cuts)
        return [batches[i] for i in random.permutation(len(batches))]

    def _padded(self, values: np.ndarray) -> np.ndarray:
        """As many values as every process can have equally many of: the last, which is the longest, again."""
        return np.pad(values, (0, -len(values) % self.world_size), mode="edge")

    def _cut(self, lengths: np.ndarray) -> np.ndarray:
        """Where each batch but the first begins; lengths: (n,) in rising order."""
        cuts, begin = [], 0
        while begin < len(lengths):
            longest = lengths[begin : begin + self.batch_tokens].clip(min=1)  # of a batch that ends here
            sizes = np.arange(1, len(longest) + 1) * longest
            count = int(np.searchsorted(sizes, self.batch_tokens, side="right"))
            begin += max(count // self.world_size, 1) * self.world_size
            cuts.append(begin)
        return np.array(cuts[:-1], dtype=np.int64)


class EvaluationBatches(Sampler[np.ndarray]):
    """Every row once; rows of like length together where there are lengths; each process has its own rows."""

    def __init__(
        self,
        rows: np.ndarray,
        batch_size: int,
        *,
        lengths: np.ndarray | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """rows: (n,) row numbers; lengths: (n,)."""
        order = rows if lengths is None else rows[np.argsort(lengths, kind="stable")]
        self.rows, self.batch_size = order[rank::world_size], batch_size

    def __len__(self) -> int:
        return -(-len(self.rows) // self.batch_size)

    def __iter__(self) -> Iterator[np.ndarray]:
        for i in range(0, len(self.rows), self.batch_size):
            yield self.rows[i : i + self.batch_size]


class EndlessBatches(Protocol):
    """Batches of which number b depends on the seed and on b alone; iteration begins with number `start`."""

    start: int

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[np.ndarray]: ...


class TableLoader:
    """The batches of a data module, in an order that a sampler decides.

    Iterate over it as over a `torch.utils.data.DataLoader`. It is not one, so that Lightning leaves its sampler alone:
    the batches are divided among processes here.

    reading: what `TableData.reading` returns, for the module that is given the batches; None where nothing was encoded.
    """

    reading: Callable[[], dict[str, Any]] | None = None

    def __init__(
        self,
        dataset: Dataset[Any],
        batches: Iterable[Any],
        *,
        num_workers: int = 0,
        look_up: Callable[[Any], Any] | None = None,
    ) -> None:
        """dataset: from an array of indices to an index batch; batches: the arrays, in order, as many as its length.

        look_up: from an index batch to a batch of tokens; None where the hooks of the data module do that.
        """
        self._loader = DataLoader(
            dataset, sampler=batches, batch_size=None, num_workers=num_workers, worker_init_fn=become_worker
        )
        self.batches, self.look_up = batches, look_up

    def __len__(self) -> int:
        """The number of batches; of one pass over the data where there is no end."""
        return len(self.batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if self.look_up is None:
            return batches_of(self._loader)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise UserError(
                "a loader made without a trainer gives every process all batches; "
                "give the trainer the data module instead, as in trainer.fit(module, datamodule=data)"
            )
        return map(self.look_up, batches_of(self._loader))


class ResumableLoader(TableLoader):
    """The training batches of a trainer that knows the data module.

    The position is read off the trainer's own counter and never counted here, so that a killed run resumes exactly.
    """

    def __init__(
        self, dataset: Dataset[Any], batches: EndlessBatches, current_batch: Callable[[], int], *, num_workers: int = 0
    ) -> None:
        """current_batch: how many batches the training has taken, as its checkpoint knows it."""
        super().__init__(dataset, batches, num_workers=num_workers)
        self.batches: EndlessBatches
        self.current_batch = current_batch

    def __iter__(self) -> Iterator[Any]:
        self.batches.start = self.current_batch()
        return super().__iter__()

    def state_dict(self) -> dict[str, str]:
        """Tells Lightning that it may resume in the middle of an epoch; the position is not kept here."""
        return {"position": "global_step"}

    def load_state_dict(self, state: dict[str, str]) -> None:
        """Nothing to restore."""


class PassLoader(TableLoader):
    """The training batches without a trainer: each iteration is the next pass over the data, in an order of its own."""

    def __init__(
        self, dataset: Dataset[Any], batches: EndlessBatches, look_up: Callable[[Any], Any], *, num_workers: int = 0
    ) -> None:
        super().__init__(dataset, batches, num_workers=num_workers, look_up=look_up)
        self.batches: EndlessBatches
        self.taken = 0  # batches, in all passes together
        self._is_restored = False

    def __iter__(self) -> Iterator[Any]:
        if not self._is_restored:
            self.taken = -(-self.taken // len(self)) * len(self)  # what is left of a pass is left out
        self._is_restored = False
        self.batches.start = self.taken
        for batch in super().__iter__():
            self.taken += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Where the next batch is."""
        return {"taken": self.taken}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Begin the next iteration where another loader stood."""
        self.taken, self._is_restored = state["taken"], True


def several(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts. Raises TypeError for a single string, whose letters would each be a text."""
    if isinstance(texts, str):
        raise TypeError("text_dataloader takes a list of texts; put the text into a list, as in [text]")
    return texts


def batches_per_epoch(num_batches: int, limit: int | float) -> int:
    """How many of an epoch's batches Lightning takes: trainer.limit_train_batches is a number or a share."""
    return min(num_batches, limit) if isinstance(limit, int) else int(num_batches * limit)


def batches_taken(steps: int, per_epoch: int, per_step: int) -> int:
    """Batches used by a number of optimizer steps of `per_step` batches; an epoch's last step may take fewer."""
    steps_per_epoch = -(-per_epoch // per_step)
    epoch, step = divmod(steps, steps_per_epoch)
    return epoch * per_epoch + step * per_step
