"""Measurement of a classifier: metrics, predictions, and the figures of post 1."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from firstlight.callbacks.write_predictions import predictions_of
from firstlight.classifier.accuracy import classification_metrics
from firstlight.classifier.confusion_matrix import confusion_counts
from firstlight.data.choice_rows import longest
from firstlight.data.encoding import encode, training_rows
from firstlight.data.labels import LEFT_OUT, SENTIMENTS, STARS, LabelReading, targets_of
from firstlight.data.options import Labels, ReviewOptions, SourceKind
from firstlight.data.sources import Source, hash_of
from firstlight.errors import UserError
from firstlight.figures import (
    confusion_table,
    plot_confusion_matrix,
    plot_predicted_per_star,
    plot_probability_per_star,
    save,
)
from firstlight.figures.style import mark_sample
from firstlight.files.row_writer import write_rows
from firstlight.files.rows import dataset_files
from firstlight.kind.results import Measurement
from firstlight.kind.texts import Texts
from firstlight.kind.token_metrics import count_cuts
from firstlight.lit.losses import classification_loss, probabilities
from firstlight.runs.predictions import Predictions, write_predictions
from firstlight.text.tokenizers import Tokenizer

log = logging.getLogger(__name__)

PREDICTIONS = "predictions.npz"  # the file of `class_predictions` in the folder of an evaluation
SMALLEST_SHARE = 1e-12  # the probability of a class that a model excludes, in its loss


@dataclass(frozen=True, eq=False)
class LabelledTexts(Texts):
    """Labelled texts in the vocabulary of a trained network.

    labels: how the labels become targets. reading: what the labels mean.
    """

    options: ReviewOptions
    labels: Labels
    reading: LabelReading

    @property
    def targets(self) -> NDArray[np.int64]:
        """The class of each row, (rows,), or LEFT_OUT for labels that the task does not use."""
        return targets_of(self.encoded.labels, self.labels, self.encoded.label_names)


def read_texts(
    source: Source,
    options: ReviewOptions,
    tokenizer: Tokenizer,
    predicted: Labels,
    label_names: list[str],
    class_names: Sequence[str],
) -> LabelledTexts:
    """Return labelled texts for a trained network, encoded with its tokenizer.

    The labels become targets as in the training, or sentiments if `data.labels=binary` is given. predicted,
    label_names, class_names: those of the training. Raises UserError for unknown labels, and for labels whose meaning
    is in doubt.
    """
    is_of_sentiments = predicted is Labels.binary and options.labels is Labels.classes
    encoded = encode(source, options, tokenizer, list(SENTIMENTS) if is_of_sentiments else label_names)
    becomes_sentiments = tuple(class_names) == SENTIMENTS and options.labels is Labels.binary
    labels = Labels.binary if becomes_sentiments else predicted
    reading = LabelReading.of(encoded.meanings, labels, encoded.label_names, class_names)
    if options.labels is Labels.binary and (doubt := reading.doubt(options.lowest_label)):
        raise UserError(f"{source.where}: {doubt}")
    return LabelledTexts(source, encoded, options, labels, reading)


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions of a run for some rows.

    rows: (n,) indices. labels: (n,) labels of the data. targets: (n,) classes, or LEFT_OUT for labels that the task
    does not use. probabilities: (n, classes). metrics: metrics of the rows with a target.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    targets: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    metrics: dict[str, float]


def measure(run: Any, data: LabelledTexts, split: str) -> Measurement:
    """Return the metrics of a split, and write its predictions and figures. run: a `ClassifierRun`."""
    judged = judge(run, data, split)
    if sentence := data.reading.missing(judged.targets):
        log.warning("%s, %s split: %s", data.source.where, split, sentence)
    num_measured = int((judged.targets != LEFT_OUT).sum())
    size = {
        "rows": num_measured,
        "left_out": len(judged.rows) - num_measured,
        "cut": count_cuts(longest(data.encoded.lengths[judged.rows]), run.config["context_length"]),
        "labels": data.reading.record(),
    }

    def write(folder: Path) -> None:
        write_rows(folder / "predictions.csv", prediction_rows(run, data, judged))
        used = judged.targets != LEFT_OUT
        predictions = class_predictions(judged.rows[used], judged.targets[used], judged.probabilities[used])
        write_predictions(folder / PREDICTIONS, predictions)
        draw_figures(folder, run.class_names, data, judged, split)

    return Measurement(judged.metrics, size, (str(data.reading),), write, "Figures, predictions and metrics")


def counted_rows(run: Any, data: LabelledTexts) -> NDArray[np.int64]:
    """Return the rows whose classes are in the target encoding of a run, (n,); none if it has none, and for other data.

    Raises UserError if the file of the training rows is read as the test split.
    """
    source, path, rows = data.source, data.source.files.get("test"), data.encoded.rows_of("train")
    if run.target_encoding is not None and path is not None and source.splits == ["test"]:
        beside = dataset_files(path.parent) if path.stem.lower() == "train" else {}
        if run.data_fingerprint in (hash_of({"train": path}), hash_of(beside)):
            raise UserError(f"data.path={path} has the training rows of the run; leave it out, and name a --split")
    if run.target_encoding is None or source.fingerprint != run.data_fingerprint:
        return rows[:0]
    classes = targets_of(data.encoded.labels[rows], run.labels, data.encoded.label_names)
    return training_rows(rows[classes != LEFT_OUT], data.options)


def judge(run: Any, data: LabelledTexts, split: str) -> Judged:
    """Return the predictions and metrics of all rows of a split. Raises UserError if there are no rows.

    The classes of the rows of `counted_rows` are removed from their features, as in training.
    """
    rows, counted = data.encoded.rows_of(split), counted_rows(run, data)
    targets = data.targets[rows]
    used = torch.from_numpy(targets != LEFT_OUT)
    if not used.any():
        raise UserError(f"the {split} split has no rows for data.labels={data.labels.value}; choose another --split")
    logits = run.logits(data.encoded.ids, rows)
    if (is_counted := np.isin(rows, counted)).any():
        logits[is_counted] = run.logits(data.encoded.ids, rows[is_counted], data.targets)
    shares = probabilities(logits)
    known = torch.from_numpy(targets)[used]
    metrics = {"loss": float(classification_loss(logits[used], known))}
    metrics |= metrics_of(shares[used], known, ordered=data.labels is Labels.stars)
    return Judged(rows, data.encoded.labels[rows], targets, shares.numpy(), metrics)


def metrics_of(shares: Tensor, targets: Tensor, *, ordered: bool) -> dict[str, float]:
    """Return the metrics of the callback `Accuracy`. shares: (n, classes) probabilities; targets: (n,)."""
    metrics = classification_metrics(shares.shape[1], are_ordered=ordered)
    return {name: float(value) for name, value in metrics(shares.argmax(dim=1), targets).items()}


def prediction_rows(run: Any, data: LabelledTexts, judged: Judged) -> list[dict[str, Any]]:
    """Return one row for each text, with its label, its prediction and all probabilities.

    A pair, or a context with answers, has several columns of texts.
    """
    columns, names = data.options.text_columns, run.class_names
    texts = data.source.values(columns, judged.rows.tolist())
    return [
        dict(zip(columns if len(columns) > 1 else ["text"], text, strict=True))
        | {"label": data.encoded.label_names[label], "prediction": names[shares.argmax()]}
        | {f"probability_{name}": round(float(share), 6) for name, share in zip(names, shares, strict=True)}
        for text, label, shares in zip(texts, judged.labels, judged.probabilities, strict=True)
    ]


def class_predictions(
    rows: NDArray[np.int64], targets: NDArray[np.int64], shares: NDArray[np.floating[Any]]
) -> Predictions:
    """Return the loss and the hit of each text, as a training saves them. rows, targets: (n,); shares: (n, classes)."""
    predicted = shares.argmax(axis=1)
    losses = -np.log(shares[np.arange(len(targets)), targets].clip(min=SMALLEST_SHARE))
    return predictions_of(
        {
            "rows": rows,
            "losses": losses.astype(np.float32),
            "tokens": np.ones_like(targets),
            "correct": (predicted == targets).astype(np.int64),
            "checksums": targets,
            "targets": targets,
            "predicted": predicted,
        }
    )


def draw_figures(folder: Path, names: list[str], data: LabelledTexts, judged: Judged, split: str) -> None:
    """Write the confusion matrix as a figure and a table, and the figures of predictions per class."""
    used = judged.targets != LEFT_OUT
    predicted, source = judged.probabilities.argmax(axis=1), data.source
    write_confusion_matrix(folder / "confusion_matrix", judged.targets[used], predicted[used], names, source, split)
    if tuple(data.encoded.label_names) == STARS:
        save_marked(draw_probability_per_star(judged, data.labels), source, folder / "probability_per_star.png")
    figure = plot_predicted_per_star(predicted[used], judged.targets[used], names)
    save_marked(figure, source, folder / "predicted_per_class.png")


def draw_probability_per_star(judged: Judged, predicted: Labels) -> Figure:
    """Return the figure of the probability of a good review for each true number of stars.

    judged: predictions for data with stars as labels. predicted: `stars`, or `binary` for a run that was not trained on
    reviews with 3 stars.
    """
    is_binary = predicted is Labels.binary
    event, first_positive, unseen = ("positive", 1, (3,)) if is_binary else ("4 or 5 stars", 3, ())
    share = judged.probabilities[:, first_positive:].sum(axis=1).clip(0, 1)
    return plot_probability_per_star(share, judged.labels + 1, event=event, unseen=unseen)


def save_marked(figure: Figure, source: Source, path: Path) -> None:
    """Save a figure, with a mark if its data is generated."""
    if source.kind is SourceKind.sample:
        mark_sample(figure)
    save(figure, path)


def write_confusion_matrix(
    path: Path, targets: NDArray[np.int64], predicted: NDArray[np.int64], names: list[str], source: Source, split: str
) -> None:
    """Write the confusion matrix to <path>.png and <path>.csv. targets, predicted: (n,); names: class names."""
    counts = confusion_counts(targets, predicted, len(names))
    figure = plot_confusion_matrix(counts, names, title=f"Confusion matrix, {split}")
    save_marked(figure, source, path.with_suffix(".png"))
    write_rows(path.with_suffix(".csv"), confusion_table(counts, names))
