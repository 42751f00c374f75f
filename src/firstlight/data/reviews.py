"""Reviews and their labels as batches."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.data.batches import (
    EvaluationBatches,
    PassLoader,
    ResumableLoader,
    RowBatch,
    Rows,
    TableLoader,
    TrainingBatches,
)
from firstlight.data.encoding import SPLITS, EncodedTexts, drawn, encode
from firstlight.data.labels import LEFT_OUT, class_names_of, targets_of
from firstlight.data.options import Balance, ReviewOptions, options_from, takes
from firstlight.data.sources import Source, find_source
from firstlight.data.table_data import RowData, TrainingWords
from firstlight.data.tables import TokenTable
from firstlight.errors import UserError
from firstlight.text.tokenizers import Tokenizer


class ReviewData(RowData):
    """Labelled reviews from a local file or folder, the Hub, or the generated sample."""

    index_batch = RowBatch
    options: ReviewOptions
    encoded: EncodedTexts
    tokenizer: Tokenizer
    targets: NDArray[np.int64]
    table: TokenTable

    @takes(ReviewOptions)
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options_from(ReviewOptions, options, "ReviewData")

    def prepare_data(self) -> None:
        """Encode what is not in the cache yet."""
        encode(self.source, self.options)

    def setup(self, stage: str = "fit") -> None:  # noqa: ARG002  (all splits live in one table)
        """Open the encoded reviews."""
        if hasattr(self, "table"):
            return
        self.encoded = encode(self.source, self.options)
        self.tokenizer = self.encoded.tokenizer
        self.targets = targets_of(self.encoded.labels, self.options.labels)
        self.class_names = class_names_of(self.options.labels, self.encoded.label_names, self.options.class_names)
        self.table = TokenTable(self.encoded.ids, self.targets, self.options.context_length, self.options.truncation)
        self._rows = {split: self._used_rows(split) for split in SPLITS}
        self._check_classes()

    @cached_property
    def source(self) -> Source:
        """Where the rows come from, looked for once; every process does, as Lightning prepares data in one of them."""
        return find_source(self.options, sample=self.options.sample.value)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def has_ordered_classes(self) -> bool:
        return self.options.has_ordered_classes

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

    def module_options(self) -> dict[str, Any]:
        """What the LightningModule is told of the data."""
        return {"class_weights": self.class_weights()}

    def card(self) -> dict[str, Any]:
        """What a checkpoint says of the data, for those who read it without."""
        return {"class_names": list(self.class_names), "label_names": list(self.encoded.label_names)}

    def training_words(self) -> dict[str, TrainingWords]:
        return {"embedding": TrainingWords(self.tokenizer.words, self.encoded.ids.select(self.rows("train")))}

    def texts(self, split: str, count: int) -> list[str]:
        """The texts of the first rows of a split, read again from the source."""
        return self.source.texts(self.options.text_column, self.rows(split)[:count].tolist())

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

    def train_dataloader(self) -> ResumableLoader | PassLoader:
        """Shuffled batches whose position is the trainer's."""
        rows = self.rows("train")
        batches = TrainingBatches(
            rows,
            self.options.batch_size,
            self.options.seed,
            lengths=self.lengths(rows) if self.options.bucket_by_length else None,
            weights=self._inverse_frequency()[self.targets[rows]] if self.options.balance is Balance.sampling else None,
            **self.share,
        )
        return self.training_loader(self.lookup(), batches)

    def text_dataloader(self, texts: Sequence[str]) -> TableLoader:
        """Texts of your own, in their order, as `Trainer.predict(module, dataloaders=…)` takes them; targets are 0."""
        ids = self.tokenizer.encode_batch(texts)
        options = self.options
        table = TokenTable(ids, np.zeros(len(ids), np.int64), options.context_length, options.truncation)
        batches = EvaluationBatches(np.arange(len(ids)), options.evaluation_batch_size)
        return TableLoader(Rows(ids.lengths.clip(max=options.context_length)), batches, look_up=table)

    def lookup(self) -> Rows:
        return Rows(self.encoded.ids.lengths.clip(max=self.options.context_length))

    def _used_rows(self, split: str) -> NDArray[np.int64]:
        rows = self.encoded.rows_of(split)
        rows = rows[self.targets[rows] != LEFT_OUT]
        return drawn(rows, self.options.max_train_rows if split == "train" else None, self.options.split_seed)

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
