"""A table of test reviews with their labels, predictions and probabilities."""

from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer

from firstlight.callbacks.evaluation import EvaluationCallback
from firstlight.callbacks.publish import data_of, publish_table
from firstlight.data.labels import STARS
from firstlight.files.row_writer import write_rows

LONGEST_TEXT = 2000  # the largest number of characters that are shown


class ReviewTable(EvaluationCallback):
    """Log the first texts of the test split with their labels and predictions, as the table `test/reviews`.

    The same rows are written to `test.csv`: the text, its stars or label, the predicted class and the probability of
    every class. With several processes, the table has the texts that the first process evaluated. It requires a
    `ReviewData`.

    Args:
        folder: The folder of `test.csv`.
        num_reviews: The number of texts.

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
        '"text","stars","prediction","p(negative)","p(positive)"'
    """

    def __init__(self, folder: str, num_reviews: int = 50) -> None:
        self.folder, self.num_reviews = Path(folder), num_reviews
        self._wanted: set[int] = set()
        self._judged: dict[int, list[float]] = {}  # row -> probabilities

    def begin_evaluation(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        is_shown = stage == "test" and trainer.is_global_zero
        self._wanted = set(data_of(trainer, self).rows("test")[: self.num_reviews].tolist()) if is_shown else set()
        self._judged = {}

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        if self._wanted:
            judged = zip(batch.rows.tolist(), outputs["probabilities"].tolist(), strict=True)
            self._judged |= {row: shares for row, shares in judged if row in self._wanted}

    def end_evaluation(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if not self._judged:
            return
        data = data_of(trainer, self)
        names, texts = data.class_names, data.texts("test", self.num_reviews)
        given = "stars" if tuple(data.encoded.label_names) == STARS else "label"
        rows = [
            {
                "text": text[:LONGEST_TEXT],
                given: data.encoded.label_names[data.encoded.labels[row]],
                "prediction": names[max(range(len(names)), key=self._judged[row].__getitem__)],
            }
            | {f"p({name})": p for name, p in zip(names, self._judged[row], strict=True)}
            for row, text in zip(sorted(self._wanted), texts, strict=True)
            if row in self._judged
        ]
        publish_table(trainer, "test/reviews", rows)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_rows(self.folder / "test.csv", rows)
