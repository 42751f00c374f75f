"""Batches of sentences and their translations."""

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from firstlight.data.arguments import takes
from firstlight.data.batches import LengthBatches, TableLoader
from firstlight.data.encoding import drawn
from firstlight.data.sources import Source
from firstlight.data.store import SPLITS
from firstlight.data.table_data import RowData, TrainingWords
from firstlight.data.tables import IGNORED, Table, count_cuts, look_up
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID, MARK_IDS, SentenceTokenizer
from firstlight.text.tokenizers import Text
from firstlight.translator.corpus import EncodedPairs, PairTokenizers, encode_pairs, find_pairs, tokenizers_of
from firstlight.translator.options import PairOptions

log = logging.getLogger(__name__)


class PairRows(NamedTuple):
    """The row numbers of a batch, from which a table makes the batch of tokens."""

    rows: Tensor  # (batch,) int64
    longest_source: int  # the length of the longest source in tokens
    longest_target: int  # the length of the longest target, counting [END]
    num_tokens: int  # the number of tokens of all targets together, counting [END]


class PairBatch(NamedTuple):
    """A batch of sentences and their translations for an encoder-decoder.

    Attributes:
        source_ids: Token ids of the source sentences, (batch, source length), int. Padding is 0.
        source_mask: (batch, source length), bool. True where a token is real.
        token_ids: Token ids that the decoder reads, (batch, target length), int: [BEGIN] and the target sentence.
        targets: Token ids that the decoder predicts, (batch, target length), int: the target sentence and [END].
            Padding is -100, which the loss ignores.
        target_mask: (batch, target length), bool. True where a target is real.
        rows: The row number of each pair in its data, (batch,), int.
        num_tokens: The number of real targets in the batch.
        num_targets: The number of real targets, which equals num_tokens.
        inputs: The inputs of a network: source_ids, token_ids, source_mask, target_mask.

    Example:
        >>> from firstlight.data import PairData
        >>> data = PairData(path="pairs.csv", tokenizer="word", batch_tokens=100)
        >>> batch = next(iter(data.train_dataloader()))
        >>> batch.source_ids.shape == batch.source_mask.shape and batch.token_ids.shape == batch.targets.shape
        True
        >>> int(batch.target_mask.sum()) == batch.num_tokens
        True
    """

    source_ids: Tensor
    source_mask: Tensor
    token_ids: Tensor
    targets: Tensor
    target_mask: Tensor
    rows: Tensor
    num_tokens: int

    @property
    def num_targets(self) -> int:
        return self.num_tokens

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The inputs of a network: the ids of both sides, then both masks."""
        return self.source_ids, self.token_ids, self.source_mask, self.target_mask


class Pairs(Dataset[PairRows]):
    """Data set that turns an array of row numbers into `PairRows`, without work for each row."""

    def __init__(self, source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> None:
        """source_lengths, target_lengths: (rows,) the numbers of tokens without marks."""
        self.source_lengths, self.target_lengths = source_lengths, target_lengths

    def __getitem__(self, rows: NDArray[np.int64]) -> PairRows:
        sources, targets = self.source_lengths[rows], self.target_lengths[rows] + 1
        return PairRows(torch.from_numpy(rows), int(sources.max()), int(targets.max()), int(targets.sum()))


class PairTable(Table):
    """All pairs on one device. A batch of them is cut to the context, marked and padded.

    The last token to predict of a target that is cut is its next token, not [END].
    """

    starts: Tensor
    lengths: Tensor
    flat_targets: Tensor
    target_starts: Tensor
    target_lengths: Tensor
    endings: Tensor

    def __init__(self, source: RaggedIds, target: RaggedIds, context_length: int) -> None:
        target_lengths = target.lengths.clip(max=context_length - 1)  # [END] counts as a token
        next_places = (target.offsets[:-1] + target_lengths).clip(max=len(target.ids) - 1)
        super().__init__(
            flat=source.ids,
            starts=source.offsets[:-1].copy(),
            lengths=source.lengths.clip(max=context_length),
            flat_targets=target.ids,
            target_starts=target.offsets[:-1].copy(),
            target_lengths=target_lengths,
            endings=np.where(target_lengths < target.lengths, target.ids[next_places], END_ID),
        )

    def forward(self, batch: PairRows) -> PairBatch:
        """Return the batch of tokens of some rows. Each side is padded to its longest row."""
        rows, longest = batch.rows, batch.longest_target
        source_ids, source_mask = look_up(self.flat, self.starts, self.lengths, rows, batch.longest_source)
        written, is_written = look_up(self.flat_targets, self.target_starts, self.target_lengths, rows, longest)
        lengths = is_written.sum(dim=1, keepdim=True)  # (batch, 1)
        is_end = torch.arange(longest, device=lengths.device) == lengths
        target_mask = is_written | is_end
        targets = torch.where(is_end, self.endings[rows, None].to(written), written).masked_fill(~target_mask, IGNORED)
        begins = torch.full_like(written[:, :1], BEGIN_ID)
        token_ids = torch.cat((begins, written[:, :-1]), dim=1)
        return PairBatch(source_ids, source_mask, token_ids, targets, target_mask, rows, batch.num_tokens)


@takes(PairOptions)
class PairData(RowData):
    """A data module of sentences and their translations for an encoder-decoder.

    The pairs come from local files, a data set of the Hugging Face Hub, or a generated sample. Case and punctuation are
    kept. The pairs are encoded once, with a vocabulary that is learned from the training pairs, and stored in
    `cache_dir`. The loaders yield batches of the type `PairBatch` with sentences of similar length. If the source has
    no validation or test split, a part of the training pairs is used instead.

    Args:
        {options}

    Raises:
        ValueError: If an option has an impossible value. The message lists the choices.
        UserError: In `prepare_data` and `setup`, if a row cannot be read or a sentence is too long. The message names
            the file and the line.

    Example:
        >>> from firstlight.data import PairData
        >>> data = PairData(path="pairs.csv", source_column="en", target_column="de", batch_tokens=200)
        >>> batch = next(iter(data.val_dataloader()))
        >>> len(batch.source_ids) == len(batch.targets) == len(data.rows("validation"))
        True
    """

    index_batch = PairRows
    options: PairOptions
    encoded: EncodedPairs
    tokenizer: SentenceTokenizer
    source_tokenizer: SentenceTokenizer
    table: PairTable
    reader: PairTokenizers | None = None

    @cached_property
    def source(self) -> Source:
        """The source of the pairs, which is searched for once."""
        return find_pairs(self.options, only_split=self.only_split)

    def prepare_data(self) -> None:
        """Encode the pairs unless the cache has them."""
        encode_pairs(self.source, self.options, self.reader)

    def setup(self, stage: str = "fit") -> None:
        """Open the encoded pairs. For `fit` the training and validation splits must have pairs.

        In other stages, sentences longer than the context are cut.
        """
        if hasattr(self, "table"):
            return
        self._texts: dict[bytes, tuple[list[str], list[str]]] = {}
        self.encoded = encode_pairs(self.source, self.options, self.reader)
        self.source_tokenizer, self.tokenizer = self.encoded.tokenizers
        if self.encoded.overlaps:
            log.warning("%s: %s", self.source.where, self.encoded.overlaps)
        self.is_cut = stage != "fit"
        self.table = PairTable(self.encoded.source, self.encoded.target, self.options.context_length)
        self._rows: dict[str, NDArray[np.int64]] = {}
        for split in SPLITS if stage == "fit" else ():  # reports a missing split before the training
            if not len(self.rows(split)) and split != "test":
                raise UserError(f"{self.source.where} has no {split} pairs; use more pairs, or add {split}.jsonl")

    def rows(self, split: str) -> NDArray[np.int64]:
        """Return the row numbers of a split, (n,). Raises UserError in a training if a sentence is too long."""
        if split not in self._rows:
            self._rows[split] = self._used_rows(split)
            if self.is_cut:
                count_cuts(self._whole_lengths(self._rows[split]), self.options.context_length)
        return self._rows[split]

    def texts(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        """Return the source and the target sentences of some rows as strings. rows: (n,)."""
        key = rows.tobytes()
        if key not in self._texts:
            columns = [self.options.source_column, self.options.target_column]
            pairs = self.source.values(columns, rows.tolist())
            self._texts[key] = [source.strip() for source, _ in pairs], [target.strip() for _, target in pairs]
        return self._texts[key]

    def texts_of(self, split: str) -> Sequence[Text]:
        return self.source.values([self.options.source_column, self.options.target_column], self._used_rows(split))

    def metadata(self) -> dict[str, Any]:
        """Return the facts about the data that a checkpoint stores, in plain types."""
        is_shared = self.source_tokenizer is self.tokenizer
        return {"source_tokenizer": None if is_shared else self.source_tokenizer.to_json()}

    def network_sizes(self) -> dict[str, int]:
        return super().network_sizes() | {"source_vocab_size": self.source_tokenizer.vocab_size}

    def training_words(self) -> dict[str, TrainingWords]:
        """Return the words of each side, or of both together if they share a vocabulary."""
        rows, (reader, writer) = self.rows("train"), self.encoded.tokenizers
        source, target = self.encoded.source.select(rows), self.encoded.target.select(rows)
        if reader is not writer:
            sides = {"embedding": (writer, target), "source_embedding": (reader, source)}
            return {name: TrainingWords(each.plain_words(), ids, MARK_IDS) for name, (each, ids) in sides.items()}
        together = TrainingWords(writer.plain_words(), source.followed_by(target), MARK_IDS)
        return {"embedding": together, "source_embedding": together}

    def describe(self) -> dict[str, Any]:
        """Return the facts about the data that metrics.json stores, in plain types."""
        languages = [self.options.source_column, self.options.target_column]
        return super().describe() | {"languages": languages, "source_vocab_size": self.source_tokenizer.vocab_size}

    def train_dataloader(self) -> TableLoader:
        """Return the training batches, each a `PairBatch` of sentences of similar length.

        During `Trainer.fit` the batches start at the trainer's step, so a resumed training gets the same batches as an
        uninterrupted one. Without a trainer, every pass over the loader has all training pairs in a new order.
        """
        self.ensure_setup()
        rows = self.rows("train")
        if self.is_cut:  # an evaluation before this training set up the data
            self._refuse_too_long("train", rows)
        batches = LengthBatches(rows, self.lengths(rows), self.options.batch_tokens, self.options.seed, **self.share)
        return self.training_loader(self.lookup(), batches)

    def read_as(self, metadata: dict[str, Any]) -> None:
        target = metadata["tokenizer"]
        self.reader = tokenizers_of(metadata["source_tokenizer"] or target, target)

    def lookup(self) -> Pairs:
        longest = self.options.context_length
        return Pairs(self.encoded.source.lengths.clip(max=longest), self.encoded.target.lengths.clip(max=longest - 1))

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the length of the longer side of each pair, (rows,), counting [END] in the target."""
        return self._whole_lengths(rows).clip(max=self.options.context_length)

    def num_cut(self, split: str) -> int:
        """Return the number of pairs of a split with a sentence longer than the context."""
        return int((self._whole_lengths(self.rows(split)) > self.options.context_length).sum())

    def _whole_lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.maximum(self.encoded.source.lengths[rows], self.encoded.target.lengths[rows] + 1)

    def _used_rows(self, split: str) -> NDArray[np.int64]:
        """Return the rows of a split. Raises UserError for a too long sentence, unless it is left out or cut."""
        options = self.options
        most = options.max_train_rows if split == "train" else None
        rows = drawn(self.encoded.rows_of(split), most, options.split_seed)
        if split == "train" and options.skip_too_long:
            fitting = rows[self._whole_lengths(rows) <= options.context_length]
            left_out = len(rows) - len(fitting)
            log.info("%d of %d training pairs are longer than the context and are left out", left_out, len(rows))
            return fitting
        if not self.is_cut:
            self._refuse_too_long(split, rows)
        return rows

    def _refuse_too_long(self, split: str, rows: NDArray[np.int64]) -> None:
        """Raise UserError if a sentence is longer than the context. The message names the first one and a fix."""
        lengths = self._whole_lengths(rows)
        is_too_long = lengths > self.options.context_length
        if not is_too_long.any():
            return
        first = int(is_too_long.argmax())
        file_split, line = self.encoded.places[rows[first]].tolist()
        remedy = f"set context_length={lengths.max()}, which is enough for all"
        if split == "train":
            remedy += ", or data.skip_too_long=true"
        place, problem = self.source.place(SPLITS[file_split], line), f"has {lengths[first]} tokens with its end"
        raise UserError(f"{place}: the sentence {problem}, but context_length={self.options.context_length}; {remedy}")
