"""The confusion matrix for the loggers, the run folder and, at the end, the terminal."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.trainer.states import TrainerFn
from numpy.typing import NDArray
from rich.measure import Measurement
from rich.table import Table
from torch import Tensor
from torchmetrics.classification import MulticlassConfusionMatrix
from torchmetrics.functional.classification import multiclass_confusion_matrix

from firstlight.callbacks.evaluation import SPLITS
from firstlight.callbacks.publish import is_sample, publish_figure, publish_table, shows_media, step_of
from firstlight.classifier.accuracy import ClassMetric
from firstlight.console import terminal
from firstlight.files.row_writer import write_rows


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
        if is_final or any(shows_media(logger) for logger in trainer.loggers):
            self._draw(stage, counts, trainer, is_final)
        if is_final and len(self.class_names) <= self.most_printed:
            print_counts(counts, self.class_names, f"Confusion matrix, {SPLITS[stage]}")

    def _draw(self, stage: str, counts: np.ndarray, trainer: Trainer, is_final: bool) -> None:
        # matplotlib is imported only if a figure is drawn
        from firstlight.figures import confusion_table, plot_confusion_matrix, save
        from firstlight.figures.style import mark_sample

        figure = plot_confusion_matrix(
            counts, self.class_names, title=f"Confusion matrix, {SPLITS[stage]}, step {trainer.global_step}"
        )
        if is_sample(trainer):
            mark_sample(figure)
        rows = confusion_table(counts, self.class_names)
        publish_figure(trainer, f"{stage}/confusion_matrix", figure)
        publish_table(trainer, f"{stage}/confusion_matrix_table", rows)
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                chart = {f"{stage}/confusion_matrix_chart": self._wandb_chart(counts, stage)}
                logger.log_metrics(chart, step_of(trainer))
        if is_final:
            save(figure, self.folder / f"{SPLITS[stage]}.png")
            write_rows(self.folder / f"{SPLITS[stage]}.csv", rows)

    def _wandb_chart(self, counts: np.ndarray, stage: str) -> Any:
        """Return W&B's interactive chart, which requires a list of all examples."""
        import wandb

        true, predicted = np.indices(counts.shape)
        return wandb.plot.confusion_matrix(
            y_true=np.repeat(true.ravel(), counts.ravel()).tolist(),
            preds=np.repeat(predicted.ravel(), counts.ravel()).tolist(),
            class_names=self.class_names,
            title=f"Confusion matrix, {SPLITS[stage]}",
        )


def confusion_counts(targets: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int) -> NDArray[np.int64]:
    """Return the number of times that each class is predicted for each true class: (classes, classes), rows are true.

    targets, predicted: (n,).
    """
    found = multiclass_confusion_matrix(torch.from_numpy(predicted), torch.from_numpy(targets), num_classes)
    counts: NDArray[np.int64] = found.numpy()
    return counts


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
