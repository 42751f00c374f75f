"""What all data modules share: indices are loaded, and looked up in a table that lives where the network does."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from lightning.pytorch import LightningDataModule
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, Dataset

from firstlight.data.batches import EndlessBatches, EvaluationBatches, ResumableLoader, batches_per_epoch, batches_taken
from firstlight.data.tables import fits
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import PAD_ID, UNKNOWN_ID


class TrainingWords(NamedTuple):
    """words: of each id, as a file of vectors would spell it; ids: the training texts; no_words: ids of marks."""

    words: list[str]
    ids: RaggedIds
    no_words: tuple[int, ...] = (PAD_ID, UNKNOWN_ID)


class TableData(LightningDataModule):
    """Batches of indices that become batches of ids on the device.

    index_batch: the type of a batch before it is looked up; options: a dataclass of options.py; table: from indices
    to what the network is given, with a buffer `flat` of all ids.
    """

    index_batch: ClassVar[type]
    options: Any
    table: Any
    tokenizer: Any

    @property
    def source(self) -> Any:
        """Where the data comes from: its kind, where, fingerprint."""
        raise NotImplementedError

    @property
    def num_classes(self) -> int:
        """The classes of a classifier, 0 where there are none."""
        return 0

    def network_sizes(self) -> dict[str, int]:
        """What the network has to be as large as: vocab_size, num_classes and the like."""
        return {"vocab_size": self.tokenizer.vocab_size, "num_classes": self.num_classes}

    def has_split(self, split: str) -> bool:
        """Whether there is anything to measure in a split."""
        raise NotImplementedError

    def module_options(self) -> dict[str, Any]:
        """What the LightningModule is told of the data."""
        return {}

    def card(self) -> dict[str, Any]:
        """What a checkpoint says of the data, in plain types, for those who read it without."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """What metrics.json says about the data."""
        raise NotImplementedError

    def training_words(self) -> dict[str, TrainingWords]:
        """The words of the training texts, by the name of their embedding in the network; {} where there are none."""
        return {}

    def known_documents(self) -> list[str]:
        """Short training texts that a generator may learn by heart; none for most data."""
        return []

    def resumable_loader(self, dataset: Dataset[Any], batches: EndlessBatches) -> ResumableLoader:
        """A training loader whose position is the trainer's."""
        trainer = self.trainer
        assert trainer is not None
        per_epoch = batches_per_epoch(len(batches), trainer.limit_train_batches)
        return ResumableLoader(
            dataset,
            batches,
            lambda: batches_taken(trainer.global_step, per_epoch, trainer.accumulate_grad_batches),
            num_workers=self.options.num_workers,
        )

    @property
    def share(self) -> dict[str, int]:
        """Which share of every batch is this process's."""
        trainer = self.trainer
        return {"rank": trainer.global_rank, "world_size": trainer.world_size} if trainer else {}

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:  # noqa: ARG002
        """Look the indices up here where the table does not live on the accelerator."""
        return batch if self._is_resident() else self.table(batch)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:  # noqa: ARG002
        """Look the indices up on the accelerator."""
        return self.table(batch) if isinstance(batch, self.index_batch) else batch

    def _is_resident(self) -> bool:
        """Whether the table lives where the network does; it moves there the first time it is needed."""
        assert self.trainer is not None
        table: nn.Module = self.table
        device = self.trainer.strategy.root_device
        if self.table.flat.device == device:
            return True
        if not (self.options.device_resident and fits(table, device)):
            return False
        table.to(device)
        return True


class RowData(TableData):
    """Data of rows, each of which is read whole: labelled texts, or pairs of sentences."""

    def rows(self, split: str) -> NDArray[np.int64]:
        """The rows of a split that are used: (n,)."""
        raise NotImplementedError

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens in each row, by which those of a batch are alike: (n,)."""
        raise NotImplementedError

    def lookup(self) -> Dataset[Any]:
        """What turns an array of row numbers into an index batch."""
        raise NotImplementedError

    def has_split(self, split: str) -> bool:
        return len(self.rows(split)) > 0

    def val_dataloader(self) -> DataLoader[Any]:
        """The validation split, each row once."""
        return self.evaluation_loader(self.rows("validation"))

    def test_dataloader(self) -> DataLoader[Any]:
        """The test split, each row once."""
        return self.evaluation_loader(self.rows("test"))

    def evaluation_loader(self, rows: NDArray[np.int64]) -> DataLoader[Any]:
        """Some rows, each once, those of like length together."""
        options = self.options
        batches = EvaluationBatches(rows, options.evaluation_batch_size, lengths=self.lengths(rows), **self.share)
        return DataLoader(self.lookup(), sampler=batches, batch_size=None, num_workers=options.num_workers)
