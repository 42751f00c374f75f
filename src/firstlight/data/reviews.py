"""Reviews and their labels as batches."""

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from firstlight.data.batches import EvaluationBatches, ResumableLoader, RowBatch, Rows, TrainingBatches
from firstlight.data.encoding import SPLITS, EncodedTexts, encode
from firstlight.data.labels import LEFT_OUT, class_names_of, targets_of
from firstlight.data.options import Balance, ReviewOptions, Truncation
from firstlight.data.sources import Source, find_source
from firstlight.errors import UserError
from firstlight.text.tokenizers import PAD_ID, Tokenizer


class ReviewBatch(NamedTuple):
    """What a classifier is given.

    token_ids: (batch, length) int; padding_mask: (batch, length) bool; targets: (batch,) int; rows: (batch,) int;
    num_tokens: how many of the tokens are real.
    """

    token_ids: Tensor
    padding_mask: Tensor
    targets: Tensor
    rows: Tensor
    num_tokens: int


class TokenTable(torch.nn.Module):
    """All texts on one device, cut to the context and padded when a batch asks for them."""

    flat: Tensor
    starts: Tensor
    lengths: Tensor
    targets: Tensor

    def __init__(self, encoded: EncodedTexts, targets: NDArray[np.int64], context_length: int, truncation: Truncation):
        super().__init__()
        self.context_length, self.truncation = context_length, truncation
        flat = encoded.ids.ids if len(encoded.ids.ids) else np.array([PAD_ID], dtype=np.int32)
        self.register_buffer("flat", torch.from_numpy(flat), persistent=False)
        self.register_buffer("starts", torch.from_numpy(encoded.ids.offsets[:-1].copy()), persistent=False)
        self.register_buffer("lengths", torch.from_numpy(encoded.ids.lengths), persistent=False)
        self.register_buffer("targets", torch.from_numpy(targets), persistent=False)

    def forward(self, batch: RowBatch) -> ReviewBatch:
        """Look up the rows of a batch, padded to the longest of them."""
        lengths = self.lengths[batch.rows][:, None]
        columns = torch.arange(batch.longest, device=lengths.device)  # (length,)
        skipped = (lengths - self.context_length).clamp(min=0)  # (batch, 1): what is cut out of a long text
        match self.truncation:
            case Truncation.head:
                skip = torch.zeros_like(skipped)
            case Truncation.tail:
                skip = skipped
            case Truncation.head_tail:
                skip = skipped * (columns >= (self.context_length + 1) // 2)
        positions = self.starts[batch.rows][:, None] + columns + skip  # (batch, length)
        padding_mask = columns < lengths.clamp(max=self.context_length)
        token_ids = self.flat[positions.clamp(max=len(self.flat) - 1)].masked_fill(~padding_mask, PAD_ID)
        return ReviewBatch(token_ids, padding_mask, self.targets[batch.rows], batch.rows, batch.num_tokens)

    def fits(self, device: torch.device) -> bool:
        """Whether the table takes less than a quarter of what is free on an accelerator."""
        if device.type != "cuda":
            return True
        size = sum(buffer.nbytes for buffer in self.buffers())
        return size < torch.cuda.mem_get_info(device)[0] / 4


class ReviewData(LightningDataModule):
    """Labelled reviews from a local file or folder, the Hub, or the generated sample."""

    source: Source
    encoded: EncodedTexts
    targets: NDArray[np.int64]
    table: TokenTable

    def __init__(
        self, *, given_tokenizer: Tokenizer | None = None, given_labels: list[str] | None = None, **options: Any
    ) -> None:
        """options: the fields of ReviewOptions; a tokenizer and label names where a trained network reads the data."""
        super().__init__()
        self.options = ReviewOptions(**options)
        self.given_tokenizer, self.given_labels = given_tokenizer, given_labels

    def prepare_data(self) -> None:
        """Encode what is not in the cache yet."""
        if not hasattr(self, "source"):
            only_split = "train" if self.given_tokenizer is None else "test"
            self.source = find_source(self.options, only_split=only_split)
        encode(self.source, self.options, self.given_tokenizer, self.given_labels)

    def setup(self, stage: str = "fit") -> None:  # noqa: ARG002  (all splits live in one table)
        """Open the encoded reviews."""
        if hasattr(self, "table"):
            return
        self.encoded = encode(self.source, self.options, self.given_tokenizer, self.given_labels)
        self.targets = targets_of(self.encoded.labels, self.options.labels)
        self.class_names = class_names_of(self.options.labels, self.encoded.label_names, self.options.class_names)
        self.table = TokenTable(self.encoded, self.targets, self.options.context_length, self.options.truncation)
        self._rows = {split: self._used_rows(split) for split in SPLITS}
        if self.given_tokenizer is None:
            self._check_classes()

    @property
    def tokenizer(self) -> Tokenizer:
        return self.encoded.tokenizer

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def rows(self, split: str) -> NDArray[np.int64]:
        """The rows of a split that have a target: (n,)."""
        return self._rows[split]

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens in each row, as far as they fit the context: (n,)."""
        return self.encoded.ids.lengths[rows].clip(max=self.options.context_length)

    def class_weights(self) -> Tensor | None:
        """What an example of each class counts in the loss, where the options ask for it: (classes,), mean 1."""
        if self.options.balance is not Balance.weights:
            return None
        return torch.from_numpy(self._inverse_frequency()).float()

    def texts(self, split: str, count: int) -> list[str]:
        """The texts of the first rows of a split, read again from the source."""
        wanted = {int(row) for row in self.rows(split)[:count]}
        found: list[str] = []
        columns = [self.options.text_column]
        stream = (row.values for name in self.source.splits for row in self.source.rows(name, columns))
        for number, values in enumerate(islice(stream, max(wanted, default=-1) + 1)):
            if number in wanted:
                found.append(values[self.options.text_column])
        return found

    def describe(self) -> dict[str, Any]:
        """What metrics.json says about the data."""
        return {
            "source": self.source.kind.value,
            "path": self.source.where,
            "fingerprint": self.source.fingerprint,
            "rows": {split: len(self.rows(split)) for split in SPLITS},
            "vocab_size": self.tokenizer.vocab_size,
            "classes": self.class_names,
        }

    def train_dataloader(self) -> ResumableLoader:
        """Shuffled batches whose position is the trainer's."""
        assert self.trainer is not None
        rows = self.rows("train")
        batches = TrainingBatches(
            rows,
            self.options.batch_size,
            self.options.seed,
            lengths=self.lengths(rows) if self.options.bucket_by_length else None,
            weights=self._inverse_frequency()[self.targets[rows]] if self.options.balance is Balance.sampling else None,
            rank=self.trainer.global_rank,
            world_size=self.trainer.world_size,
        )
        return ResumableLoader(self._lookup(), batches, self._batches_taken, num_workers=self.options.num_workers)

    def val_dataloader(self) -> DataLoader[RowBatch]:
        """The validation split, each row once."""
        return self.evaluation_loader(self.rows("validation"))

    def test_dataloader(self) -> DataLoader[RowBatch]:
        """The test split, each row once."""
        return self.evaluation_loader(self.rows("test"))

    def evaluation_loader(self, rows: NDArray[np.int64]) -> DataLoader[RowBatch]:
        """Some rows, each once, those of like length together."""
        rank, world_size = (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)
        batches = EvaluationBatches(
            rows, self.options.evaluation_batch_size, lengths=self.lengths(rows), rank=rank, world_size=world_size
        )
        return DataLoader(self._lookup(), sampler=batches, batch_size=None, num_workers=self.options.num_workers)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:  # noqa: ARG002
        """Look the rows up here where the table does not live on the accelerator."""
        return batch if self._is_resident() else self.table(batch)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:  # noqa: ARG002
        """Look the rows up on the accelerator."""
        return self.table(batch) if isinstance(batch, RowBatch) else batch

    def _is_resident(self) -> bool:
        """Whether the table lives where the network does; it moves there the first time it is needed."""
        assert self.trainer is not None
        device = self.trainer.strategy.root_device
        if self.table.flat.device == device:
            return True
        if not (self.options.device_resident and self.table.fits(device)):
            return False
        self.table.to(device)
        return True

    def _lookup(self) -> Rows:
        return Rows(self.encoded.ids.lengths.clip(max=self.options.context_length))

    def _batches_taken(self) -> int:
        """The batches that the training has used, from the one counter that a checkpoint restores."""
        assert self.trainer is not None
        batches_per_epoch = int(self.trainer.num_training_batches)
        return batches_taken(self.trainer.global_step, batches_per_epoch, self.trainer.accumulate_grad_batches)

    def _used_rows(self, split: str) -> NDArray[np.int64]:
        rows = self.encoded.rows_of(split)
        rows = rows[self.targets[rows] != LEFT_OUT]
        if split == "train" and self.options.max_train_rows is not None:
            order = np.random.default_rng(self.options.split_seed).permutation(len(rows))
            rows = np.sort(rows[order[: self.options.max_train_rows]])
        return rows

    def _check_classes(self) -> None:
        """Raise UserError unless the training rows have something to tell apart."""
        for split in ("train", "validation"):
            if len(self.rows(split)) == 0:
                raise UserError(f"{self.source.where} has no {split} rows for data.labels={self.options.labels.value}")
        present = np.unique(self.targets[self.rows("train")])
        if len(present) < 2:
            only = self.class_names[int(present[0])]
            raise UserError(
                f"{self.source.where}: every training row is {only} with data.labels={self.options.labels.value}; "
                f"for labels that are not stars, set data.labels=classes"
            )

    def _inverse_frequency(self) -> NDArray[np.float64]:
        counts = np.bincount(self.targets[self.rows("train")], minlength=self.num_classes)
        return counts.sum() / (self.num_classes * counts.clip(min=1))


def batches_taken(steps: int, batches_per_epoch: int, batches_per_step: int) -> int:
    """Batches used by a number of optimizer steps; the last step of an epoch may take fewer than the others."""
    if batches_per_step == 1:
        return steps
    steps_per_epoch = -(-batches_per_epoch // batches_per_step)
    epoch, step = divmod(steps, steps_per_epoch)
    return epoch * batches_per_epoch + step * batches_per_step
