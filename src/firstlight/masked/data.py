"""Batches of reviews with masked words, and the masks as a function of a seed, the pass and the row."""

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from firstlight.data.arguments import takes
from firstlight.data.batches import RowBatch, Rows, TableLoader, TrainingBatches
from firstlight.data.options import Truncation
from firstlight.data.table_data import TextRows, TrainingWords
from firstlight.data.tables import TokenTable, fitted
from firstlight.errors import UserError
from firstlight.masked.network import MaskedBatch
from firstlight.masked.options import MaskedReviewOptions
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import SPECIAL, Tokenizer

log = logging.getLogger(__name__)

EVALUATION_SEED = 0  # does not depend on the seed of a run, so that the metrics of runs are comparable


class MaskedRows(NamedTuple):
    """The row numbers of a batch and its masked tokens, from which a table makes the batch of tokens."""

    texts: RowBatch
    places: Tensor  # (targets,) int64, as in MaskedBatch
    written: Tensor  # (targets,) int64, the id to write at each place, or KEPT


class MaskedTrainingBatches(TrainingBatches):
    """Sampler of the batches of `TrainingBatches`, in pairs with the number of the pass, which seeds the masks."""

    def __iter__(self) -> Iterator[Any]:
        first = self.start
        for number, rows in enumerate(super().__iter__(), first):
            yield rows, number // len(self)


class MaskedLookup(Dataset[MaskedRows]):
    """Data set that masks rows: differently in each pass of a training, and always the same in an evaluation."""

    def __init__(self, texts: Rows, options: MaskedReviewOptions, vocab_size: int, frame: int) -> None:
        """texts: the rows without masks. frame: as in `draw_masks`."""
        self.texts, self.options, self.vocab_size, self.frame = texts, options, vocab_size, frame

    def __getitem__(self, index: tuple[NDArray[np.int64], int] | NDArray[np.int64]) -> MaskedRows:
        """Return a batch. index: row numbers, (batch,), in a training in a pair with the number of the pass."""
        rows, epoch = index if isinstance(index, tuple) else (index, 0)
        seed = self.options.seed if isinstance(index, tuple) else EVALUATION_SEED
        lengths = self.texts.lengths[rows]
        drawn = draw_masks(self.options, self.vocab_size, rows, lengths, seed=seed, epoch=epoch, frame=self.frame)
        return MaskedRows(self.texts[rows], *map(torch.from_numpy, drawn))


class MaskedTable(TokenTable):
    """All texts on one device. A batch of them is cut to the context, padded and masked."""

    def __init__(self, ids: RaggedIds, context_length: int, truncation: Truncation) -> None:
        super().__init__(ids, np.zeros(len(ids), np.int64), context_length, truncation)

    def forward(self, batch: MaskedRows) -> MaskedBatch:  # type: ignore[override]
        """Return the batch of tokens of some rows, masked and padded to the longest row."""
        texts = super().forward(batch.texts)
        flat = texts.token_ids.long().flatten()
        targets = flat[batch.places]
        flat[batch.places] = torch.where(batch.written == KEPT, targets, batch.written)
        token_ids = flat.view_as(texts.token_ids)
        return MaskedBatch(token_ids, texts.padding_mask, batch.places, targets, texts.rows, texts.num_tokens)


