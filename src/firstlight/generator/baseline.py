"""N-gram models of the next token: the baseline of the generators, and reference lines for the curve of a training."""

import logging
import math
from collections import deque
from collections.abc import Iterator
from itertools import count, islice
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
    in_window = np.where(places == 0, 0, (places - 1) % data.options.context_length + 1)  # windows do not overlap
    reach = np.concatenate((places, in_window))
    twice = np.concatenate((ids, ids))
    for losses in token_losses(training, twice, data.tokenizer.vocab_size, highest_order, reach):
        yield Split(ids[1:], losses[1 : len(ids)], losses[len(ids) + 1 :])


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
    uniform distribution. training, validation: (n,) ids; reach: as in `ngrams`.
    """
    probability = np.full(len(validation), 1 / vocab_size)
    for contexts, pairs in islice(ngrams(training, validation, reach), highest_order):
        counted = np.flatnonzero(contexts[: len(training)] >= 0)
        totals = np.bincount(contexts[counted], minlength=contexts.max(initial=0) + 2)  # the last is 0, for number -1
        counts = np.bincount(pairs[counted], minlength=pairs.max(initial=0) + 2)
        context_of = np.zeros(len(counts), np.int64)
        context_of[pairs[counted]] = contexts[counted]
        types = np.bincount(context_of[counts > 0], minlength=len(totals))
        context, pair = contexts[len(training) :], pairs[len(training) :]
        weight = np.where(totals[context] > 0, types[context], 1)  # of the next lower order
        probability = (counts[pair] + weight * probability) / (totals[context] + weight)
        yield -np.log(probability)


def num_ngrams(training: Ids, order: int) -> int:
    """Return the number of different n-grams of 1, 2, …, order tokens in a text: the size of a model of that order."""
    return sum(int(pairs.max(initial=-1)) + 1 for _, pairs in islice(ngrams(training, training[:0]), order))


def ngrams(training: Ids, validation: Ids, reach: Ids | None = None) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Yield the number of the context of each token and that of the context with the token, for orders 1, 2, ….

    Both are (training + validation tokens,), and -1 for a token with too few tokens before it. reach:
    (validation tokens,) the number of earlier tokens that may be read for each token, all by default.
    """
    tokens = np.concatenate((training, validation)).astype(np.int64)
    reach = np.concatenate((np.arange(len(training)), np.arange(len(validation)) if reach is None else reach))
    contexts = np.zeros(len(tokens), np.int64)  # the empty context
    for length in count(start=1):
        yield contexts, _numbered(contexts, tokens)
        contexts = _numbered(contexts, np.where(reach >= length, np.roll(tokens, length), -1))


def _numbered(contexts: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number from 0 for each pair of a context and a token, or -1 if one of them is -1."""
    numbers = np.full(len(tokens), -1)
    known = np.flatnonzero((contexts >= 0) & (tokens >= 0))
    pairs = contexts[known] * (tokens.max(initial=0) + 1) + tokens[known]
    numbers[known] = np.unique(pairs, return_inverse=True)[1]
    return numbers
