"""The base class of the data modules, whose loaders yield indices of a table of tokens on the device."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch import LightningDataModule
from lightning.pytorch.trainer.states import TrainerStatus
from numpy.typing import NDArray
from torch.utils.data import Dataset, Sampler

from firstlight.data.arguments import options_of
from firstlight.data.batches import (
    EndlessBatches,
    EvaluationBatches,
    PassLoader,
    ResumableLoader,
    RowBatch,
    Rows,
    TableLoader,
    TrainingBatches,
)
from firstlight.data.encoding import EncodedTexts, encode, training_rows
from firstlight.data.options import DataOptions
from firstlight.data.row_options import longest
from firstlight.data.sources import Source, find_source
from firstlight.data.store import SPLITS
from firstlight.data.tables import fits
from firstlight.text.ragged import RaggedIds
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import PAD_ID, UNKNOWN_ID, Text


class TrainingWords(NamedTuple):
    """words: the word of each id as in files of word vectors; ids: the training texts; no_words: the ids of marks."""

    words: list[str]
    ids: RaggedIds
    no_words: tuple[int, ...] = (PAD_ID, UNKNOWN_ID)


class TableData(LightningDataModule):
    """The base class of all data modules of firstlight.

    All token ids are in one table, on the device of the network if they fit. A loader yields indices, and the data
    module looks up the tokens after the transfer, without work per item. Without a trainer, the loaders yield
    batches of tokens.

    Attributes:
        options: The options of the data module, as a dataclass.
        options_type: The class of these options. The decorator `takes` sets it.
        tokenizer: The tokenizer of the texts, or of the target sentences of a translator. Set by `setup`.
        given_tokenizer: The tokenizer that replaces one of the training texts, or None.
        reader: The metadata of a trained network that reads this data, or None.
        table: The module that turns indices into a batch of tokens. Set by `setup`.
        index_batch: The type of a batch of indices.

    Example:
        >>> from firstlight.data import CharacterData, ReviewData, TableData
        >>> issubclass(ReviewData, TableData) and issubclass(CharacterData, TableData)
        True
        >>> data = ReviewData(path="reviews.csv", labels="stars", context_length=8)
        >>> data.prepare_data()
        >>> data.setup()
        >>> sorted(data.network_sizes())
        ['num_classes', 'vocab_size']
    """

    index_batch: ClassVar[type]
    options_type: ClassVar[type[DataOptions] | None] = None
    only_split: str = "train"  # the split as which a single file is read
    options: Any
    table: Any
    tokenizer: Any
    given_tokenizer: Any = None
    reader: Any = None

    def __init__(self, *rows: Any, **options: Any) -> None:
        super().__init__()
        if self.options_type is not None:
            self.options = options_of(self.options_type, type(self).__name__, rows, options)

    def ensure_setup(self) -> None:
        """Prepare and set up the data unless a trainer or the user has done so."""
        if not hasattr(self, "table"):
            self.prepare_data()
            self.setup("fit")

    @cached_property
    def source(self) -> Source:
        """The source of the data, which is searched for once in every process."""
        return find_source(self.options, sample=self.options.sample.value, only_split=self.only_split)

    @property
    def num_classes(self) -> int:
        """The number of classes, 0 for data without classes."""
        return 0

    def network_sizes(self) -> dict[str, int]:
        """Return the sizes of a network that depend on the data, such as `vocab_size` and `num_classes`."""
        return {"vocab_size": self.tokenizer.vocab_size, "num_classes": self.num_classes}

    def has_split(self, split: str) -> bool:
        """Return whether a split, such as `"test"`, has data."""
        raise NotImplementedError

    @property
    def num_counted(self) -> int:
        """The number of values counted in the training texts that the network uses in addition to its weights."""
        return 0

    def module_options(self) -> dict[str, Any]:
        """Return the options of the LightningModule that depend on the data."""
        return {}

    def metadata(self) -> dict[str, Any]:
        """Return the facts about the data that a checkpoint stores, in plain types and tensors."""
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return the facts about the data that metrics.json stores, in plain types."""
        where = {"source": self.source.kind.value, "path": self.source.where, "fingerprint": self.source.fingerprint}
        return where | {"vocab_size": self.tokenizer.vocab_size}

    def training_words(self) -> dict[str, TrainingWords]:
        """Return the words of the training texts by the name of their embedding, or {} without words."""
        return {}

    def texts_of(self, split: str) -> Sequence[Text]:
        """Return the texts of a split, which are read again from the source. A text that is not divided is in train."""
        raise NotImplementedError

    def known_documents(self) -> list[str]:
        """Return short training texts that a generator may memorize. The default is []."""
        return []

    def split_loader(self, split: str) -> TableLoader:
        """Return a loader of a split for an evaluation: every row or token occurs once.

        split: `train`, `validation` or `test`.
        """
        raise NotImplementedError

    def val_dataloader(self) -> TableLoader:
        """Return a loader of the validation split. Every row or token occurs once."""
        return self.split_loader("validation")

    def test_dataloader(self) -> TableLoader:
        """Return a loader of the test split. Every row or token occurs once."""
        return self.split_loader("test")

    def training_loader(self, dataset: Dataset[Any], batches: EndlessBatches) -> TableLoader:
        """Return a loader of training batches. It starts at the step of the trainer if a trainer is running."""
        if self.is_asked_by_trainer:
            return self.signed(ResumableLoader(dataset, batches, self.trainer))
        return self.signed(PassLoader(dataset, batches, look_up=self.look_up))

    def table_loader(self, dataset: Dataset[Any], batches: Sampler[np.ndarray]) -> TableLoader:
        """Return a loader that yields each evaluation batch once."""
        look_up = None if self.is_asked_by_trainer else self.look_up
        return self.signed(TableLoader(dataset, batches, look_up=look_up))

    def signed(self, loader: TableLoader) -> TableLoader:
        """Return the loader with the method `reading`, with which a module refuses another vocabulary."""
        loader.reading = self.reading
        return loader

    def reading(self) -> dict[str, Any]:
        """Return the tokenizers, the class names and the rest of the metadata, in plain types."""
        return {"tokenizer": self.tokenizer.to_json(), **self.metadata()}

    def use_vocabulary_of(self, module: Any) -> None:
        """Encode the texts with the vocabulary and the classes of a trained module.

        Call it before the data is set up, to test or train a module on data that it was not built for.

        Args:
            module: A LightningModule created by `for_data` or `load_from_checkpoint`.

        Raises:
            ValueError: If the data is already set up, or the module has no vocabulary.
        """
        if hasattr(self, "table"):
            raise ValueError("the data is already set up; call use_vocabulary_of right after the constructor")
        if module.metadata is None:
            raise ValueError("the module has no vocabulary; create it with for_data or load_from_checkpoint")
        self.read_as(module.metadata)

    def read_as(self, metadata: dict[str, Any]) -> None:
        """Use the tokenizers and the names of the labels in the metadata of a checkpoint."""
        self.reader, self.given_tokenizer = metadata, tokenizer_of_json(metadata["tokenizer"])

    def look_up(self, batch: Any) -> Any:
        """Return the batch of tokens of a batch of indices, on the CPU."""
        return move_data_to_device(self.table(move_data_to_device(batch, self.table.flat.device)), "cpu")

    @property
    def is_asked_by_trainer(self) -> bool:
        """Whether a running trainer calls the hooks of this data module to look up the batches."""
        trainer = self.trainer
        return trainer is not None and trainer.state.status is TrainerStatus.RUNNING

    @property
    def share(self) -> dict[str, int]:
        """The rank of this process and the number of processes among which every batch is divided."""
        trainer = self.trainer
        return {"rank": trainer.global_rank, "world_size": trainer.world_size} if trainer else {}

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:  # noqa: ARG002
        """Return the batch of tokens if the table is on the CPU; else return the batch of indices."""
        if not isinstance(batch, self.index_batch) or self._is_resident():
            return batch
        return self.table(batch)

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:  # noqa: ARG002
        """Return the batch of tokens, looked up on the accelerator if the batch still has indices."""
        return self.table(batch) if isinstance(batch, self.index_batch) else batch

    def _is_resident(self) -> bool:
        """Return whether the table is on the device of the network. It is moved there if it fits."""
        assert self.trainer is not None
        device = self.trainer.strategy.root_device
        if self.table.flat.device != device and fits(self.table, device):
            self.table.to(device)
        return bool(self.table.flat.device == device)


