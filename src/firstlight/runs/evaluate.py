"""A trained run on any split, or on other data."""

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from firstlight.errors import UserError
from firstlight.runs.folder import write_atomically

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from firstlight.data.encoding import EncodedTexts
    from firstlight.data.options import ReviewOptions
    from firstlight.data.sources import Source
    from firstlight.runs.load import LoadedClassifier


@dataclass
class DataChanges:
    """Other data than the run was trained on."""

    path: str | None = None
    """A file, a folder of split files, or a Hub id."""
    source: Literal["auto", "hub", "local", "sample"] | None = None
    """Where to look, as in training."""
    text_column: str | None = None
    """The column of the texts."""
    label_column: str | None = None
    """The column of the labels."""
    lowest_label: int | None = None
    """The label of one star."""


@dataclass
class EvaluateOptions:
    """Evaluate a trained run; what it finds goes into the run's folder, below evaluate/."""

    run: Annotated[str, tyro.conf.Positional]
    """The run's folder, `latest`, or `best:<metric>`."""
    split: Literal["train", "validation", "test"] = "test"
    """Which rows; a single file given by --data.path is always the test split."""
    data: DataChanges = field(default_factory=DataChanges)
    checkpoint: Literal["best", "last"] = "best"
    """Which of the run's checkpoints."""
    log_dir: Path = Path("logs")
    """Where `latest` and `best:<metric>` are looked for."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What a run says of some rows.

    rows: (n,); labels: (n,) as in the data; targets: (n,), LEFT_OUT where the task leaves the label out;
    probabilities: (n, classes); metrics: of the rows with a target.
    """

    rows: "NDArray[np.int64]"
    labels: "NDArray[np.int64]"
    targets: "NDArray[np.int64]"
    probabilities: "NDArray[np.float32]"
    metrics: dict[str, float]


def main() -> None:
    """Parse the command line and evaluate."""
    evaluate(tyro.cli(EvaluateOptions))


def evaluate(options: EvaluateOptions) -> Path:
    """Judge a split, write everything below the run's folder, print the metrics; returns where they are."""
    from firstlight.data.encoding import encode
    from firstlight.data.sources import find_source
    from firstlight.runs.load import load

    classifier = load(options.run, checkpoint=options.checkpoint, log_dir=options.log_dir)
    data_options = changed_options(classifier, options.data)
    source = find_source(data_options, only_split="train" if options.data.path is None else "test")
    refuse_other_data(classifier, source, options.data)
    encoded = encode(source, data_options, classifier.tokenizer, classifier.label_names)
    judged = judge(classifier, encoded, data_options, options.split)
    folder = classifier.folder.path / "evaluate" / _folder_name(options, source)
    folder.mkdir(parents=True, exist_ok=True)
    write_results(folder, classifier, judged, source, data_options, options)
    draw_figures(folder, classifier, judged, data_options, options.split)
    print_results(folder, classifier, judged, source, options.split)
    return folder


def changed_options(classifier: "LoadedClassifier", changes: DataChanges) -> "ReviewOptions":
    """The run's own data options with what the command line changes."""
    from omegaconf import OmegaConf

    from firstlight.config import ReviewDataNode
    from firstlight.data.options import SourceKind

    saved = OmegaConf.merge(OmegaConf.structured(ReviewDataNode), classifier.config["data"])
    options: Any = OmegaConf.to_object(saved)
    given = {name: value for name, value in vars(changes).items() if value is not None}
    if changes.source is not None:
        given = {"path": None} | given | {"source": SourceKind[changes.source]}
    elif changes.path is not None:
        given["source"] = SourceKind.auto
    try:
        return replace(options, **given)
    except ValueError as error:
        raise UserError(str(error)) from error


def refuse_other_data(classifier: "LoadedClassifier", source: "Source", changes: DataChanges) -> None:
    """Raise UserError if the run's own data was meant and something else was found, such as the sample."""
    meant_own = all(value is None for value in vars(changes).values())
    if meant_own and source.fingerprint != classifier.data_fingerprint:
        raise UserError(
            f"the run was trained on other data than {source.where}, which is what was found here; "
            f"set FIRSTLIGHT_DATA as in training, or name the data by --data.path or --data.source"
        )


def judge(classifier: "LoadedClassifier", encoded: "EncodedTexts", options: "ReviewOptions", split: str) -> Judged:
    """Logits and metrics of all rows of a split. Raises UserError if it has none."""
    import torch

    from firstlight.data.labels import LEFT_OUT, targets_of
    from firstlight.lit.losses import classification_loss, probabilities

    rows = encoded.rows_of(split)
    labels = encoded.labels[rows]
    targets = targets_of(labels, options.labels)
    used = torch.from_numpy(targets != LEFT_OUT)
    if not used.any():
        raise UserError(f"the {split} split has no rows for data.labels={options.labels.value}; choose another --split")
    logits = classifier.logits(encoded.ids, rows)
    shares = probabilities(logits)
    known = torch.from_numpy(targets)[used]
    metrics = {"loss": float(classification_loss(logits[used], known))}
    metrics |= classification_metrics(shares[used], known, ordered=options.has_ordered_classes)
    return Judged(rows, labels, targets, shares.numpy(), metrics)


