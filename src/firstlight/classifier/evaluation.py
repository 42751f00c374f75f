"""Evaluation of a trained classifier: metrics, predictions, and the figures of post 1."""

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

from firstlight.callbacks.outcomes import outcomes_of
from firstlight.classifier.accuracy import classification_metrics
from firstlight.classifier.confusion_matrix import confusion_counts
from firstlight.classifier.run import LoadedClassifier
from firstlight.data.choice_rows import longest
from firstlight.data.encoding import EncodedTexts, encode, training_rows
from firstlight.data.labels import LEFT_OUT, SENTIMENTS, STARS, LabelReading, targets_of
from firstlight.data.options import Labels, ReviewOptions, SourceKind
from firstlight.data.sources import Source, find_source, hash_of
from firstlight.data.tables import Cuts
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
from firstlight.kind.data_changes import changed_options
from firstlight.kind.evaluation import (
    EvaluateOptions,
    chosen_split,
    print_results,
    refuse_other_data,
    results_folder,
    write_metrics,
)
from firstlight.lit.losses import classification_loss, probabilities
from firstlight.runs.outcomes import Outcomes, write_outcomes

log = logging.getLogger(__name__)

OUTCOMES = "predictions.npz"  # the file of `class_outcomes` in the folder of an evaluation
SMALLEST_SHARE = 1e-12  # the probability of a class that a model excludes, in its loss


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


def evaluate_classifier(classifier: LoadedClassifier, options: EvaluateOptions) -> Path:
    """Evaluate a split, write the results below the run's folder, print the metrics, and return the results' folder."""
    data_options: ReviewOptions = changed_options(
        classifier.config["data"], ReviewOptions, options.data, options.log_dir
    )
    source = find_source(data_options, sample=data_options.sample.value, only_split=options.data.only_split)
    refuse_other_data(classifier, source, options.data)
    encoded = encode_for(classifier, source, data_options)
    kind, reading = read_labels(encoded, classifier.labels, classifier.class_names, source, data_options)
    split = chosen_split(source, options, has_test=bool(len(encoded.rows_of("test"))))
    judged = judge(classifier, encoded, split, kind, counted_rows(classifier, source, encoded, data_options))
    if sentence := reading.missing(judged.targets):
        log.warning("%s, %s split: %s", source.where, split, sentence)
    cuts = Cuts(classifier.config["context_length"])
    cuts.count(longest(encoded.lengths[judged.rows]))
    cuts.warn()
    folder = results_folder(classifier, source, split, options)
    num_measured = int((judged.targets != LEFT_OUT).sum())
    size = {
        "rows": num_measured,
        "left_out": len(judged.rows) - num_measured,
        "cut": cuts.num_cut,
        "labels": reading.record(),
    }
    write_metrics(folder, classifier, source, split, size, judged.metrics, options)
    values = source.values(data_options.text_columns, judged.rows.tolist())
    names = data_options.text_columns if len(data_options.text_columns) > 1 else ["text"]
    texts = [dict(zip(names, row, strict=True)) for row in values]
    write_rows(folder / "predictions.csv", prediction_rows(classifier, encoded, judged, texts))
    used = judged.targets != LEFT_OUT
    outcomes = class_outcomes(judged.rows[used], judged.targets[used], judged.probabilities[used])
    write_outcomes(folder / OUTCOMES, outcomes)
    draw_figures(folder, classifier, encoded, judged, source, split, kind)
    contents = "Figures, predictions and metrics"
    print_results(folder, classifier, source, split, judged.metrics, contents, [str(reading)])
    return folder


def encode_for(classifier: LoadedClassifier, source: Source, options: ReviewOptions) -> EncodedTexts:
    """Return data encoded with the vocabulary of a classifier. Raises UserError for labels that it does not have."""
    label_names = labels_to_read(classifier.labels, classifier.label_names, options)
    return encode(source, options, classifier.tokenizer, label_names)


def labels_to_read(predicted: Labels, label_names: list[str], options: ReviewOptions) -> list[str]:
    """Return the names of the labels of some data. predicted, label_names: those of the training."""
    is_of_sentiments = predicted is Labels.binary and options.labels is Labels.classes
    return list(SENTIMENTS) if is_of_sentiments else label_names


def read_labels(
    encoded: EncodedTexts, predicted: Labels, class_names: Sequence[str], source: Source, options: ReviewOptions
) -> tuple[Labels, LabelReading]:
    """Return how the labels of some data become targets, and what they mean. Raises UserError if that is in doubt.

    They become targets as in the training, or sentiments if `data.labels=binary` is given. predicted, class_names:
    those of the training.
    """
    is_of_sentiments = tuple(class_names) == SENTIMENTS and options.labels is Labels.binary
    kind = Labels.binary if is_of_sentiments else predicted
    reading = LabelReading.of(encoded.meanings, kind, encoded.label_names, class_names)
    if options.labels is Labels.binary and (doubt := reading.doubt(options.lowest_label)):
        raise UserError(f"{source.where}: {doubt}")
    return kind, reading


