"""Measurement of the predictions of a classifier: metrics, files, and the figures of post 1 (reviews)."""

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc, multiclass_confusion_matrix

from firstlight import figures
from firstlight.callbacks.write_predictions import of_classes, predictions_of, with_groups
from firstlight.classifier.data import ReviewData
from firstlight.classifier.metrics import classification_metrics
from firstlight.classifier.prediction import logits_of
from firstlight.data.labels import LEFT_OUT, STARS
from firstlight.data.options import Labels, SourceKind
from firstlight.data.row_options import LongTexts, longest
from firstlight.data.tables import count_cuts
from firstlight.errors import UserError
from firstlight.figures.style import mark_sample
from firstlight.files.rows import row_writer, write_rows
from firstlight.kind.kind import Measurement
from firstlight.lit.losses import classification_loss, probabilities
from firstlight.runs.predictions import write_predictions

log = logging.getLogger(__name__)

MOST_PRINTED = 20  # classes in the table on the terminal, and groups in the figure


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions for some rows of a split.

    rows: (n,) indices in the data. logits: (n, outputs).
    """

    data: ReviewData
    split: str
    rows: NDArray[np.int64]
    logits: Tensor

    @cached_property
    def probabilities(self) -> Any:
        """The probabilities of the classes, (n, classes)."""
        return probabilities(self.logits).numpy()

    @property
    def predicted(self) -> NDArray[np.int64]:
        """The class with the highest probability, (n,)."""
        return self.probabilities.argmax(axis=1)

    @property
    def targets(self) -> NDArray[np.int64]:
        """The class of each row, (n,), or LEFT_OUT for labels that the task does not use."""
        return self.data.targets[self.rows]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of times that each class is predicted for each true class: (classes, classes), rows are true."""
        predicted, targets = torch.from_numpy(self.predicted), torch.from_numpy(self.targets)
        return multiclass_confusion_matrix(predicted, targets, self.data.num_classes).numpy()

    def with_targets(self) -> "Judged":
        """Return the predictions for the rows with a target."""
        return self.at(np.flatnonzero(self.targets != LEFT_OUT))

    def mistakes(self) -> "Judged":
        """Return the wrong predictions of rows with a target, the most confident first."""
        wrong = np.flatnonzero(self.predicted != self.targets)
        return self.at(wrong[np.argsort(-self.probabilities[wrong].max(axis=1), kind="stable")])

    def at(self, places: NDArray[np.int64]) -> "Judged":
        """Return the predictions at some places."""
        return Judged(self.data, self.split, self.rows[places], self.logits[torch.from_numpy(places)])

    def metrics(self) -> dict[str, float]:
        """Return the loss, the metrics of the callback `Accuracy`, the expected calibration error with ten bins and, of
        two classes, AUC, for rows with a target.
        """
        targets = torch.from_numpy(self.targets)
        measure = classification_metrics(self.data.num_classes, are_ordered=self.data.has_ordered_classes)
        measured: dict[str, Any] = {"loss": classification_loss(self.logits, targets)}
        measured |= measure(torch.from_numpy(self.predicted), targets)
        measured["calibration_error"] = figures.calibration_bins(self.probabilities, self.targets).error
        if len(set(self.targets.tolist())) == self.data.num_classes == 2:  # undefined if a class has no rows
            measured["auc"] = binary_auroc(torch.from_numpy(self.probabilities[:, 1]), targets)
        return {name: float(value) for name, value in measured.items()}

    def per_class(self) -> list[dict[str, Any]]:
        """Return the precision, recall and F1 of each class for rows with a target. A share of no rows is 0."""
        hits, texts, predicted = self.counts.diagonal(), self.counts.sum(axis=1), self.counts.sum(axis=0)
        scores = (hits / predicted.clip(min=1), hits / texts.clip(min=1), 2 * hits / (texts + predicted).clip(min=1))
        of_classes = zip(self.data.class_names, texts.tolist(), *(each.tolist() for each in scores), strict=True)
        return [dict(zip(("class", "texts", "precision", "recall", "f1"), each, strict=True)) for each in of_classes]

    def per_group(self) -> list[dict[str, Any]]:
        """Return the accuracy of each group with its 95% interval of Wilson, for rows with a target.

        The list is empty without `data.group_column`.
        """
        names, hits = np.array(self.data.groups(self.rows)), self.predicted == self.targets
        found = []
        if names.size:
            from scipy.stats import binomtest  # two thirds of the time of an import of torch
        for group in np.unique(names).tolist():
            own = hits[names == group].tolist()
            low, high = binomtest(sum(own), len(own)).proportion_ci(method="wilson")
            accuracy = {"accuracy": sum(own) / len(own), "low": float(low), "high": float(high)}
            found.append({"group": group, "texts": len(own), **accuracy})
        return found

    def write_predictions(self, path: Path) -> None:
        """Write the loss, the hit and the group of each row with a target, as a training does."""
        arrays = of_classes(*map(torch.from_numpy, (self.rows, self.probabilities, self.targets)))
        found = predictions_of({name: numbers.numpy() for name, numbers in arrays.items()})
        write_predictions(path, with_groups(found, self.data))

    def write_confusion_matrix(self, path: Path) -> None:
        """Write the confusion matrix of the rows with a target to <path>.png and <path>.csv."""
        self.save(draw_confusion_matrix(self), path.with_suffix(".png"))
        write_rows(path.with_suffix(".csv"), figures.confusion_table(self.counts, self.data.class_names))

    def save(self, figure: Figure, path: Path) -> None:
        """Save a figure, with a mark if the data is generated."""
        if self.data.source.kind is SourceKind.sample:
            mark_sample(figure)
        figures.save(figure, path)


