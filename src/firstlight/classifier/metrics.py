"""The metrics of a classifier: accuracy and macro F1, the confusion matrix, and tables of texts with their classes."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.trainer.states import TrainerFn
from numpy.typing import NDArray
from rich.measure import Measurement
from rich.table import Table
from torch import Tensor
from torchmetrics import MeanAbsoluteError, Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix, MulticlassF1Score

from firstlight.callbacks import publish
from firstlight.callbacks.evaluation import SPLITS, EvaluationCallback, MetricCallback, training_outputs
from firstlight.console import terminal
from firstlight.data.labels import STARS
from firstlight.data.options import Labels
from firstlight.errors import UserError
from firstlight.files.rows import write_rows
from firstlight.lit.running_mean import MeanCallback, is_logging_step, log_training


class ClassMetric(MetricCallback):
    """Base class of callbacks that compare the predicted classes with the true ones."""

    def metric_of(self, class_names: list[str], *, are_ordered: bool) -> Metric | MetricCollection:
        """Return a metric of predicted and true classes, both (n,).

        are_ordered: whether an error of one class is smaller than an error of two, as with stars.
        """
        raise NotImplementedError

    def new_metric(self, trainer: Trainer, pl_module: Any, outputs: Any = None) -> Metric | MetricCollection | None:
        metadata = getattr(pl_module, "metadata", None) or {}
        if (data := publish.data_if_any(trainer)) is not None:
            if not hasattr(data, "class_names"):
                problem = "Accuracy and ConfusionMatrix require data with classes, such as ReviewData"
                raise UserError(f"{problem}, not {type(data).__name__}; remove the callback")
            return self.metric_of(list(data.class_names), are_ordered=data.has_ordered_classes)
        if metadata.get("class_names"):
            labels = metadata["config"].get("data", {}).get("labels")
            return self.metric_of(list(metadata["class_names"]), are_ordered=labels == Labels.stars.name)
        if outputs is None:
            return None  # the first batch shows the number of classes
        return self.metric_of([str(i) for i in range(outputs["probabilities"].shape[1])], are_ordered=False)

    def add(self, metric: Any, outputs: Any, batch: Any) -> None:
        metric.update(outputs["probabilities"].argmax(dim=1), outputs["targets"])


class Accuracy(MeanCallback, ClassMetric):
    """Log the accuracy and the macro F1 score of a classifier.

    In validation it logs `val/accuracy`, `val/macro_f1` and, for ordered classes such as stars,
    `val/mean_absolute_error`, in classes. In test it logs the same metrics as `test/…`. In training it logs
    `train/accuracy`, the mean over the steps since the last log. It works with a data module and with plain loaders.

    It reads `probabilities`, (batch, classes), and `targets`, (batch,), of what `validation_step` and `test_step`
    return. In your own LightningModule they can also return the logits as a tensor, (batch, classes), or (batch, 1) for
    two classes, or as `logits` of a dict. If they return no `targets`, the batch is a pair of tensors, inputs and
    targets. `train/accuracy` requires a `training_step` that returns `{"loss": loss, "logits": logits}`.

    Raises:
        UserError: If a step does not return what it reads, or if the data has no classes.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import Accuracy
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[Accuracy()])
        >>> trainer.fit(module, datamodule=data)
        >>> sorted(name for name in trainer.callback_metrics if name.startswith("val/"))
        ['val/accuracy', 'val/loss', 'val/macro_f1']
    """

    training_sum = "hits"

    def metric_of(self, class_names: list[str], *, are_ordered: bool) -> MetricCollection:
        return classification_metrics(len(class_names), are_ordered=are_ordered)

    def finish(self, trainer: Trainer, pl_module: Any, stage: str, value: dict[str, Tensor]) -> None:
        for name, number in value.items():
            pl_module.log(f"{stage}/{name}", number, prog_bar=name == "accuracy", sync_dist=True)  # all processes agree

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if (found := training_outputs(self, trainer, outputs, batch, batch_idx)) is None:
            return
        logits, targets = found["logits"], found["targets"]
        predicted = logits.argmax(dim=1) if logits.shape[1] > 1 else logits.squeeze(1) > 0
        self.add_to_mean((predicted == targets).sum(), len(targets))
        if is_logging_step(trainer, batch_idx):
            log_training(trainer, pl_module, {"train/accuracy": self.take_mean()})


def classification_metrics(num_classes: int, *, are_ordered: bool) -> MetricCollection:
    """Return a collection of metrics of predicted and true classes, both (n,).

    are_ordered: whether an error of one class is smaller than an error of two, as with stars.
    """
    metrics: dict[str, Metric | MetricCollection] = {
        "accuracy": MulticlassAccuracy(num_classes, average="micro"),
        "macro_f1": MulticlassF1Score(num_classes, average="macro"),
    }
    if are_ordered:
        metrics["mean_absolute_error"] = MeanAbsoluteError()
    return MetricCollection(metrics)


class ConfusionMatrix(ClassMetric):
    """Make a confusion matrix of every validation and test.

    During `Trainer.fit`, the matrix is sent to the loggers that can show figures. `Trainer.validate` and `Trainer.test`
    also write `validation.png` and `validation.csv`, or `test.png` and `test.csv`, and print the counts. It works with
    a data module and with plain loaders. It reads what `Accuracy` reads of `validation_step` and `test_step`:
    `probabilities` and `targets`, or the logits as a tensor.

    Args:
        folder: The folder for the picture and the table.
        most_printed: The largest number of classes for which the counts are printed.

    Raises:
        UserError: If a step does not return what it reads, or if the data has no classes.

    Example:
        >>> from pathlib import Path
        >>> import lightning as L
        >>> from firstlight.callbacks import ConfusionMatrix
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(callbacks=[ConfusionMatrix("matrix", most_printed=0)])
        >>> _ = trainer.validate(module, datamodule=data, verbose=False)
        >>> sorted(path.name for path in Path("matrix").iterdir())
        ['validation.csv', 'validation.png']
    """

    def __init__(self, folder: str, most_printed: int = 20) -> None:
        self.folder, self.most_printed = Path(folder), most_printed
        self.class_names: list[str] = []

    def metric_of(self, class_names: list[str], *, are_ordered: bool) -> MulticlassConfusionMatrix:
        self.class_names = class_names
        return MulticlassConfusionMatrix(len(class_names))

    def finish(self, trainer: Trainer, pl_module: Any, stage: str, value: Tensor) -> None:
        counts = value.cpu().numpy()
        if not trainer.is_global_zero or trainer.sanity_checking:
            return
        is_final = trainer.state.fn is not TrainerFn.FITTING
        if is_final or any(publish.shows_media(logger) for logger in trainer.loggers):
            self._draw(stage, counts, trainer, is_final)
        if is_final and len(self.class_names) <= self.most_printed:
            print_counts(counts, self.class_names, f"Confusion matrix, {SPLITS[stage]}")

    def _draw(self, stage: str, counts: np.ndarray, trainer: Trainer, is_final: bool) -> None:
        # matplotlib is imported only if a figure is drawn
        from firstlight.figures import confusion_table, plot_confusion_matrix, save
        from firstlight.figures.style import mark_sample

        title = f"Confusion matrix, {SPLITS[stage]}, step {trainer.global_step}"
        figure = plot_confusion_matrix(counts, self.class_names, title=title)
        if publish.is_sample(trainer):
            mark_sample(figure)
        rows = confusion_table(counts, self.class_names)
        publish.publish_figure(trainer, f"{stage}/confusion_matrix", figure)
        publish.publish_table(trainer, f"{stage}/confusion_matrix_table", rows)
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                chart = {f"{stage}/confusion_matrix_chart": self._wandb_chart(counts, stage)}
                logger.log_metrics(chart, publish.step_of(trainer))
        if is_final:
            save(figure, self.folder / f"{SPLITS[stage]}.png")
            write_rows(self.folder / f"{SPLITS[stage]}.csv", rows)

    def _wandb_chart(self, counts: np.ndarray, stage: str) -> Any:
        """Return W&B's interactive chart, which requires a list of all examples."""
        import wandb

        true, predicted = (np.repeat(each.ravel(), counts.ravel()).tolist() for each in np.indices(counts.shape))
        names, title = self.class_names, f"Confusion matrix, {SPLITS[stage]}"
        return wandb.plot.confusion_matrix(y_true=true, preds=predicted, class_names=names, title=title)