def counted_rows(
    run: LoadedClassifier, source: Source, encoded: EncodedTexts, options: ReviewOptions
) -> NDArray[np.int64]:
    """Return the rows whose classes are in the evidence of a run, (n,); none if it has none, and for other data.

    Raises UserError if the file of the training rows is read as the test split.
    """
    path, rows = source.files.get("test"), encoded.rows_of("train")
    if run.evidence is not None and path is not None and source.splits == ["test"]:
        beside = dataset_files(path.parent) if path.stem.lower() == "train" else {}
        if run.data_fingerprint in (hash_of({"train": path}), hash_of(beside)):
            raise UserError(f"data.path={path} has the training rows of the run; leave it out, and name a --split")
    if run.evidence is None or source.fingerprint != run.data_fingerprint:
        return rows[:0]
    return training_rows(rows[targets_of(encoded.labels[rows], run.labels, encoded.label_names) != LEFT_OUT], options)


def judge(
    classifier: LoadedClassifier, encoded: EncodedTexts, split: str, kind: Labels | None = None, counted: Any = ()
) -> Judged:
    """Return the predictions and metrics of all rows of a split. Raises UserError if there are no rows.

    kind: how the labels become targets, by default as in the training. counted: (n,) the rows that `counted_rows`
    returns, whose own classes are removed from their features, as in training.
    """
    rows = encoded.rows_of(split)
    labels = encoded.labels[rows]
    kind = kind or classifier.labels
    targets = targets_of(labels, kind, encoded.label_names)
    used = torch.from_numpy(targets != LEFT_OUT)
    if not used.any():
        raise UserError(f"the {split} split has no rows for data.labels={kind.value}; choose another --split")
    logits = classifier.logits(encoded.ids, rows)
    if (is_counted := np.isin(rows, counted)).any():
        classes = targets_of(encoded.labels, kind, encoded.label_names)
        logits[is_counted] = classifier.logits(encoded.ids, rows[is_counted], classes)
    shares = probabilities(logits)
    known = torch.from_numpy(targets)[used]
    metrics = {"loss": float(classification_loss(logits[used], known))}
    metrics |= metrics_of(shares[used], known, ordered=kind is Labels.stars)
    return Judged(rows, labels, targets, shares.numpy(), metrics)


def metrics_of(shares: Tensor, targets: Tensor, *, ordered: bool) -> dict[str, float]:
    """Return the metrics of the callback `Accuracy`. shares: (n, classes) probabilities; targets: (n,)."""
    metrics = classification_metrics(shares.shape[1], are_ordered=ordered)
    return {name: float(value) for name, value in metrics(shares.argmax(dim=1), targets).items()}


def prediction_rows(
    classifier: LoadedClassifier, encoded: EncodedTexts, judged: Judged, texts: list[dict[str, str]]
) -> list[dict[str, Any]]:
    """Return one row for each text, with its label, its prediction and all probabilities.

    texts: the text of each row by its column, or the texts of a pair or of a context with answers.
    """
    names = classifier.class_names
    return [
        text
        | {"label": encoded.label_names[label], "prediction": names[shares.argmax()]}
        | {f"probability_{name}": round(float(share), 6) for name, share in zip(names, shares, strict=True)}
        for text, label, shares in zip(texts, judged.labels, judged.probabilities, strict=True)
    ]


def class_outcomes(rows: NDArray[np.int64], targets: NDArray[np.int64], shares: NDArray[np.floating[Any]]) -> Outcomes:
    """Return the loss and the hit of each text, as a training saves them. rows, targets: (n,); shares: (n, classes)."""
    predicted = shares.argmax(axis=1)
    losses = -np.log(shares[np.arange(len(targets)), targets].clip(min=SMALLEST_SHARE))
    return outcomes_of(
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


def draw_figures(
    folder: Path,
    classifier: LoadedClassifier,
    encoded: EncodedTexts,
    judged: Judged,
    source: Source,
    split: str,
    kind: Labels,
) -> None:
    """Write the confusion matrix as a figure and a table, and the figures of predictions per class."""
    used = judged.targets != LEFT_OUT
    predicted, names = judged.probabilities.argmax(axis=1), classifier.class_names
    write_confusion_matrix(folder / "confusion_matrix", judged.targets[used], predicted[used], names, source, split)
    if tuple(encoded.label_names) == STARS:
        save_marked(draw_probability_per_star(judged, kind), source, folder / "probability_per_star.png")
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
