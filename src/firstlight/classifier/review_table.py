"""Tables of reviews with their labels, predictions and probabilities."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn
from numpy.typing import NDArray
from torch import Tensor

from firstlight.callbacks.evaluation import SPLITS, EvaluationCallback
from firstlight.callbacks.publish import data_of, publish_table
from firstlight.data.labels import STARS
from firstlight.files.row_writer import write_rows

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
            data_of(trainer, self)
            judged = (outputs.get("rows", batch.rows), outputs["targets"], outputs["probabilities"].float())
            self._judged.append(tuple(each.cpu() for each in judged))

    def end_evaluation(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if not self._judged:
            return
        rows, targets, shares = (torch.cat(each).numpy() for each in zip(*self._judged, strict=True))
        self._judged = []
        chosen = rows.argsort()[: self.num_reviews] if stage == "test" else places_of_cells(targets, shares)
        table = table_of(data_of(trainer, self), rows[chosen], targets[chosen], shares[chosen])
        if stage == "test":
            publish_table(trainer, "test/reviews", table)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_rows(self.folder / f"{SPLITS[stage]}.csv", table)


def places_of_cells(targets: NDArray[np.int64], shares: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the places of the most confident predictions of each pair of a true and a predicted class, cell by cell.

    targets: (n,). shares: (n, classes) probabilities.
    """
    cells = targets * shares.shape[1] + shares.argmax(axis=1)
    order = np.lexsort((-shares.max(axis=1), cells))
    ranks = np.arange(len(order)) - np.searchsorted(cells[order], cells[order])
    places: NDArray[np.int64] = order[ranks < min(MOST_OF_CELL, max(1, MOST_OF_CELLS // len(np.unique(cells))))]
    return places


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
