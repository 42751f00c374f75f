"""N-gram models of the next token: the baseline of the generators, and reference lines for the curve of a training."""

import logging
import math
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstlight.generator.data import StreamData
from firstlight.kind.kind import Fitted, best_of, say_choice

log = logging.getLogger(__name__)

Ids = NDArray[np.integer]
HIGHEST_ORDER = 6
MOST_TOKENS = 20_000_000  # training tokens that are counted; the count sorts them several times


class Split(NamedTuple):
    """Losses of the tokens of a split after the first, each (tokens - 1,), in nats.

    whole: each token is predicted from all tokens before it. windowed: only those within its window are read, as in
    the validation of a network.
    """

    ids: NDArray[np.int64]
    whole: NDArray[np.float64]
    windowed: NDArray[np.float64]


def fit(data: StreamData, metric: str, folder: Path) -> Fitted:  # noqa: ARG001
    """Count the n-grams of all orders in the training split, and choose an order by a validation metric."""
    stream = data.stream("train")
    if len(stream) > MOST_TOKENS:
        log.warning("Only the first %s of %s training tokens are counted", f"{MOST_TOKENS:,}", f"{len(stream):,}")
    training = data.ids(stream, MOST_TOKENS)
    tried: dict[int, dict[str, float]] = {}
    for order, split in enumerate(_splits(data, training, "validation", HIGHEST_ORDER), start=1):
        tried[order] = _metrics(data, "val", split)
        say_choice("order", order, tried[order])
    chosen = best_of(tried, metric)

    def test() -> dict[str, float]:
        (split,) = deque(_splits(data, training, "test", chosen), maxlen=1)  # the last order
        return _metrics(data, "test", split)

    return Fitted(num_ngrams(training, chosen), "order", chosen, tried, test)


def _splits(data: StreamData, training: NDArray[np.int64], split: str, highest_order: int) -> Iterator[Split]:
    """Yield the losses of a split for each order. Both kinds are computed at once, since the counts take the time."""
    ids = data.ids(data.stream(split))
    places = np.arange(len(ids))
    reach = np.concatenate((places, in_window(places, data.options.context_length)))
    twice = np.concatenate((ids, ids))
    for losses in token_losses(training, twice, data.tokenizer.vocab_size, highest_order, reach):
        yield Split(ids[1:], losses[1 : len(ids)], losses[len(ids) + 1 :])


def in_window(places: NDArray[np.int64], context_length: int) -> NDArray[np.int64]:
    """Return the number of earlier tokens in the window of each token, if windows do not overlap. places: (n,)."""
    return np.where(places == 0, 0, (places - 1) % context_length + 1)


def _metrics(data: StreamData, stage: str, split: Split) -> dict[str, float]:
    """Return the loss and metrics of `val` or `test`, named as in training. The first token is not predicted."""
    counts = data.tokenizer.characters_per_token()
    metrics: dict[str, float] = {}
    for prefix, losses in (("", split.whole), ("windowed_", split.windowed)):
        loss = float(losses.mean())
        metrics |= {f"{stage}/{prefix}loss": loss, f"{stage}/{prefix}perplexity": math.exp(loss)}
        if counts is not None:
            bits = float(losses.sum() / counts[split.ids].sum() / math.log(2))
            metrics[f"{stage}/{prefix}bits_per_character"] = bits
    return metrics


def token_losses(
    training: Ids, validation: Ids, vocab_size: int, highest_order: int, reach: Ids | None = None
) -> Iterator[NDArray[np.float64]]:
    """Yield the loss of each validation token in nats, (validation tokens,), for orders 1 to highest_order.

    The model of order n reads n - 1 earlier tokens. It is interpolated with the model of the next lower order, weighted
    by the number of different tokens that follow a context (Witten & Bell 1991). Order 1 is interpolated with the
    uniform distribution. training, validation: (n,) ids; reach: (validation tokens,) the number of earlier tokens that
    the model may read for each token, all by default.
    """
    probability = np.full(len(validation), 1 / vocab_size)
    before = Contexts(training, validation, reach)
    for _ in range(highest_order):
        probability = before.interpolate(probability)
        yield -np.log(probability)
        before.lengthen()


def num_ngrams(training: Ids, order: int) -> int:
    """Return the number of different n-grams of 1, 2, …, order tokens in a text: the size of a model of that order."""
    contexts = Contexts(training, training[:0])
    total = 0
    for _ in range(order):
        total += contexts.num_continuations()
        contexts.lengthen()
    return total


class Contexts:
    """The numbered contexts of all tokens of two texts. Each call of `lengthen` makes them one token longer.

    The number is -1 if the training text does not have the context, or if a text has too few tokens before a token.
    reach: (validation tokens,) the number of tokens before each validation token, if not all of them count.
    """

    def __init__(self, training: Ids, validation: Ids, reach: Ids | None = None) -> None:
        self.training, self.validation, self.reach = training.astype(np.int64), validation.astype(np.int64), reach
        self.length = 0
        self.of_training = np.zeros(len(training), np.int64)  # the empty context
        self.of_validation = np.zeros(len(validation), np.int64)

    def interpolate(self, lower: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each validation token, (validation tokens,). lower: that of the lower order."""
        known = self.of_training >= 0
        contexts, totals = np.unique(self.of_training[known], return_counts=True)
        if not len(contexts):
            return lower
        pairs, counts = np.unique(self._pairs(self.of_training, self.training)[known], return_counts=True)
        types = np.bincount(np.searchsorted(contexts, pairs // self._stride), minlength=len(contexts))
        place, is_known = _find(self.of_validation, contexts)
        pair_place, is_seen = _find(self._pairs(self.of_validation, self.validation), pairs)
        count = np.where(is_seen & is_known, counts[pair_place], 0)
        weight = np.where(is_known, types[place], 1)  # of the next lower order
        total = np.where(is_known, totals[place], 0)
        return (count + weight * lower) / (total + weight)

    def num_continuations(self) -> int:
        """Return the number of different pairs of a context and its next token in the training text."""
        known = self.of_training >= 0
        return len(np.unique(self._pairs(self.of_training, self.training)[known]))

    def lengthen(self) -> None:
        """Make every context one token longer."""
        self.length += 1
        pairs = self._preceded(self.of_training, self.training)
        numbers = np.unique(pairs[pairs >= 0])
        place, is_known = _find(self._preceded(self.of_validation, self.validation), numbers)
        can_be_read = is_known if self.reach is None else is_known & (self.reach >= self.length)
        self.of_validation = np.where(can_be_read, place, -1)
        place, is_known = _find(pairs, numbers)
        self.of_training = np.where(is_known, place, -1)

    @property
    def _stride(self) -> int:
        return int(max(self.training.max(initial=0), self.validation.max(initial=0))) + 1

    def _pairs(self, contexts: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return one number for each context and the token after it, or -1 without a context."""
        return np.where(contexts >= 0, contexts * self._stride + tokens, -1)

    def _preceded(self, contexts: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return one number for each context and the token before it, or -1 if one of them is missing."""
        earlier = np.roll(tokens, self.length)
        earlier[: self.length] = -1
        return np.where((contexts >= 0) & (earlier >= 0), contexts * self._stride + earlier, -1)


def _find(values: NDArray[np.int64], ordered: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the index of each value in an ordered array, and whether the array contains it."""
    if not len(ordered):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    place = np.searchsorted(ordered, values).clip(max=len(ordered) - 1)
    return place, ordered[place] == values
