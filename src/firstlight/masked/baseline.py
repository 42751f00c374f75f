"""Baseline of the masked language models: counts of the words next to the mask.

The number of neighbors is chosen on the validation split: none, the word to the left, or both.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from firstlight.callbacks.evaluation import SPLITS
from firstlight.callbacks.write_predictions import predictions_of
from firstlight.kind.kind import Fitted, best_of, say_choice
from firstlight.masked.data import MaskedBatch, MaskedReviewData
from firstlight.runs.predictions import FOLDER, Predictions, write_predictions
from firstlight.text.ragged import RaggedIds

NUM_NEIGHBORS = (0, 1, 2)
HIDDEN = -1  # the id of a neighbor that is also masked
AT_ONCE = 256  # positions in a batch


def fit(data: MaskedReviewData, metric: str, folder: Path) -> Fitted:
    """Count neighboring words in the training split, and choose the number of neighbors by a validation metric.

    The losses of each text are saved in `folder`, as a training saves them.
    """
    pairs = count_pairs(data.encoded.ids.select(data.rows("train")), data.tokenizer.vocab_size)

    def measured(stage: str, number: int) -> tuple[dict[str, float], Predictions]:
        predictions = measure(data, pairs, SPLITS[stage], number)
        return {f"{stage}/{name}": value for name, value in metrics_of(predictions).items()}, predictions

    tried: dict[int, dict[str, float]] = {}
    for number in NUM_NEIGHBORS:
        tried[number], predictions = measured("val", number)
        say_choice("neighbors", number, tried[number])
        if best_of(tried, metric) == number:
            write_predictions(folder / FOLDER / "validation.npz", predictions)
    chosen = best_of(tried, metric)

    def test() -> dict[str, float]:
        metrics, predictions = measured("test", chosen)
        write_predictions(folder / FOLDER / "test.npz", predictions)
        return metrics

    return Fitted(int(pairs.nnz), "neighbors", chosen, tried, test)


def metrics_of(predictions: Predictions) -> dict[str, float]:
    """Return loss, perplexity and accuracy at the masked positions."""
    count = int(predictions.tokens.sum())
    loss = float(predictions.losses.sum(dtype=np.float64)) / count
    return {"loss": loss, "perplexity": math.exp(loss), "accuracy": float(predictions.correct.sum()) / count}


def measure(data: MaskedReviewData, pairs: csr_array, split: str, num_neighbors: int) -> Predictions:
    """Return the losses and hits at the masked positions of each text of a split. pairs: as in `probabilities`."""
    parts: list[dict[str, NDArray[Any]]] = []
    for batch in data.evaluation_loader(data.rows(split)):
        targets = batch.targets.numpy()
        left, right = neighbors_of(batch, data.tokenizer.vocab_size)
        losses, hits = np.zeros(len(targets)), np.zeros(len(targets))
        first = 0
        for shares in probabilities(pairs, left, right, num_neighbors):
            places = slice(first, first + len(shares))
            true = targets[places]
            losses[places] = -np.log(shares[np.arange(len(true)), true])
            hits[places] = shares.argmax(axis=1) == true
            first += len(shares)
        of_text = batch.places.numpy() // batch.token_ids.shape[1]
        each = {"losses": losses, "tokens": np.ones(len(targets)), "correct": hits, "checksums": targets}
        sums = {name: np.bincount(of_text, numbers, len(batch.rows)) for name, numbers in each.items()}
        counted = {name: numbers.astype(np.int64) for name, numbers in sums.items() if name != "losses"}
        parts.append({"rows": batch.rows.numpy(), "losses": sums["losses"].astype(np.float32), **counted})
    return predictions_of({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def neighbors_of(batch: MaskedBatch, vocab_size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of the words to the left and right of each masked position, (positions,) each.

    The id is `vocab_size` outside of the text, and HIDDEN for a word that is masked too.
    """
    ids = batch.token_ids.numpy().astype(np.int64)
    ids = np.where(ids == vocab_size, HIDDEN, ids)  # vocab_size is the id of [MASK] in the batch
    ids = np.where(batch.padding_mask.numpy(), ids, vocab_size)
    padded = np.pad(ids, ((0, 0), (1, 1)), constant_values=vocab_size)  # (batch, length + 2)
    row, column = np.divmod(batch.places.numpy(), ids.shape[1])
    return padded[row, column], padded[row, column + 2]


def count_pairs(texts: RaggedIds, vocab_size: int) -> csr_array:
    """Return how often each word precedes each other word in texts, (vocab_size + 1, vocab_size + 1).

    The beginning and the end of a text also count as a word, with the id `vocab_size`.
    """
    ends = np.insert(texts.ids.astype(np.int64), texts.offsets, vocab_size)  # before each text, and after the last one
    ones = np.ones(len(ends) - 1, np.int64)
    return csr_array((ones, (ends[:-1], ends[1:])), shape=(vocab_size + 1, vocab_size + 1))


def probabilities(
    pairs: csr_array, left: NDArray[np.int64], right: NDArray[np.int64], num_neighbors: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the probabilities of all words, (positions, vocab_size), in batches of AT_ONCE positions.

    Without neighbors, the probability is the frequency of the word. With one neighbor, it depends on the word to
    the left. With two neighbors, P(word | left, right) ∝ P(word | left) · P(right | word), as in a Markov chain.
    Each factor is interpolated with the frequency, weighted by the number of different words that follow (Witten
    & Bell 1991).

    pairs: as returned by `count_pairs`. left, right: (positions,) ids of the words on either side; `vocab_size` at an
    end of the text, HIDDEN if the neighbor is masked; num_neighbors: 0, 1 or 2.
    """
    following = np.asarray(pairs.sum(axis=0), np.float64).ravel()  # (vocab_size + 1,)
    totals = np.asarray(pairs.sum(axis=1), np.float64).ravel()
    types = np.diff(pairs.indptr).clip(min=1).astype(np.float64)  # 1 for a word that never occurs
    frequency = (following + 1) / (following + 1).sum()
    by_right = pairs.T.tocsr()
    for first in range(0, len(left), AT_ONCE):
        chosen = slice(first, first + AT_ONCE)
        shares = np.tile(frequency, (len(left[chosen]), 1))  # (places, vocab_size + 1)
        if num_neighbors:
            known = left[chosen] != HIDDEN
            rows = left[chosen][known]
            shares[known] = (pairs[rows].toarray() + types[rows, None] * frequency) / (totals + types)[rows, None]
        if num_neighbors > 1:
            known = right[chosen] != HIDDEN
            rows = right[chosen][known]
            counts = by_right[rows].toarray() + types * frequency[rows, None]
            shares[known] *= counts / (totals + types)
        words = shares[:, :-1]
        yield words / words.sum(axis=1, keepdims=True)
