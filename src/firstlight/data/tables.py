"""Tables of encoded texts on one device, and the batches that they return."""

import logging
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.data.batches import RowBatch
from firstlight.data.options import SHORTEST_PAIR, Truncation
from firstlight.data.row_options import ChoiceRows, by_row
from firstlight.data.target_encoding import NgramTargetEncoding
from firstlight.data.windows import WindowBatch
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import DELIMITER_ID, PAD_ID, Tokenizer

log = logging.getLogger(__name__)


def count_cuts(lengths: NDArray[np.int64], context_length: int) -> int:
    """Return the number of texts that are longer than the context, and warn of them. lengths: (texts,) in tokens."""
    if count := int((lengths > context_length).sum()):
        message = "%d of %d texts are longer than the context of %d tokens and were cut"
        log.warning(message, count, len(lengths), context_length)
    return count


IGNORED = -100  # the target of padding, which torch's cross entropy ignores


def look_up(flat: Tensor, starts: Tensor, lengths: Tensor, rows: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Return the ids of some of many concatenated texts, padded with PAD_ID, and their mask: (rows, longest)."""
    ids, mask = gather(flat, starts[rows, None], lengths[rows, None], longest)
    return ids.long(), mask


NO_FEATURES = torch.empty(0)
ONE_WINDOW_EACH = torch.empty(0, dtype=torch.int64)


class ReviewBatch(NamedTuple):
    """A batch of texts for a classifier.

    Attributes:
        token_ids: Token ids, (batch, length), int, or (batch, choices, length) for multiple choice, where each answer
            is read with the context. Shorter texts are padded with 0.
        padding_mask: In the same shape, bool. True where a token is real.
        targets: The class of each text, (batch,), int.
        rows: The row number of each text in its data, (batch,), int.
        num_tokens: The number of real tokens in the batch.
        features: Features of each token, (batch, length, features), float, as those of
            `ReviewData(target_encoding=True)`. An empty tensor if there are none.
        num_windows: The number of windows of each text, (texts,), int, for an evaluation with
            `ReviewData(long_texts="windows")`. The batch then has the windows in the place of their texts, one after
            another, each with the target and the row of its text. An empty tensor if each text is read once.

    Example:
        >>> import torch
        >>> from firstlight.data import ReviewBatch
        >>> token_ids = torch.tensor([[5, 2, 7], [4, 0, 0]])
        >>> batch = ReviewBatch(token_ids, token_ids != 0, torch.tensor([1, 0]), torch.arange(2), num_tokens=4)
        >>> batch.padding_mask.sum(dim=1)
        tensor([3, 1])
    """

    token_ids: Tensor
    padding_mask: Tensor
    targets: Tensor
    rows: Tensor
    num_tokens: int
    features: Tensor = NO_FEATURES
    num_windows: Tensor = ONE_WINDOW_EACH

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of a network: the token ids, the padding mask and, if there are any, the features."""
        inputs = (self.token_ids, self.padding_mask)
        return (*inputs, self.features) if self.features.numel() else inputs


class TokenBatch(NamedTuple):
    """A batch of windows of a text for a generator.

    Attributes:
        token_ids: Token ids, (batch, length), int.
        targets: The token that follows each of them, (batch, length), int.
        num_tokens: The number of tokens, batch · length.
        num_targets: The number of targets, which equals num_tokens.

    Example:
        >>> import torch
        >>> from firstlight.data import TokenBatch
        >>> windows = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
        >>> batch = TokenBatch(windows[:, :-1], windows[:, 1:])
        >>> batch.num_tokens
        8
    """

    token_ids: Tensor
    targets: Tensor

    @property
    def num_tokens(self) -> int:
        return self.targets.numel()

    @property
    def num_targets(self) -> int:
        return self.num_tokens


class FirstWindows(TokenBatch):
    """Windows of `data.stateful_window` that a network reads without a state."""


class NextWindows(TokenBatch):
    """Windows of which each row continues that of the batch before. A network reads them with its state."""


def gather(flat: Tensor, starts: Tensor, lengths: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Return the ids of some of many concatenated texts, padded with PAD_ID, and their mask: (rows, longest).

    flat: the ids of all texts, (tokens,); starts: the place of the first token of each row, (rows, 1), or for each
    token its place minus its column, (rows, longest); lengths: the number of tokens of each row, (rows, 1).
    """
    columns = torch.arange(longest, device=flat.device)
    mask = columns < lengths
    return flat[(starts + columns).clamp(max=len(flat) - 1)].masked_fill(~mask, PAD_ID), mask


class Table(torch.nn.Module):
    """The base class of the tables of tokens: arrays on one device, which checkpoints do not store."""

    flat: Tensor  # the ids of all texts, (tokens,)

    def __init__(self, **arrays: NDArray[Any]) -> None:
        super().__init__()
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(array), persistent=False)


class TokenTable(Table):
    """All texts on one device. A batch of them is cut to the context and padded."""

    starts: Tensor
    lengths: Tensor
    targets: Tensor

    def __init__(
        self,
        ids: RaggedIds,
        targets: NDArray[np.int64],
        context_length: int,
        truncation: Truncation,
        target_encoding: NgramTargetEncoding | None = None,
        choices: ChoiceRows | None = None,
    ) -> None:
        """ids: the tokens of all texts; targets: (texts,); target_encoding: the module that computes the features,
        or None.

        choices: the layout of rows of multiple choice, of which `ids` has the tokens of every answer.
        """
        flat = ids.ids if len(ids.ids) else np.array([PAD_ID], dtype=np.int32)
        starts, lengths = (by_row(each, choices) for each in (ids.offsets[:-1].copy(), ids.lengths))
        super().__init__(flat=flat, starts=starts, lengths=lengths, targets=targets)
        self.target_encoding, self.context_length = target_encoding, context_length
        self.head = truncation.tokens_of_head(context_length)

    def forward(self, batch: RowBatch) -> ReviewBatch:
        """Return the batch of tokens of some rows, padded to the longest row."""
        row_lengths = self.lengths[batch.rows]  # (batch,), or (batch, choices)
        lengths = row_lengths.reshape(-1, 1)  # a row of tokens for each text
        columns = torch.arange(batch.longest, device=lengths.device)  # (length,)
        skipped = (lengths - self.context_length).clamp(min=0)  # (batch, 1): the number of tokens to leave out
        shift = skipped * (columns >= self.head)  # (batch, length)
        if batch.draws is not None:  # the first token of a span
            shift = batch.draws.reshape(-1, 1) % (skipped + 1)
        starts = self.starts[batch.rows].reshape(-1, 1) + shift
        lengths = lengths.clamp(max=self.context_length)
        token_ids, padding_mask = gather(self.flat, starts, lengths, batch.longest)  # (batch, length)
        targets = self.targets[batch.rows]
        shape = (*row_lengths.shape, batch.longest)
        token_ids, padding_mask = token_ids.view(shape), padding_mask.view(shape)
        features = NO_FEATURES
        if self.target_encoding is not None:
            features = self.target_encoding(token_ids, targets if batch.are_counted else None)
        windows = ONE_WINDOW_EACH if batch.num_windows is None else batch.num_windows
        return ReviewBatch(token_ids, padding_mask, targets, batch.rows, batch.num_tokens, features, windows)


class StreamTable(Table):
    """The ids of all documents on one device, followed by the separator if there is one."""

    def __init__(self, ids: NDArray[np.integer], separator_id: int | None) -> None:
        if separator_id is not None:
            ids = np.append(ids, ids.dtype.type(separator_id))
        super().__init__(flat=ids)

    def forward(self, batch: WindowBatch) -> TokenBatch:
        """Return the batch of tokens of some windows. The targets are the tokens one position later."""
        ids = self.flat[batch.positions].long()  # (batch, length + 1)
        kind = {None: TokenBatch, False: FirstWindows, True: NextWindows}[batch.continues]
        return kind(ids[:, :-1], ids[:, 1:])


def fits(table: torch.nn.Module, device: torch.device) -> bool:
    """Return whether a table takes less than a quarter of the free memory of an accelerator."""
    if device.type != "cuda":
        return True
    size = sum(buffer.nbytes for buffer in table.buffers())
    return size < torch.cuda.mem_get_info(device)[0] / 4


def review_batch(batch: Any) -> ReviewBatch:
    """Return a batch as a `ReviewBatch`. Raises TypeError for an unknown type.

    batch: a `ReviewBatch`, or a pair of token_ids (batch, length), padded with 0, and targets (batch,).
    """
    if isinstance(batch, ReviewBatch):
        return batch
    token_ids, targets = pair_of_tensors(batch, "ReviewBatch")
    padding_mask = token_ids != PAD_ID
    return ReviewBatch(token_ids, padding_mask, targets, torch.arange(len(targets)), int(padding_mask.sum()))


def token_batch(batch: Any) -> TokenBatch:
    """Return a batch as a `TokenBatch`. Raises TypeError for an unknown type.

    batch: a `TokenBatch`, or a pair of token ids and the tokens that follow, both (batch, length).
    """
    if isinstance(batch, TokenBatch):
        return batch
    return TokenBatch(*pair_of_tensors(batch, "TokenBatch"))


def pair_of_tensors(batch: Any, expected: str) -> tuple[Tensor, Tensor]:
    """Return a batch that is a pair of tensors. Raises TypeError for another type. expected: the usual type."""
    if isinstance(batch, tuple | list) and len(batch) == 2 and all(isinstance(part, Tensor) for part in batch):
        return batch[0], batch[1]
    raise TypeError(f"a batch must be a {expected} or a pair of tensors, ids and targets, not {type(batch).__name__}")


def fitted(ids: RaggedIds, tokenizer: Tokenizer, context_length: int, truncation: Truncation) -> RaggedIds:
    """Return encoded texts of which those with marks fit the context. Texts without marks are returned unchanged.

    Tokens are removed from the longer text of a pair until both fit. If both are longer than half of the context, each
    keeps a half, and the first one an odd token. truncation: the tokens of a text that are kept.
    """
    if not tokenizer.marks or not len(ids) or int(ids.lengths.max()) <= context_length:
        return ids
    places = kept_places(ids, tokenizer, context_length, truncation)
    starts = np.repeat(ids.offsets[:-1], places.lengths)
    return RaggedIds(ids.ids[starts + places.ids], places.offsets)


def kept_places(ids: RaggedIds, tokenizer: Tokenizer, context_length: int, truncation: Truncation) -> RaggedIds:
    """Return the places, counted from 0 in each row, of the tokens that are kept in the context.

    ids: pairs, each as [START], the first text, [DELIMITER], the second text, [EXTRACT]; or texts between two marks.
    """
    if context_length < SHORTEST_PAIR:
        problem = f"context_length={context_length} is too short for texts with marks"
        raise UserError(f"{problem}; use {SHORTEST_PAIR} or more")
    rows = np.repeat(np.arange(len(ids)), ids.lengths)  # (tokens,), the row of each token
    delimiters = ids.lengths - 1  # (rows,), the place of the mark after the first text
    if tokenizer.reads_pairs:
        is_delimiter = ids.ids == DELIMITER_ID
        assert (rows[is_delimiter] == np.arange(len(ids))).all(), "a row is not a pair"
        delimiters = np.flatnonzero(is_delimiter) - ids.offsets[:-1]
    first, second = delimiters - 1, (ids.lengths - delimiters - 2).clip(0)  # (rows,), the tokens of each text
    budget = context_length - len(tokenizer.marks)
    keep_first = np.minimum(first, np.maximum(budget - second, (budget + 1) // 2))
    keep_second = np.minimum(second, budget - keep_first)
    places = np.arange(len(ids.ids)) - ids.offsets[rows]
    is_kept = np.ones(len(ids.ids), dtype=bool)
    for begins, lengths, kept in ((1, first, keep_first), (delimiters + 1, second, keep_second)):
        cuts = begins + truncation.tokens_of_head(kept)  # (rows,), the first token that is left out
        is_kept &= (places < cuts[rows]) | (places >= (cuts + lengths - kept)[rows])
    offsets = np.concatenate([[0], np.cumsum(keep_first + keep_second + len(tokenizer.marks))])
    return RaggedIds(places[is_kept], offsets)