def print_counts(counts: np.ndarray, class_names: list[str], title: str) -> None:
    """Print the counts and their shares of each row as a table. counts: (classes, classes), rows are true."""
    table = Table()
    table.add_column("true ＼ predicted")
    for name in class_names:
        table.add_column(name, justify="right")
    for name, row in zip(class_names, counts, strict=True):
        total = max(int(row.sum()), 1)
        table.add_row(name, *(f"{count} ({count / total:.0%})" for count in row))
    console = terminal()
    if Measurement.get(console, console.options, table).minimum <= console.width:
        console.print(f"{title}:")
        console.print(table, soft_wrap=False)


LONGEST_TEXT = 2000  # the largest number of characters that are shown
MOST_OF_CELL, MOST_OF_CELLS = 20, 2000  # texts of a cell of the confusion matrix, and of all cells


class ReviewTable(EvaluationCallback):
    """Log the first texts of the test split with their labels and predictions, as the table `test/reviews`.

    The same rows are written to `test.csv`: the text, its stars or label, the true and the predicted class and the
    probability of every class. `Trainer.validate` writes `validation.csv` with the most confident texts of each cell of
    the confusion matrix, which a report shows. With several processes, a table has the texts that the first process
    evaluated. It requires a `ReviewData`.

    Args:
        folder: The folder of `test.csv` and `validation.csv`.
        num_reviews: The number of texts in `test.csv`.

    Raises:
        UserError: If the trainer has no data module.

    Example:
        >>> from pathlib import Path
        >>> import lightning as L
        >>> from firstlight.callbacks import ReviewTable
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(callbacks=[ReviewTable("table", num_reviews=3)])
        >>> _ = trainer.test(module, datamodule=data, verbose=False)
        >>> Path("table/test.csv").read_text().splitlines()[0]
        '"text","stars","true","prediction","p(negative)","p(positive)"'
    """

    def __init__(self, folder: str, num_reviews: int = 50) -> None:
        self.folder, self.num_reviews = Path(folder), num_reviews
        self._judged: list[tuple[Tensor, Tensor, Tensor]] = []  # rows, targets and probabilities of each batch

    def begin_evaluation(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._judged = []

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        if trainer.is_global_zero and trainer.state.fn is not TrainerFn.FITTING:
            publish.data_of(trainer, self)
            judged = (outputs.get("rows", batch.rows), outputs["targets"], outputs["probabilities"].float())
            self._judged.append(tuple(each.cpu() for each in judged))

    def end_evaluation(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if not self._judged:
            return
        rows, targets, shares = (torch.cat(each).numpy() for each in zip(*self._judged, strict=True))
        self._judged = []
        chosen = rows.argsort()[: self.num_reviews] if stage == "test" else places_of_cells(targets, shares)
        table = table_of(publish.data_of(trainer, self), rows[chosen], targets[chosen], shares[chosen])
        if stage == "test":
            publish.publish_table(trainer, "test/reviews", table)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_rows(self.folder / f"{SPLITS[stage]}.csv", table)


def places_of_cells(targets: NDArray[np.int64], shares: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the places of the most confident predictions of each pair of a true and a predicted class, cell by cell.

    targets: (n,). shares: (n, classes) probabilities.
    """
    cells = targets * shares.shape[1] + shares.argmax(axis=1)
    order = np.lexsort((-shares.max(axis=1), cells))
    ranks = np.arange(len(order)) - np.searchsorted(cells[order], cells[order])
    return order[ranks < min(MOST_OF_CELL, max(1, MOST_OF_CELLS // len(np.unique(cells))))]


def table_of(
    data: Any, rows: NDArray[np.int64], targets: NDArray[np.int64], shares: NDArray[np.float32]
) -> list[dict[str, Any]]:
    """Return a line for each of some rows of a `ReviewData`. targets: (n,). shares: (n, classes) probabilities."""
    names, labels = data.class_names, data.encoded.label_names
    given = "stars" if tuple(labels) == STARS else "label"
    texts = data.source.texts(data.options.text_columns, rows.tolist())
    return [
        {
            "text": text[:LONGEST_TEXT],
            given: labels[data.encoded.labels[row]],
            "true": names[target],
            "prediction": names[of_row.argmax()],
        }
        | {f"p({name})": p for name, p in zip(names, of_row.tolist(), strict=True)}
        for text, row, target, of_row in zip(texts, rows, targets, shares, strict=True)
    ]
