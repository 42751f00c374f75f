"""Baseline of the generators: interpolated n-gram counts, with the order chosen on the validation split."""

import logging
import math
from collections import deque
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from firstlight.data.streams import StreamData
from firstlight.kinds.baseline import Fitted, best_of, say_choice
from firstlight.text import ngrams

log = logging.getLogger(__name__)

HIGHEST_ORDER = 6
MOST_TOKENS = 20_000_000  # training tokens that are counted; the count sorts them several times


def fit(data: StreamData, metric: str, _: Path) -> Fitted:
    """Count the n-grams of all orders in the training split, and choose an order by a validation metric."""
    stream = data.stream("train")
    if len(stream) > MOST_TOKENS:
        log.warning("Only the first %s of %s training tokens are counted", f"{MOST_TOKENS:,}", f"{len(stream):,}")
    training, validation = data.ids(stream, MOST_TOKENS), data.ids(data.stream("validation"))
    vocab_size = data.tokenizer.vocab_size
    tried = {}
    for order, losses in enumerate(ngrams.token_losses(training, validation, vocab_size, HIGHEST_ORDER), start=1):
        tried[order] = _metrics(data, "val", losses, validation)
        say_choice("order", order, tried[order])
    chosen = best_of(tried, metric)

    def test() -> dict[str, float]:
        ids = data.ids(data.stream("test"))
        (losses,) = deque(ngrams.token_losses(training, ids, vocab_size, chosen), maxlen=1)  # the last order
        return _metrics(data, "test", losses, ids)

    return Fitted(
        parameters=ngrams.count(training, chosen),
        chosen={"order": chosen},
        tried={"order": {str(order): metrics for order, metrics in tried.items()}},
        validation=tried[chosen],
        test=test,
    )


def _metrics(data: StreamData, stage: str, losses: NDArray[np.float64], ids: NDArray[np.integer]) -> dict[str, float]:
    """Return the loss and metrics of `val` or `test`, named as in training. The first token is not predicted."""
    losses, targets = losses[1:], ids[1:]
    loss = float(losses.mean())
    metrics = {"loss": loss, "perplexity": math.exp(loss)}
    counts = data.tokenizer.characters_per_token()
    if counts is not None:
        metrics["bits_per_character"] = float(losses.sum() / counts[targets].sum() / math.log(2))
    return {f"{stage}/{name}": value for name, value in metrics.items()}
