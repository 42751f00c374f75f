"""Baseline of the masked language models: counts of the words next to the mask.

The number of neighbors is chosen on the validation split: none, the word to the left, or both.
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from firstlight.data.masked_reviews import MaskedBatch, MaskedReviewData
from firstlight.kinds.baseline import SPLITS, Fitted, best_of, say_choice
from firstlight.text.neighbors import HIDDEN, NeighborCounts

NUM_NEIGHBORS = (0, 1, 2)


def fit(data: MaskedReviewData, metric: str, _: Path) -> Fitted:
    """Count neighboring words in the training split, and choose the number of neighbors by a validation metric."""
    training = data.encoded.ids.select(data.rows("train"))
    counts = NeighborCounts.of(training, data.tokenizer.vocab_size)
    tried = {}
    for number in NUM_NEIGHBORS:
        tried[number] = measure(data, counts, "val", number)
        say_choice("neighbors", number, tried[number])
    chosen = best_of(tried, metric)
    return Fitted(
        parameters=counts.size,
        chosen={"neighbors": chosen},
        tried={"neighbors": {str(number): metrics for number, metrics in tried.items()}},
        validation=tried[chosen],
        test=lambda: measure(data, counts, "test", chosen),
    )


def measure(data: MaskedReviewData, counts: NeighborCounts, stage: str, num_neighbors: int) -> dict[str, float]:
    """Return loss, perplexity and accuracy at the masked positions of `val` or `test`, named as in training."""
    loss, hits, count = 0.0, 0, 0
    for batch in data.evaluation_loader(data.rows(SPLITS[stage])):
        targets = batch.targets.numpy()
        left, right = neighbors_of(batch, data.tokenizer.vocab_size)
        first = 0
        for shares in counts.probabilities(left, right, num_neighbors):
            true = targets[first : first + len(shares)]
            loss -= float(np.log(shares[np.arange(len(true)), true]).sum())
            hits += int((shares.argmax(axis=1) == true).sum())
            first += len(shares)
        count += len(targets)
    mean = loss / count
    metrics = {"loss": mean, "perplexity": math.exp(mean), "accuracy": hits / count}
    return {f"{stage}/{name}": value for name, value in metrics.items()}


def neighbors_of(batch: MaskedBatch, vocab_size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of the words to the left and right of each masked position, (positions,) each.

    The id is `vocab_size` outside of the text, and HIDDEN for a word that is masked too.
    """
    end = vocab_size + 1  # vocab_size is the id of [MASK] in the batch
    ids = np.where(batch.padding_mask.numpy(), batch.token_ids.numpy().astype(np.int64), end)
    padded = np.pad(ids, ((0, 0), (1, 1)), constant_values=end)  # (batch, length + 2)
    row, column = np.divmod(batch.places.numpy(), ids.shape[1])

    def of_counts(found: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(found == vocab_size, HIDDEN, np.where(found == end, vocab_size, found))

    return of_counts(padded[row, column]), of_counts(padded[row, column + 2])
