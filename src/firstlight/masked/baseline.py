"""Baseline of the masked language models: counts of the words next to the mask.

The number of neighbors is chosen on the validation split: none, the word to the left, or both.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.callbacks.write_predictions import predictions_of
from firstlight.kind.baseline import SPLITS, Fitted, best_of, say_choice
from firstlight.masked.data import MaskedBatch, MaskedReviewData
from firstlight.masked.neighbors import HIDDEN, NeighborCounts
from firstlight.runs.predictions import FOLDER, Predictions, write_predictions

NUM_NEIGHBORS = (0, 1, 2)


def fit(data: MaskedReviewData, metric: str, folder: Path) -> Fitted:
    """Count neighboring words in the training split, and choose the number of neighbors by a validation metric.

    The losses of each text are saved in `folder`, as a training saves them.
    """
    training = data.encoded.ids.select(data.rows("train"))
    counts = NeighborCounts.of(training, data.tokenizer.vocab_size)
    tried: dict[int, dict[str, float]] = {}

    def measured(stage: str, number: int) -> tuple[dict[str, float], Predictions]:
        predictions = measure(data, counts, stage, number)
        return metrics_of(predictions, stage), predictions

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

    return Fitted(
        parameters=counts.size,
        chosen={"neighbors": chosen},
        tried={"neighbors": {str(number): metrics for number, metrics in tried.items()}},
        validation=tried[chosen],
        test=test,
    )


def metrics_of(predictions: Predictions, stage: str) -> dict[str, float]:
    """Return loss, perplexity and accuracy at the masked positions, named as in training."""
    count = int(predictions.tokens.sum())
    loss = float(predictions.losses.sum(dtype=np.float64)) / count
    metrics = {"loss": loss, "perplexity": math.exp(loss), "accuracy": float(predictions.correct.sum()) / count}
    return {f"{stage}/{name}": value for name, value in metrics.items()}


def measure(data: MaskedReviewData, counts: NeighborCounts, stage: str, num_neighbors: int) -> Predictions:
    """Return the losses and hits at the masked positions of each text of `val` or `test`."""
    parts: list[dict[str, NDArray[Any]]] = []
    for batch in data.evaluation_loader(data.rows(SPLITS[stage])):
        targets = batch.targets.numpy()
        left, right = neighbors_of(batch, data.tokenizer.vocab_size)
        losses, hits = np.zeros(len(targets)), np.zeros(len(targets))
        first = 0
        for shares in counts.probabilities(left, right, num_neighbors):
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
    end = vocab_size + 1  # vocab_size is the id of [MASK] in the batch
    ids = np.where(batch.padding_mask.numpy(), batch.token_ids.numpy().astype(np.int64), end)
    padded = np.pad(ids, ((0, 0), (1, 1)), constant_values=end)  # (batch, length + 2)
    row, column = np.divmod(batch.places.numpy(), ids.shape[1])

    def of_counts(found: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(found == vocab_size, HIDDEN, np.where(found == end, vocab_size, found))

    return of_counts(padded[row, column]), of_counts(padded[row, column + 2])
