"""Batches of rows as a function of the seed and the step, so that a killed run resumes with the same batches."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from firstlight.data.row_options import LongTexts, refuse_unknown_groups
from firstlight.errors import UserError
from firstlight.text.ragged import window_starts

POOL_OF_BATCHES = 50  # the number of batches whose rows bucketing sorts by length


class RowBatch(NamedTuple):
    """The row numbers of a batch, from which a table makes the batch of tokens."""

    rows: Tensor  # (batch,) int64
    longest: int  # the length of the longest row in tokens, at least 1
    num_tokens: int  # the number of tokens of all rows together
    are_counted: bool = False  # whether to remove each row's own class from its counted features
    draws: Tensor | None = None  # (batch,) int64; modulo the tokens left out, it is the first token that is read
    num_windows: Tensor | None = None  # (texts,) the number of windows of each text, whose row occurs for each of them


@dataclass(eq=False)
class Rows(Dataset[RowBatch]):
    """Data set that turns an array of row numbers into a `RowBatch`, without work for each row.

    lengths: (rows,) the number of tokens of each row of the table, or (rows, choices) of each of its answers;
    long_texts: how rows of more than context_length tokens are read; are_counted: as in `RowBatch`.
    """

    lengths: np.ndarray
    context_length: int
    long_texts: LongTexts = LongTexts.cut
    are_counted: bool = False

    def __post_init__(self) -> None:
        self.reads_windows = self.long_texts is LongTexts.windows
        if not self.reads_windows:
            self.lengths = self.lengths.clip(max=self.context_length)

    def __getitem__(self, rows: np.ndarray) -> RowBatch:
        draws = None
        if rows.ndim == 2:  # of RandomSpans
            rows, draws = rows[:, 0], torch.from_numpy(rows[:, 1])
        lengths = self.lengths[rows]
        num_windows = None
        if self.reads_windows and lengths.max(initial=0) > self.context_length:
            counts, firsts = window_starts(lengths, self.context_length)
            rows, lengths = np.repeat(rows, counts), np.repeat(lengths.clip(max=self.context_length), counts)
            draws, num_windows = torch.from_numpy(firsts), torch.from_numpy(counts)
        sizes = (int(lengths.max(initial=1)), int(lengths.sum()))
        return RowBatch(torch.from_numpy(rows), *sizes, self.are_counted, draws, num_windows)


class EndlessBatches(Sampler[np.ndarray]):
    """Endless sampler of batches, in a new order in each pass. Batch number b depends only on the seed and on b.

    Iteration begins with batch number `start`. Each process takes its share of every batch. A subclass defines them.
    """

    def __init__(self, batch_size: int, seed: int, *, rank: int = 0, world_size: int = 1) -> None:
        """batch_size: the size of the batch of one process; rank, world_size: the share of this process."""
        self.batch_size, self.seed = batch_size * world_size, seed
        self.rank, self.world_size = rank, world_size
        self.start, self.skipped = 0, 0  # skipped: the number of batches that the iteration leaves out next
        self._pass: tuple[int, list[np.ndarray]] = (-1, [])  # its number and its batches

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield as many batches as a pass has, from batch number `start`. They may extend into the next pass."""
        number, self.start = self.start, 0
        end = number + len(self)
        while (number := number + self.skipped) < end:
            self.skipped = 0
            yield self.batch(number)[self.rank :: self.world_size]
            number += 1

    def __len__(self) -> int:
        """Return the number of batches of one pass."""
        raise NotImplementedError

    def batch(self, number: int) -> np.ndarray:
        """Return one batch, for all processes together."""
        epoch, position = divmod(number, len(self))
        if epoch != self._pass[0]:
            self._pass = epoch, self.epoch_batches(epoch)
        return self._pass[1][position]

    def epoch_batches(self, epoch: int) -> list[np.ndarray]:
        """Return all batches of one pass, for all processes together."""
        raise NotImplementedError