class RowData(TableData):
    """The base class of data with separate rows: labeled texts, or pairs of sentences."""

    def rows(self, split: str) -> NDArray[np.int64]:
        """Return the row numbers of a split, (n,)."""
        raise NotImplementedError

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of each row, (n,). Batches have rows of similar length."""
        raise NotImplementedError

    def lookup(self) -> Dataset[Any]:
        """Return the data set that turns an array of row numbers into a batch of indices."""
        raise NotImplementedError

    def training_lookup(self) -> Dataset[Any]:
        """Return the data set that does the same for training rows."""
        return self.lookup()

    def describe(self) -> dict[str, Any]:
        """Return the facts about the data that metrics.json stores, in plain types."""
        return super().describe() | {"rows": {split: len(self.rows(split)) for split in SPLITS}}

    def has_split(self, split: str) -> bool:
        return len(self.rows(split)) > 0

    def split_loader(self, split: str) -> TableLoader:
        self.ensure_setup()
        return self.evaluation_loader(self.rows(split), self.training_lookup() if split == "train" else None)

    def shuffled_loader(self, batches: type[TrainingBatches] = TrainingBatches) -> TableLoader:
        """Return a loader of shuffled training rows. batches: the sampler."""
        self.ensure_setup()
        return self.training_loader(self.training_lookup(), self.sampler(self.rows("train"), batches))

    def sampler(self, rows: NDArray[np.int64], batches: type[TrainingBatches] = TrainingBatches) -> TrainingBatches:
        """Return a sampler of some rows in shuffled batches. batches: its class."""
        lengths = self.lengths(rows) if self.options.bucket_by_length else None
        return batches(rows, self.options.batch_size, self.options.seed, lengths=lengths, **self.share)

    def evaluation_loader(self, rows: NDArray[np.int64], lookup: Dataset[Any] | None = None) -> TableLoader:
        """Return a loader of some rows, each once, in batches of similar length. lookup: None for `self.lookup()`."""
        batches = EvaluationBatches(rows, self.options.evaluation_batch_size, lengths=self.lengths(rows), **self.share)
        return self.table_loader(self.lookup() if lookup is None else lookup, batches)


class TextRows(RowData):
    """The base class of data whose rows are texts that are encoded with one tokenizer.

    A subclass sets `encoded`, `tokenizer` and `table` in `setup`, and defines `metadata`.

    Attributes:
        encoded: The encoded texts. Set by `setup`.
    """

    index_batch: ClassVar[type] = RowBatch
    encoded: EncodedTexts

    def prepare_data(self) -> None:
        """Encode the texts unless the cache has them."""
        self.encode()

    def encode(self) -> EncodedTexts:
        """Return the encoded texts, from the cache if it has them."""
        return encode(self.source, self.options, self.given_tokenizer)

    def rows(self, split: str) -> NDArray[np.int64]:
        rows = self.encoded.rows_of(split)
        return training_rows(rows, self.options) if split == "train" else rows

    def texts_of(self, split: str) -> Sequence[Text]:
        return self.source.values(self.options.text_columns, self.rows(split))

    def lookup(self) -> Dataset[Any]:
        return Rows(self.encoded.lengths, self.options.context_length)

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of each row, (n,), at most `context_length`."""
        return longest(self.encoded.lengths[rows]).clip(max=self.options.context_length)

    def train_dataloader(self) -> TableLoader:
        """Return the shuffled training batches."""
        return self.shuffled_loader()