@takes(MaskedReviewOptions)
class MaskedReviewData(TextRows):
    """A data module of texts with masked words for a masked language model, from which a classifier can start.

    The texts, such as reviews, are read and encoded as in `ReviewData`, so both have the same vocabulary. Labels are
    not read. The network predicts 15% of the tokens of each text: 80% of these are replaced by [MASK], 10% by a random
    token, and 10% are unchanged (BERT, Devlin et al. 2018). Each pass over the training texts draws other tokens;
    validation and test always use the same ones. The loaders yield batches of the type `MaskedBatch`.

    The id of [MASK] is the size of the vocabulary of the tokenizer.

    Args:
        {options}

    Raises:
        ValueError: If an option has an impossible value. The message lists the choices.
        UserError: In `prepare_data` and `setup`, if a row cannot be read. The message names the file and the line.

    Example:
        >>> from firstlight.masked.data import MaskedReviewData
        >>> data = MaskedReviewData(path="reviews.csv", context_length=16, batch_size=4)
        >>> batch = next(iter(data.train_dataloader()))
        >>> batch.token_ids.shape, batch.targets.shape == batch.places.shape
        (torch.Size([4, 16]), True)
    """

    index_batch = MaskedRows
    options: MaskedReviewOptions
    tokenizer: Tokenizer
    table: MaskedTable

    def setup(self, stage: str = "fit") -> None:
        """Open the encoded texts of all splits. For `fit` the training and validation splits must have texts."""
        if hasattr(self, "table"):
            return
        options = self.options
        self.encoded = self.encode()
        self.tokenizer = self.encoded.tokenizer
        if self.encoded.overlaps:
            log.warning("%s: %s", self.source.where, self.encoded.overlaps)
        for split in ("train", "validation") if stage == "fit" else ():
            if not self.has_split(split):
                raise UserError(f"{self.source.where} has no {split} rows; use more texts, or add {split}.jsonl")
        ids = fitted(self.encoded.ids, self.tokenizer, options.context_length, options.truncation)
        self.table = MaskedTable(ids, options.context_length, options.truncation)

    def lookup(self) -> MaskedLookup:
        texts = Rows(self.encoded.lengths, self.options.context_length)
        return MaskedLookup(texts, self.options, self.tokenizer.vocab_size, len(self.tokenizer.marks) // 2)

    def metadata(self) -> dict[str, Any]:
        """Return an empty dict: a checkpoint records only the tokenizer of the data."""
        return {}

    def training_words(self) -> dict[str, TrainingWords]:
        return {"embedding": TrainingWords(self.tokenizer.words, self.encoded.ids.select(self.rows("train")))}

    def train_dataloader(self) -> TableLoader:
        """Return the shuffled training batches, each a `MaskedBatch`, with different masks in each pass.

        During `Trainer.fit` the batches start at the trainer's step, so a resumed training gets the same batches as an
        uninterrupted one. Without a trainer, every pass over the loader has all training rows in a new order.

        Example:
            >>> data = MaskedReviewData(path="reviews.csv", batch_size=10)
            >>> len(next(iter(data.train_dataloader())).token_ids)
            10
        """
        return self.shuffled_loader(MaskedTrainingBatches)


MASKED, RANDOM = 0.8, 0.1  # shares of the predicted tokens: replaced by [MASK], and by a random token
KEPT = -1  # instead of an id: the token is unchanged
FIRST_WORD_ID = len(SPECIAL)  # a random token is not [PAD] or [UNK]
PLACE, KIND, WORD = 1, 2, 3  # keys of the random numbers for each purpose

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def draw_masks(
    options: MaskedReviewOptions,
    vocab_size: int,
    rows: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    seed: int,
    epoch: int,
    frame: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the tokens of some texts to predict (BERT, Devlin et al. 2018).

    A share of the tokens is chosen, at least one of each text. Most of them are replaced by [MASK], some by a random
    token, and the others are unchanged. The choice does not depend on the other texts of the batch.

    Args:
        options: the options with the shares.
        vocab_size: number of token ids without [MASK], whose id is `vocab_size`.
        rows: (batch,) the numbers of the texts.
        lengths: (batch,) their numbers of tokens.
        seed: the seed of the training.
        epoch: the number of the pass.
        frame: the number of marks at each end of a text, which are not chosen.

    Returns:
        The places, (places,) int64, row · length + column, ascending, in rows that are padded to the longest text, and
        the id to write at each place, (places,) int64: that of [MASK], of a random token, or KEPT.

    Example:
        >>> import numpy as np
        >>> from firstlight.masked.options import MaskedReviewOptions
        >>> from firstlight.masked.data import draw_masks
        >>> options = MaskedReviewOptions(mask_fraction=0.4)
        >>> places, written = draw_masks(options, 7, np.array([11, 17]), np.array([5, 1]), seed=1, epoch=0)
        >>> places // 5, written
        (array([0, 0, 1]), array([-1,  7,  7]))
    """
    longest = max(int(lengths.max(initial=1)), 1)
    columns = np.arange(longest)
    scores = uniform(seed, epoch, PLACE, rows[:, None], columns)  # (batch, longest)
    scores[(columns < frame) | (columns >= lengths[:, None] - frame)] = 2.0  # no mark and no padding
    counts = np.rint(options.mask_fraction * lengths).astype(np.int64).clip(1, lengths)
    highest = np.sort(scores, axis=1)[np.arange(len(rows)), counts - 1]
    chosen_rows, chosen_columns = np.nonzero((scores <= highest[:, None]) & (scores < 1))
    drawn = (rows[chosen_rows], chosen_columns)
    kinds = uniform(seed, epoch, KIND, *drawn)
    words = FIRST_WORD_ID + uniform(seed, epoch, WORD, *drawn) * (vocab_size - FIRST_WORD_ID)
    written = np.full(len(kinds), KEPT, np.int64)
    is_random = kinds < MASKED + RANDOM
    written[is_random] = words[is_random].astype(np.int64)
    written[kinds < MASKED] = vocab_size
    return chosen_rows * longest + chosen_columns, written


def uniform(*keys: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """Return numbers from 0 to below 1 that depend only on integer keys, in the shape to which the keys broadcast.

    The keys are mixed one after the other by the function of SplitMix64 (Steele, Lea & Flood 2014). NumPy would need a
    new generator for each row, which takes longer than a training step.
    """
    state = np.zeros(1, np.uint64)
    for key in keys:
        state = _mixed(state + GOLDEN + np.asarray(key).astype(np.uint64))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return mixed bits, each of which depends on every bit of the state. Products are modulo 2^64."""
    state = (state ^ (state >> SHIFTS[0])) * MULTIPLIERS[0]
    state = (state ^ (state >> SHIFTS[1])) * MULTIPLIERS[1]
    return state ^ (state >> SHIFTS[2])