class TrainingBatches(EndlessBatches):
    """Endless sampler of shuffled row numbers. The rows of one pass are a permutation drawn from (seed, pass)."""

    def __init__(
        self, rows: np.ndarray, batch_size: int, seed: int, *, lengths: np.ndarray | None = None, **share: int
    ) -> None:
        """rows: (n,) row numbers; lengths: (n,), to batch rows of similar length."""
        super().__init__(batch_size, seed, **share)
        self.rows, self.lengths = rows, lengths

    def __len__(self) -> int:
        """Return the number of batches of one pass over the rows."""
        return -(-len(self.rows) // self.batch_size)

    def epoch_batches(self, epoch: int) -> list[np.ndarray]:
        """Return all batches of one pass, for all processes together."""
        random = np.random.default_rng((self.seed, epoch))
        order = random.permutation(len(self.rows))
        missing = -len(order) % self.world_size  # every process needs the same number of rows
        order = np.resize(order, len(order) + missing)  # repeats the first rows
        if self.lengths is not None:
            order = self._bucketed(order, self.lengths)
        batches = [self.rows[order[i : i + self.batch_size]] for i in range(0, len(order), self.batch_size)]
        if self.lengths is not None:
            batches = [batches[i] for i in random.permutation(len(batches))]
        return batches

    def _bucketed(self, order: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Sort the rows of every pool of batches by length, so that the rows of a batch have similar lengths."""
        pool = POOL_OF_BATCHES * self.batch_size
        pools = (order[i : i + pool] for i in range(0, len(order), pool))
        return np.concatenate([rows[np.argsort(lengths[rows], kind="stable")] for rows in pools])


class FinishedBatches(EndlessBatches):
    """Endless sampler of the batches of another one, and from batch number `first` on of those of `last`."""

    def __init__(self, batches: EndlessBatches, last: EndlessBatches | None = None, first: float = math.inf) -> None:
        super().__init__(1, batches.seed, rank=batches.rank, world_size=batches.world_size)
        self.batches, self.last, self.first = batches, last or batches, first

    def __len__(self) -> int:
        return len(self.batches)

    def batch(self, number: int) -> np.ndarray:
        return self.batches.batch(number) if number < self.first else self.last.batch(number - int(self.first))


class RandomSpans(FinishedBatches):
    """The same with a random number beside each row, (batch, 2), which depends only on the seed and the batch."""

    def batch(self, number: int) -> np.ndarray:
        rows = super().batch(number)
        draws = np.random.default_rng((self.seed, number, 1)).integers(2**31, size=len(rows))
        return np.stack((rows, draws), axis=1)


class LengthBatches(EndlessBatches):
    """Endless sampler of batches of rows of similar length, with up to `batch_tokens` tokens including padding.

    The sorted lengths are cut at the same places in every pass, so every pass has the same number of batches. The
    choice among rows of equal length and the order of the batches depend on (seed, pass).
    """

    def __init__(self, rows: np.ndarray, lengths: np.ndarray, batch_tokens: int, seed: int, **share: int) -> None:
        """rows: (n,) row numbers; lengths: (n,) their numbers of tokens; batch_tokens: the limit of one process."""
        super().__init__(batch_tokens, seed, **share)
        self.rows, self.lengths = rows, lengths
        self._cuts = self._cut(self._padded(np.sort(lengths)), self.batch_size)

    def __len__(self) -> int:
        """Return the number of batches of one pass over the rows."""
        return len(self._cuts) + 1

    def epoch_batches(self, epoch: int) -> list[np.ndarray]:
        """Return all batches of one pass, for all processes together."""
        random = np.random.default_rng((self.seed, epoch))
        order = random.permutation(len(self.rows))
        order = self._padded(order[np.argsort(self.lengths[order], kind="stable")])
        batches = np.split(self.rows[order], self._cuts)
        return [batches[i] for i in random.permutation(len(batches))]

    def _padded(self, values: np.ndarray) -> np.ndarray:
        """Repeat the last value, the longest row, until every process gets the same number of values."""
        return np.pad(values, (0, -len(values) % self.world_size), mode="edge")

    def _cut(self, lengths: np.ndarray, batch_tokens: int) -> np.ndarray:
        """Return the start of each batch but the first. lengths: (n,), ascending; batch_tokens: of all processes."""
        cuts, begin = [], 0
        while begin < len(lengths):
            longest = lengths[begin : begin + batch_tokens].clip(min=1)  # the longest row of a batch ending here
            sizes = np.arange(1, len(longest) + 1) * longest
            count = int(np.searchsorted(sizes, batch_tokens, side="right"))
            begin += max(count // self.world_size, 1) * self.world_size
            cuts.append(begin)
        return np.array(cuts[:-1], dtype=np.int64)


class EvaluationBatches(Sampler[np.ndarray]):
    """Sampler of every row once, sorted by length if `lengths` is given. Each process takes its own rows."""

    def __init__(
        self, rows: np.ndarray, batch_size: int, lengths: np.ndarray | None = None, rank: int = 0, world_size: int = 1
    ) -> None:
        """rows: (n,) row numbers; lengths: (n,)."""
        order = rows if lengths is None else rows[np.argsort(lengths, kind="stable")]
        self.rows, self.batch_size = order[rank::world_size], batch_size

    def __len__(self) -> int:
        return -(-len(self.rows) // self.batch_size)

    def __iter__(self) -> Iterator[np.ndarray]:
        for i in range(0, len(self.rows), self.batch_size):
            yield self.rows[i : i + self.batch_size]


class TableLoader:
    """Loader of the batches of a data module, in the order of a sampler.

    Iterate over it as over a `torch.utils.data.DataLoader`. It is not a subclass of it, because Lightning would replace
    the sampler. The samplers of this module divide the batches among processes themselves.

    reading: the method `TableData.reading`, with which a module checks the vocabulary; None if no text was encoded.
    """

    reading: Callable[[], dict[str, Any]] | None = None

    def __init__(
        self, dataset: Dataset[Any], batches: Iterable[Any], *, look_up: Callable[[Any], Any] | None = None
    ) -> None:
        """dataset: turns an array of indices into an index batch; batches: the arrays in order.

        look_up: turns an index batch into a batch of tokens; None if the hooks of the data module do this.
        """
        self._loader = DataLoader(dataset, sampler=batches, batch_size=None)
        self.dataset, self.batches, self.look_up = dataset, batches, look_up

    def __len__(self) -> int:
        """Return the number of batches, or of those of one pass if the sampler is endless."""
        return len(self.batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if self.look_up is None:
            return iter(self._loader)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            problem = "a loader made without a trainer gives all batches to every process"
            raise UserError(f"{problem}; pass the data module, as in trainer.fit(module, datamodule=data)")
        return map(self.look_up, self._loader)


class ResumableLoader(TableLoader):
    """Loader of training batches for a trainer to which the data module was passed. It starts at the trainer's step."""

    def __init__(self, dataset: Dataset[Any], batches: EndlessBatches, trainer: Any) -> None:
        """trainer: the trainer, whose checkpoint stores the number of its steps."""
        super().__init__(dataset, batches)
        self.batches: EndlessBatches
        self.trainer = trainer

    def __iter__(self) -> Iterator[Any]:
        trainer, per_epoch = self.trainer, batches_per_epoch(len(self), self.trainer.limit_train_batches)
        taken = batches_taken(trainer.global_step, per_epoch, trainer.accumulate_grad_batches)
        self.batches.start = taken % per_epoch if trainer.overfit_batches else taken
        return super().__iter__()

    def state_dict(self) -> dict[str, str]:
        """Return a state, so that Lightning may resume within an epoch. The trainer stores the position."""
        return {"position": "global_step"}

    def load_state_dict(self, state: dict[str, str]) -> None:
        """Do nothing: the position is the step of the trainer."""


class PassLoader(TableLoader):
    """Loader of training batches without a trainer. Each iteration is the next pass over the data, in a new order."""

    batches: EndlessBatches
    taken = 0  # the number of batches taken in all passes
    _is_restored = False

    def __iter__(self) -> Iterator[Any]:
        if not self._is_restored:
            self.taken = -(-self.taken // len(self)) * len(self)  # skips the rest of an unfinished pass
        self._is_restored = False
        self.batches.start = self.taken
        for batch in super().__iter__():
            self.taken += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Return the number of batches taken."""
        return {"taken": self.taken}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Start the next iteration at the position of another loader."""
        self.taken, self._is_restored = state["taken"], True


def batches_per_epoch(num_batches: int, limit: int | float) -> int:
    """Return how many batches of an epoch Lightning takes. limit: trainer.limit_train_batches, a number or a share."""
    return min(num_batches, limit) if isinstance(limit, int) else int(num_batches * limit)


def batches_taken(steps: int, per_epoch: int, per_step: int) -> int:
    """Return the number of batches in `steps` optimizer steps of `per_step` batches, fewer at the end of an epoch."""
    steps_per_epoch = -(-per_epoch // per_step)
    epoch, step = divmod(steps, steps_per_epoch)
    return epoch * per_epoch + step * per_step


def steps_of(trainer: Any, num_batches: int) -> int:
    """Return the number of optimizer steps of a complete run. trainer, num_batches: as in `steps_per_epoch`."""
    if trainer.max_epochs in (None, -1):
        return trainer.max_steps
    steps = steps_per_epoch(trainer, num_batches) * trainer.max_epochs
    return steps if trainer.max_steps == -1 else min(steps, trainer.max_steps)


def steps_per_epoch(trainer: Any, num_batches: int) -> int:
    """Return the number of optimizer steps of an epoch of num_batches batches. trainer: a Trainer, or its options."""
    return math.ceil(batches_per_epoch(num_batches, trainer.limit_train_batches) / trainer.accumulate_grad_batches)


def training_batches(data: Any) -> EndlessBatches:
    """Return the sampler of the training rows of a `ReviewData`, with its options finish_on and random_span.

    Without a trainer, no step is known to be one of the last. Raises UserError for a run without an end.
    """
    data.ensure_setup()
    options, trainer, rows = data.options, data.trainer, data.rows("train")
    batches: EndlessBatches = data.sampler(rows)
    if options.finish_on is not None and data.is_asked_by_trainer:
        if (steps := steps_of(trainer, len(batches))) == -1:
            raise UserError("data.finish_on requires a run with an end; set trainer.max_steps or trainer.max_epochs")
        per_epoch = batches_per_epoch(len(batches), trainer.limit_train_batches)
        first = batches_taken(steps - round(options.finish_share * steps), per_epoch, trainer.accumulate_grad_batches)
        groups = np.array(data.groups(rows))
        refuse_unknown_groups("finish_on", [options.finish_on], groups)
        batches = FinishedBatches(batches, data.sampler(rows[groups == options.finish_on]), first)
    return RandomSpans(batches) if options.random_span else batches