def classification_metrics(shares: Any, targets: Any, *, ordered: bool) -> dict[str, float]:
    """The metrics of the accuracy callback. shares: (n, classes) probabilities; targets: (n,)."""
    from torchmetrics.functional import mean_absolute_error
    from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

    predicted, num_classes = shares.argmax(dim=1), shares.shape[1]
    metrics = {
        "accuracy": multiclass_accuracy(predicted, targets, num_classes, average="micro"),
        "macro_f1": multiclass_f1_score(predicted, targets, num_classes, average="macro"),
    }
    if ordered:
        metrics["mean_absolute_error"] = mean_absolute_error(predicted, targets)
    return {name: float(value) for name, value in metrics.items()}


def write_results(
    folder: Path,
    classifier: "LoadedClassifier",
    judged: Judged,
    source: "Source",
    data_options: "ReviewOptions",
    options: EvaluateOptions,
) -> None:
    """metrics.json and predictions.csv."""
    record = {
        "run": str(classifier.folder.path),
        "checkpoint": options.checkpoint,
        "split": options.split,
        "data": {"source": source.kind.value, "path": source.where, "fingerprint": source.fingerprint},
        "rows": len(judged.rows),
        "metrics": {f"{options.split}/{name}": value for name, value in judged.metrics.items()},
    }
    write_atomically(folder / "metrics.json", json.dumps(record, indent=2) + "\n")
    texts = source.texts(data_options.text_column, judged.rows.tolist())
    write_csv(folder / "predictions.csv", prediction_rows(classifier, judged, texts))


def prediction_rows(classifier: "LoadedClassifier", judged: Judged, texts: list[str]) -> list[dict[str, Any]]:
    """One row for each text: what it is labelled, what is predicted, and every probability."""
    names = classifier.class_names
    return [
        {"text": text, "label": classifier.label_names[label], "prediction": names[shares.argmax()]}
        | {f"probability_{name}": round(float(share), 6) for name, share in zip(names, shares, strict=True)}
        for text, label, shares in zip(texts, judged.labels, judged.probabilities, strict=True)
    ]


def draw_figures(
    folder: Path, classifier: "LoadedClassifier", judged: Judged, options: "ReviewOptions", split: str
) -> None:
    """The confusion matrix, as picture and table, and for stars the post's figures."""
    import numpy as np

    from firstlight.data.labels import LEFT_OUT
    from firstlight.data.options import Labels
    from firstlight.figures import confusion_matrix, stars, style

    used = judged.targets != LEFT_OUT
    predicted, names = judged.probabilities.argmax(axis=1), classifier.class_names
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, (judged.targets[used], predicted[used]), 1)
    style.save(
        confusion_matrix.confusion_matrix(counts, names, title=f"Confusion matrix, {split}"),
        folder / "confusion_matrix.png",
    )
    write_csv(folder / "confusion_matrix.csv", confusion_matrix.table(counts, names))
    if options.labels is not Labels.classes:
        is_binary = options.labels is Labels.binary
        event, first_positive, unseen = ("positive", 1, (3,)) if is_binary else ("4 or 5 stars", 3, ())
        share = judged.probabilities[:, first_positive:].sum(axis=1).clip(0, 1)
        figure = stars.probability_per_star(share, judged.labels + 1, event=event, unseen=unseen)
        style.save(figure, folder / "probability_per_star.png")
    style.save(
        stars.predicted_per_star(predicted[used], judged.targets[used], names), folder / "predicted_per_class.png"
    )


def write_csv(path: Path, rows: Any) -> None:
    """Equal rows as a CSV file, whole or not at all."""
    from firstlight.data.files import RowWriter

    with RowWriter(path, list(rows[0])) as file:
        for row in rows:
            file.write(row)


def print_results(folder: Path, classifier: "LoadedClassifier", judged: Judged, source: "Source", split: str) -> None:
    """The metrics, and where everything is."""
    from rich.console import Console
    from rich.table import Table

    from firstlight.data.options import SourceKind
    from firstlight.runs.folder import SAMPLE_NOTE

    table = Table()
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in judged.metrics.items():
        table.add_row(name, f"{value:.4f}")
    console = Console()
    console.print(f"{classifier.folder.path} on {source.where}, {split}:", soft_wrap=True)
    console.print(table)
    if source.kind is SourceKind.sample:
        console.print(SAMPLE_NOTE, style="bold")
    console.print(f"Figures, predictions and metrics are in {folder}", soft_wrap=True)


def _folder_name(options: EvaluateOptions, source: "Source") -> str:
    """`test`; for other data its name and fingerprint before it, for another checkpoint than the best that after it."""
    name = options.split if options.checkpoint == "best" else f"{options.split}-{options.checkpoint}"
    other = options.data.path or options.data.source
    if other is None:
        return name
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '_', Path(other).stem)}-{source.fingerprint[:6]}-{name}"
