"""Batches of reviews and their labels."""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.classifier.prediction import target_encoding_of
from firstlight.data.arguments import takes
from firstlight.data.batches import EvaluationBatches, Rows, TableLoader, training_batches
from firstlight.data.encoding import EncodedTexts, encode, training_rows
from firstlight.data.labels import LEFT_OUT, SENTIMENTS, STARS, LabelReading, alike, class_names_of, targets_of
from firstlight.data.options import Balance, Labels, ReviewOptions
from firstlight.data.row_options import LongTexts, groups_of
from firstlight.data.store import SPLITS
from firstlight.data.table_data import TextRows, TrainingWords
from firstlight.data.tables import ReviewBatch, TokenTable, fitted
from firstlight.data.target_encoding import NgramTargetEncoding, num_features
from firstlight.errors import UserError
from firstlight.lit.losses import group_terms
from firstlight.text.tokenizers import Tokenizer

log = logging.getLogger(__name__)


@takes(ReviewOptions)
class ReviewData(TextRows):
    """A data module of labeled texts, such as reviews, for a classifier.

    The texts come from a local file or folder, a data set of the Hugging Face Hub, or a generated sample. They are
    encoded once, with a vocabulary that is counted on the training rows, and stored in `cache_dir`. The loaders yield
    batches of the type `ReviewBatch`. If the source has no validation or test split, a part of the training rows is
    used instead.

    Args:
        {options}

    Raises:
        ValueError: If an option has an impossible value. The message lists the choices.
        UserError: In `prepare_data` and `setup`, if a row cannot be read. The message names the file and the line.

    Source: the post on a review classifier in Julia (May 2022).

    Example:
        >>> from pathlib import Path
        >>> from firstlight.data import ReviewData
        >>> lines = [f"it broke after {i} weeks,0\\nit works after {i} weeks,4" for i in range(10)]
        >>> _ = Path("weeks.csv").write_text("\\n".join(["text,label", *lines]))
        >>> data = ReviewData(path="weeks.csv", labels="binary", context_length=8, batch_size=4)
        >>> batch = next(iter(data.train_dataloader()))
        >>> batch.token_ids.shape, batch.targets.shape
        (torch.Size([4, 5]), torch.Size([4]))
        >>> data.class_names
        ['negative', 'positive']
    """

    options: ReviewOptions
    tokenizer: Tokenizer
    targets: NDArray[np.int64]
    table: TokenTable
    target_encoding: NgramTargetEncoding | None = None

    def setup(self, stage: str = "fit") -> None:
        """Open the encoded texts of all splits. For `fit` the training and validation splits must have all classes.

        A network that predicts negative or positive, and reads this data, gets the sentiments of other labels.
        """
        if hasattr(self, "table"):
            return
        options, self.encoded = self.options, self.encode()
        self.tokenizer, label_names = self.encoded.tokenizer, self.encoded.label_names
        self.labels = Labels.binary if self._is_read_as_sentiments else options.labels
        self.targets = targets_of(self.encoded.labels, self.labels, label_names)
        self.class_names = class_names_of(self.labels, label_names, options.class_names)
        self.label_reading = LabelReading.of(self.encoded.meanings, self.labels, label_names, self.class_names)
        if options.labels is Labels.binary and (doubt := self.label_reading.doubt(options.lowest_label)):
            raise UserError(f"{self.source.where}: {doubt}")
        ids = fitted(self.encoded.ids, self.tokenizer, options.context_length, options.truncation)
        self.table = TokenTable(ids, self.targets, options.context_length, options.truncation, choices=options.choices)
        self._rows = {split: self._used_rows(split) for split in SPLITS}
        if stage == "fit":
            self._check_splits()
            self.groups(np.concatenate(list(self._rows.values())))  # raises UserError before the training
        trained, size = self.reader, self.tokenizer.vocab_size
        self.target_encoding = self._count() if trained is None else target_encoding_of(trained, size, "the network")
        self.table.target_encoding = self.target_encoding

    @property
    def _is_read_as_sentiments(self) -> bool:
        return self.reader is not None and tuple(self.reader["class_names"]) == SENTIMENTS

    def encode(self) -> EncodedTexts:
        label_names = self.reader and self.reader["label_names"]
        if self._is_read_as_sentiments and tuple(label_names) == STARS and self.options.labels is Labels.classes:
            label_names = list(SENTIMENTS)
        return encode(self.source, self.options, self.given_tokenizer, label_names)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def has_ordered_classes(self) -> bool:
        return self.labels is Labels.stars

    @property
    def num_counted(self) -> int:
        return 0 if self.target_encoding is None else self.target_encoding.num_numbers

    def network_sizes(self) -> dict[str, int]:
        features = {} if self.target_encoding is None else {"num_features": num_features(self.num_classes)}
        return super().network_sizes() | features | self._forms()

    def _forms(self) -> dict[str, bool]:
        """Return the forms of the texts that a network must be built for, by the name of its argument."""
        forms = {"both_orders": self.options.both_orders, "choices": self.options.choices is not None}
        return {name: True for name, is_used in forms.items() if is_used}

    def rows(self, split: str) -> NDArray[np.int64]:
        """Return the numbers of the rows of a split that have a target, (n,)."""
        return self._rows[split]

    def groups(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the group of each row, named by `group_column`, or [] without it. Raises UserError."""
        return groups_of(self.source, self.options.group_column, rows.tolist()) if self.options.group_column else []

    def class_weights(self) -> Tensor | None:
        """Return the weight of each class in the loss, (classes,), or None unless `balance="weights"`.

        The mean weight over all training rows is 1.
        """
        if self.options.balance is not Balance.weights:
            return None
        counts = np.bincount(self.targets[self.rows("train")], minlength=self.num_classes)
        return torch.from_numpy(counts.sum() / (self.num_classes * counts.clip(min=1))).float()

    def module_options(self) -> dict[str, Any]:
        """Return the options of the LightningModule that depend on the data."""
        options: dict[str, Any] = {"class_weights": self.class_weights()}
        return options | ({"groups": group_terms(self)} if self.options.group_column else {})

    def metadata(self) -> dict[str, Any]:
        """Return the facts about the data that a checkpoint stores, in plain types and tensors."""
        names: dict[str, Any] = {"class_names": list(self.class_names), "label_names": list(self.encoded.label_names)}
        names |= self._forms()
        return names if self.target_encoding is None else names | {"target_encoding": self.target_encoding.table()}

    def training_words(self) -> dict[str, TrainingWords]:
        ids = self.encoded.select(self.rows("train"))
        return {"embedding": TrainingWords(self.tokenizer.words, ids, self.tokenizer.no_words)}

    def texts(self, split: str, count: int) -> list[str]:
        """Return the texts of the first `count` rows of a split, pairs with ||| between their texts.

        They are read again from the source.
        """
        return self.source.texts(self.options.text_columns, self.rows(split)[:count].tolist())

    def describe(self) -> dict[str, Any]:
        """Return the facts about the data that metrics.json stores, in plain types."""
        return super().describe() | {"classes": self.class_names, "labels": str(self.label_reading)}

    def train_dataloader(self) -> TableLoader:
        """Return the shuffled training batches, each a `ReviewBatch`.

        During `Trainer.fit` the batches start at the trainer's step, so a resumed training gets the same batches as an
        uninterrupted one. Without a trainer, every pass over the loader has all training rows in a new order.

        Example:
            >>> data = ReviewData(path="reviews.csv", labels="binary", batch_size=10)
            >>> next(iter(data.train_dataloader())).targets.shape
            torch.Size([10])
        """
        return self.training_loader(batches=training_batches(self), dataset=self.training_lookup(LongTexts.cut))

    def lookup(self) -> Rows:
        return Rows(self.encoded.lengths, self.options.context_length, self.options.long_texts)

    def training_lookup(self, long_texts: LongTexts | None = None) -> Rows:
        """Return the data set of training rows, whose own labels are not part of their target encoding.

        long_texts: None for that of the options, which applies to evaluation.
        """
        is_counted = self.target_encoding is not None
        if is_counted and self.reader is not None:
            is_counted = self.reader["data_fingerprint"] == self.source.fingerprint
        reading = (self.options.context_length, long_texts or self.options.long_texts)
        return Rows(self.encoded.lengths, *reading, are_counted=is_counted)

    def batches_of(self, rows: NDArray[np.int64]) -> Iterator[ReviewBatch]:
        """Yield batches of some rows, each once. The labels of training rows are not part of their target encoding."""
        is_training = np.isin(rows, self.rows("train"))
        yield from self.evaluation_loader(rows[~is_training])
        yield from self.evaluation_loader(rows[is_training], self.training_lookup())

    def _count(self) -> NgramTargetEncoding | None:
        """Return the target encoding counted on the training rows. Raises UserError for classes without an order."""
        options = self.options
        if not options.target_encoding:
            return None
        if self.num_classes > 2 and not self.has_ordered_classes:
            problem = f"requires ordered classes, but the {self.num_classes} of data.labels=classes have no order"
            raise UserError(f"data.target_encoding=true {problem}; set data.target_encoding=false")
        sizes = (self.tokenizer.vocab_size, options.target_encoding_pairs, self.num_classes)
        target_encoding = NgramTargetEncoding(*sizes, options.target_encoding_shrinkage)
        rows, lengths = self.rows("train"), self.encoded.lengths
        most = int(lengths.max(initial=1)) if options.random_span else options.context_length  # what may be read
        lookup, table = Rows(lengths, most), TokenTable(self.encoded.ids, self.targets, most, options.truncation)
        batches = EvaluationBatches(rows, options.evaluation_batch_size, lengths=lengths[rows])
        target_encoding.count(lambda: (table(lookup[each])[:3] for each in batches))
        return target_encoding

    def _used_rows(self, split: str) -> NDArray[np.int64]:
        rows = self.encoded.rows_of(split)
        rows = rows[self.targets[rows] != LEFT_OUT]
        return training_rows(rows, self.options) if split == "train" else rows

    def _check_splits(self) -> None:
        """Warn of doubtful rows and labels. Raise UserError unless the training rows have at least two classes."""
        is_new = self.reader is None and self.options.labels is Labels.classes
        for sentence in (self.encoded.overlaps, alike(self.encoded.label_names) if is_new else None):
            if sentence:
                log.warning("%s: %s", self.source.where, sentence)
        for split in ("train", "validation"):
            if len(self.rows(split)):
                continue
            if split not in self.source.splits:
                problem = f"{self.source.where}: {len(self.rows('train'))} rows are too few for a {split} split"
                raise UserError(f"{problem}; add rows, or set a larger data.validation_fraction")
            problem = f"{self.source.where} has no {split} rows for data.labels={self.options.labels.value}"
            raise UserError(f"{problem}; add rows with these labels")
        present = np.unique(self.targets[self.rows("train")])
        if len(present) < 2:
            only = self.class_names[int(present[0])]
            problem = f"{self.source.where}: every training row is {only} with data.labels={self.options.labels.value}"
            remedy = "for labels that are not stars, set data.labels=classes"
            if self.options.choices is not None:
                remedy = "write the answers of each row in a random order"
            raise UserError(f"{problem}; {remedy}")
        for split in SPLITS:
            if len(rows := self.rows(split)) and (sentence := self.label_reading.missing(self.targets[rows])):
                log.warning("%s, %s split: %s", self.source.where, split, sentence)
