"""A trained classifier as an object, without its data set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firstlight.data.batches import EvaluationBatches, Rows
from firstlight.data.options import Truncation
from firstlight.data.tables import ReviewBatch, TokenTable
from firstlight.lit.classification import Prediction, predictions
from firstlight.lit.losses import probabilities
from firstlight.runs.chunks import TEXTS_AT_ONCE, chunks
from firstlight.runs.folder import RunFolder
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import Tokenizer

ROWS_AT_ONCE = 256


@dataclass(frozen=True, repr=False)
class LoadedClassifier:
    """A trained classifier with its vocabulary and its classes."""

    folder: RunFolder
    network: nn.Module
    config: dict[str, Any]
    data_source: str
    data_fingerprint: str
    tokenizer: Tokenizer
    class_names: list[str]
    label_names: list[str]

    def __repr__(self) -> str:
        return f"LoadedClassifier({str(self.folder.path)!r})"

    def predict(self, text: str) -> Prediction:
        """Judge one text; one longer than the context is cut as in training, one without words is judged too."""
        if not isinstance(text, str):
            raise TypeError(f"predict takes one text, not a {type(text).__name__}; predict_many takes many")
        return next(self.predict_many([text]))

    def predict_many(self, texts: Iterable[str]) -> Iterator[Prediction]:
        """Judge many texts, in their order, a few thousand at a time."""
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            yield from predictions(torch.from_numpy(self.probabilities(chunk)), self.class_names)

    def probabilities(self, texts: list[str]) -> NDArray[np.float32]:
        """The probability of every class: (texts, classes)."""
        ids = self.tokenizer.encode_batch(texts)
        return probabilities(self.logits(ids, np.arange(len(ids)))).numpy()

    def logits(self, ids: RaggedIds, rows: NDArray[np.int64]) -> Tensor:
        """The network's outputs for some rows of encoded texts: (rows, outputs)."""
        table, lookup = self._reader(ids)
        batches = list(EvaluationBatches(rows, batch_size=ROWS_AT_ONCE, lengths=lookup.lengths[rows]))
        with torch.inference_mode():
            tables = (table(lookup[chosen]) for chosen in batches)
            logits = torch.cat([self.network(batch.token_ids, batch.padding_mask) for batch in tables])
        place = np.argsort(np.concatenate(batches), kind="stable")  # back from length order, by row number
        return logits[torch.from_numpy(place)][torch.from_numpy(np.argsort(np.argsort(rows, kind="stable")))]

    def batch(self, ids: RaggedIds, rows: NDArray[np.int64]) -> ReviewBatch:
        """Some rows of encoded texts as the network is given them: cut as in training, padded to the longest."""
        table, lookup = self._reader(ids)
        return table(lookup[rows])

    def _reader(self, ids: RaggedIds) -> tuple[TokenTable, Rows]:
        """What cuts and pads encoded texts, and what makes its batches of row numbers."""
        context_length = self.config["context_length"]
        table = TokenTable(ids, np.zeros(len(ids), np.int64), context_length, self.truncation)
        return table, Rows(ids.lengths.clip(max=context_length))

    @property
    def truncation(self) -> Truncation:
        return Truncation[self.config["data"]["truncation"]]
