"""Batches of reviews and their labels."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.classifier.pair_rows import fitted
from firstlight.data.batches import (
    EvaluationBatches,
    PassLoader,
    ResumableLoader,
    RowBatch,
    Rows,
    TableLoader,
    TrainingBatches,
    several,
)
from firstlight.data.choice_rows import by_row, longest
from firstlight.data.encoding import EncodedTexts, encode, encode_texts, training_rows
from firstlight.data.labels import LEFT_OUT, LabelReading, alike, class_names_of, targets_of
from firstlight.data.options import Balance, Labels, ReviewOptions, takes
from firstlight.data.store import SPLITS
from firstlight.data.table_data import RowData, TrainingWords
from firstlight.data.tables import Cuts, TokenTable, texts_of
from firstlight.data.target_encoding import NgramTargetEncoding, num_features
from firstlight.errors import UserError
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import Text, Tokenizer, special_tokens

log = logging.getLogger(__name__)


@takes(ReviewOptions)
class ReviewData(RowData):
    """A data module of labelled texts, such as reviews, for a classifier.

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

    index_batch = RowBatch
    options: ReviewOptions
    encoded: EncodedTexts
    tokenizer: Tokenizer
    targets: NDArray[np.int64]
    table: TokenTable
    target_encoding: NgramTargetEncoding | None = None
    reader: tuple[Tokenizer | None, list[str] | None] = (None, None)  # of a trained network that reads this data
    reader_metadata: dict[str, Any] | None = None  # the metadata of that network

    def prepare_data(self) -> None:
        """Encode the texts unless the cache has them."""
        encode(self.source, self.options, *self.reader)

    def setup(self, stage: str = "fit") -> None:  # noqa: ARG002  (all splits live in one table)
        """Open the encoded texts. All splits are opened, whatever the stage."""
        if hasattr(self, "table"):
            return
        self.encoded = encode(self.source, self.options, *self.reader)
        self.tokenizer = self.encoded.tokenizer
        kind, label_names = self.options.labels, self.encoded.label_names
        self.targets = targets_of(self.encoded.labels, kind, label_names)
        self.class_names = class_names_of(kind, label_names, self.options.class_names)
        self.label_reading = LabelReading.of(self.encoded.meanings, kind, label_names, self.class_names)
        is_new = self.reader_metadata is None and kind is Labels.classes
        for sentence in (self.encoded.overlaps, alike(label_names) if is_new else None):
            if sentence:
                log.warning("%s: %s", self.source.where, sentence)
        length, truncation = self.options.context_length, self.options.truncation
        ids = fitted(self.encoded.ids, self.tokenizer, length, truncation)
        self.table = TokenTable(ids, self.targets, length, truncation, choices=self.options.choices)
        self._rows = {split: self._used_rows(split) for split in SPLITS}
        self._check_classes()
        self.target_encoding = (
            self._count() if self.reader_metadata is None else self._target_encoding_of(self.reader_metadata)
        )
        self.table.target_encoding = self.target_encoding

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def has_ordered_classes(self) -> bool:
        return self.options.has_ordered_classes

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

    def training_rows_of(self, options: ReviewOptions) -> NDArray[np.int64]:
        """Return the rows of this data that a run with other options trains on, (n,). The division is the same."""
        rows = self.encoded.rows_of("train")
        return training_rows(rows[self.targets[rows] != LEFT_OUT], options)

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of tokens of each row, (n,), at most `context_length`."""
        return longest(self.lookup().lengths[rows])

    def class_weights(self) -> Tensor | None:
        """Return the weight of each class in the loss, (classes,), or None unless `balance="weights"`.

        The mean weight over all training rows is 1.
        """
        if self.options.balance is not Balance.weights:
            return None
        return torch.from_numpy(self._inverse_frequency()).float()

    def module_options(self) -> dict[str, Any]:
        """Return the options of the LightningModule that depend on the data."""
        return {"class_weights": self.class_weights()}

    def metadata(self) -> dict[str, Any]:
        """Return the facts about the data that a checkpoint stores, in plain types and tensors."""
        names: dict[str, Any] = {"class_names": list(self.class_names), "label_names": list(self.encoded.label_names)}
        names |= self._forms()
        return names if self.target_encoding is None else names | {"target_encoding": self.target_encoding.table()}

    def training_words(self) -> dict[str, TrainingWords]:
        ids = self.encoded.select(self.rows("train"))
        no_words = tuple(range(len(special_tokens(pairs=self.tokenizer.reads_pairs))))
        return {"embedding": TrainingWords(self.tokenizer.words, ids, no_words)}

    def texts(self, split: str, count: int) -> list[str]:
        """Return the texts of the first `count` rows of a split, pairs with ||| between their texts.

        They are read again from the source.
        """
        return self.source.texts(self.options.text_columns, self.rows(split)[:count].tolist())

    def describe(self) -> dict[str, Any]:
        """Return the facts about the data that metrics.json stores, in plain types."""
        return super().describe() | {"classes": self.class_names, "labels": str(self.label_reading)}

    def train_dataloader(self) -> ResumableLoader | PassLoader:
        """Return the shuffled training batches, each a `ReviewBatch`.

        During `Trainer.fit` the batches start at the trainer's step, so a resumed training gets the same batches as an
        uninterrupted one. Without a trainer, every pass over the loader has all training rows in a new order.

        Example:
            >>> data = ReviewData(path="reviews.csv", labels="binary", batch_size=10)
            >>> next(iter(data.train_dataloader())).targets.shape
            torch.Size([10])
        """
        self.ensure_setup()
        rows = self.rows("train")
        batches = TrainingBatches(
            rows,
            self.options.batch_size,
            self.options.seed,
            lengths=self.lengths(rows) if self.options.bucket_by_length else None,
            weights=self._inverse_frequency()[self.targets[rows]] if self.options.balance is Balance.sampling else None,
            **self.share,
        )
        return self.training_loader(self.training_lookup(), batches)

    def training_lookup(self) -> Rows:
        """Return the data set of training rows, whose own labels are not part of their target encoding."""
        return Rows(self.lookup().lengths, are_counted=self._are_counted())

    def text_dataloader(self, texts: Sequence[Text]) -> TableLoader:
        """Return a loader of your own texts in their order, for `Trainer.predict(module, dataloaders=…)`.

        Each batch is a `ReviewBatch` whose targets are all 0. Texts longer than `context_length` tokens are cut, with a
        warning.

        Args:
            texts: Any number of texts, or of tuples of two texts for data of pairs, or of a context and the answers for
                multiple choice. They are normalized and encoded like the training texts.

        Example:
            >>> data = ReviewData(path="reviews.csv", labels="binary")
            >>> batch = next(iter(data.text_dataloader(["It broke.", "I love it and use it a lot."])))
            >>> batch.rows
            tensor([0, 1])
        """
        self.ensure_setup()
        options, choices = self.options, self.options.choices
        ids = encode_texts(self.tokenizer, several(texts), choices)
        lengths = by_row(ids.lengths, choices)
        cuts = Cuts(options.context_length)
        cuts.count(longest(lengths))
        cuts.warn()
        targets = np.zeros(len(lengths), np.int64)
        read = fitted(ids, self.tokenizer, options.context_length, options.truncation)
        table = TokenTable(read, targets, options.context_length, options.truncation, self.target_encoding, choices)
        batches = EvaluationBatches(np.arange(len(lengths)), options.evaluation_batch_size)
        return self.signed(TableLoader(Rows(lengths.clip(max=options.context_length)), batches, look_up=table))

    def read_as(self, metadata: dict[str, Any]) -> None:
        tokenizer: Any = tokenizer_of_json(metadata["tokenizer"])
        self.reader = (tokenizer, metadata["label_names"])
        self.reader_metadata = metadata

    def lookup(self) -> Rows:
        return Rows(self.encoded.lengths.clip(max=self.options.context_length))

    def _count(self) -> NgramTargetEncoding | None:
        """Return the target encoding counted on the training rows. Raises UserError for classes without an order."""
        options = self.options
        if not options.target_encoding:
            return None
        if self.num_classes > 2 and not self.has_ordered_classes:
            raise UserError(
                f"data.target_encoding=true requires ordered classes, but the {self.num_classes} of "
                "data.labels=classes have no order; set data.target_encoding=false"
            )
        target_encoding = NgramTargetEncoding(
            self.tokenizer.vocab_size,
            options.target_encoding_pairs,
            self.num_classes,
            options.target_encoding_shrinkage,
        )
        texts = texts_of(self.table, self.rows("train"))
        target_encoding.count(texts.token_ids, texts.padding_mask, texts.targets)
        pairs = int((target_encoding.pair_texts > 0).sum())
        log.info(
            "data.target_encoding: %d words and %d pairs in %d texts",
            target_encoding.vocab_size,
            pairs,
            len(texts.targets),
        )
        return target_encoding

    def _target_encoding_of(self, metadata: dict[str, Any]) -> NgramTargetEncoding | None:
        """Return the target encoding in the metadata of a trained network, or None if the metadata has none."""
        if "target_encoding" not in metadata:
            return None
        try:
            return NgramTargetEncoding.from_table(
                metadata["target_encoding"], self.tokenizer.vocab_size, self.num_classes
            )
        except ValueError as error:
            raise UserError(f"the target encoding of the network does not fit this data: {error}") from error

    def _are_counted(self) -> bool:
        """Return whether the target encoding was counted on these rows."""
        if self.target_encoding is None:
            return False
        return self.reader_metadata is None or self.reader_metadata["data_fingerprint"] == self.source.fingerprint

    def _used_rows(self, split: str) -> NDArray[np.int64]:
        if split == "train":
            return self.training_rows_of(self.options)
        rows = self.encoded.rows_of(split)
        return rows[self.targets[rows] != LEFT_OUT]

    def _check_classes(self) -> None:
        """Raise UserError unless the training rows have at least two classes."""
        for split in ("train", "validation"):
            if len(self.rows(split)) == 0:
                problem = f"{self.source.where} has no {split} rows for data.labels={self.options.labels.value}"
                if split in self.source.splits:
                    raise UserError(f"{problem}; add rows with these labels")
                raise UserError(
                    f"{problem}; its {len(self.encoded.splits)} rows have too few of each class for a {split} split; "
                    "add rows, or set a larger data.validation_fraction"
                )
        present = np.unique(self.targets[self.rows("train")])
        if len(present) < 2:
            only = self.class_names[int(present[0])]
            if self.options.choices is not None:
                raise UserError(
                    f"{self.source.where}: the correct answer of every training row is {only}; write the answers of "
                    "each row in a random order"
                )
            if self.options.labels is Labels.binary and (doubt := self.label_reading.doubt(self.options.lowest_label)):
                raise UserError(f"{self.source.where}: every training row is {only}: {doubt}")
            raise UserError(
                f"{self.source.where}: every training row is {only} with data.labels={self.options.labels.value}; "
                f"for labels that are not stars, set data.labels=classes"
            )
        for split in SPLITS:
            if len(rows := self.rows(split)) and (sentence := self.label_reading.missing(self.targets[rows])):
                log.warning("%s, %s split: %s", self.source.where, split, sentence)

    def _inverse_frequency(self) -> NDArray[np.float64]:
        counts = np.bincount(self.targets[self.rows("train")], minlength=self.num_classes)
        return counts.sum() / (self.num_classes * counts.clip(min=1))