def judge(run: Any, data: ReviewData, split: str) -> Judged:
    """Return the predictions of a `ClassifierRun` for all rows of a split. Raises UserError if none has a target.

    The classes of its training rows are removed from their features, as in training.
    """
    rows = data.encoded.rows_of(split)
    if not (data.targets[rows] != LEFT_OUT).any():
        problem = f"{data.source.where}: the {split} split has no rows for data.labels={data.labels.value}"
        raise UserError(f"{problem}; choose another --split")
    return Judged(data, split, rows, logits_of(run.network, data.batches_of(rows)))


def measure(run: Any, data: ReviewData, split: str) -> Measurement:
    """Return the metrics of a split, and write its predictions and figures. run: a `ClassifierRun`."""
    judged = judge(run, data, split)
    used = judged.with_targets()
    if sentence := data.label_reading.missing(used.targets):
        log.warning("%s, %s split: %s", data.source.where, split, sentence)
    per_class, per_group = used.per_class(), used.per_group()
    is_whole = data.options.long_texts is LongTexts.windows
    size = {
        "rows": len(used.rows),
        "left_out": len(judged.rows) - len(used.rows),
        "cut": 0 if is_whole else count_cuts(longest(data.encoded.lengths[judged.rows]), data.options.context_length),
        "labels": data.label_reading.record(),
        "per_class": per_class,
    } | ({"per_group": per_group} if per_group else {})

    def write(folder: Path) -> None:
        rows = prediction_rows(judged)
        write_rows(folder / "predictions.csv", rows)
        row_of = dict(zip(judged.rows.tolist(), rows, strict=True))
        with row_writer(folder / "mistakes.csv", list(rows[0])) as write_row:
            for number in used.mistakes().rows.tolist():
                write_row(row_of[number])
        used.write_predictions(folder / "predictions.npz")
        used.write_confusion_matrix(folder / "confusion_matrix")
        if tuple(data.encoded.label_names) == STARS:
            used.save(draw_probability_per_star(judged), folder / "probability_per_star.png")
        used.save(draw_predicted_per_class(used), folder / "predicted_per_class.png")
        if 0 < len(per_group) <= MOST_PRINTED:
            names = [f"{row['group']} ({row['texts']:,} texts)" for row in per_group]
            values = np.array([[row[key] for key in ("accuracy", "low", "high")] for row in per_group])
            figure = figures.plot_contributions(
                names, values[:, 0], values[:, 1:], title="Accuracy per group", label="accuracy"
            )
            used.save(figure, folder / "accuracy_per_group.png")

    printed = per_class if len(per_class) <= MOST_PRINTED else []
    notes, contents = (str(data.label_reading),), "Figures, predictions, mistakes and metrics"
    return Measurement(used.metrics(), size, notes, write, contents, printed, per_group)


def prediction_rows(judged: Judged) -> list[dict[str, Any]]:
    """Return one row for each text, with its label, its prediction and all probabilities.

    A pair, or a context with answers, has several columns of texts.
    """
    data, columns = judged.data, judged.data.options.text_columns
    texts = data.source.values(columns, judged.rows.tolist())
    return [
        dict(zip(columns if len(columns) > 1 else ["text"], text, strict=True))
        | {"label": data.encoded.label_names[label], "prediction": data.class_names[shares.argmax()]}
        | {f"probability_{name}": round(float(share), 6) for name, share in zip(data.class_names, shares, strict=True)}
        for text, label, shares in zip(texts, data.encoded.labels[judged.rows], judged.probabilities, strict=True)
    ]


def draw_confusion_matrix(judged: Judged) -> Figure:
    """Return the figure of the confusion matrix of rows with a target."""
    title = f"Confusion matrix, {judged.split}"
    return figures.plot_confusion_matrix(judged.counts, judged.data.class_names, title=title)


def draw_predicted_per_class(judged: Judged) -> Figure:
    """Return the figure of the predicted classes for each true class of rows with a target."""
    return figures.plot_predicted_per_star(judged.predicted, judged.targets, judged.data.class_names)


def draw_probability_per_star(judged: Judged) -> Figure:
    """Return the figure of the probability of a good review for each true number of stars.

    The labels of the data must be stars. A binary classifier was not trained on reviews with 3 stars.
    """
    is_binary = judged.data.labels is Labels.binary
    event, first_positive, unseen = ("positive", 1, (3,)) if is_binary else ("4 or 5 stars", 3, ())
    share = judged.probabilities[:, first_positive:].sum(axis=1).clip(0, 1)
    stars = judged.data.encoded.labels[judged.rows] + 1
    return figures.plot_probability_per_star(share, stars, event=event, unseen=unseen)
