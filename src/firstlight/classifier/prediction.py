"""Predictions of a classifier for some texts, without a data module and without Lightning."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from firstlight.data.tables import ReviewBatch
from firstlight.data.target_encoding import NgramTargetEncoding
from firstlight.errors import UserError
from firstlight.lit.metadata import TRAIN_AGAIN


class Prediction(NamedTuple):
    """The prediction of a classifier for one text.

    Attributes:
        label: The name of the most probable class. For multiple choice, this is the column of an answer.
        probabilities: The probability of every class by its name, in the order of the classes.

    Example:
        >>> from firstlight.lit import Prediction
        >>> prediction = Prediction("positive", {"negative": 0.25, "positive": 0.75})
        >>> prediction.probabilities[prediction.label]
        0.75
    """

    label: str
    probabilities: dict[str, float]


def target_encoding_of(metadata: dict[str, Any], vocab_size: int, place: object) -> NgramTargetEncoding | None:
    """Return the target encoding in the metadata of a network, or None if it has none.

    place: the checkpoint. Raises UserError if the tables do not fit the vocabulary and the classes.
    """
    if "target_encoding" not in metadata:
        return None
    try:
        return NgramTargetEncoding.from_table(metadata["target_encoding"], vocab_size, len(metadata["class_names"]))
    except ValueError as error:
        problem = f"the target encoding in the checkpoint's metadata is broken ({error})"
        raise UserError(f"{place}: {problem}; {TRAIN_AGAIN}") from error


def outputs_of_texts(network: nn.Module, batch: ReviewBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Return the outputs of a network, (texts, outputs), the targets and the rows, (texts,), of the texts of a batch.

    The outputs of a text are the means of those of its windows, of which the network reads as many at a time as there
    are texts.
    """
    counts = batch.num_windows
    if not len(counts):
        return network(*batch.inputs), batch.targets, batch.rows
    parts = zip(*(each.split(len(counts)) for each in batch.inputs), strict=True)
    windows = torch.cat([network(*part) for part in parts]).split(counts.tolist())
    firsts = counts.cumsum(0) - counts
    return torch.stack([each.mean(dim=0) for each in windows]), batch.targets[firsts], batch.rows[firsts]


@torch.inference_mode()
def logits_of(network: nn.Module, batches: Iterable[ReviewBatch]) -> Tensor:
    """Return the outputs of a network for the rows of some batches, ordered by the rows: (rows, outputs)."""
    found = [outputs_of_texts(network, batch) for batch in batches]
    logits, _, rows = (torch.cat(parts) for parts in zip(*found, strict=True))
    return logits[rows.argsort()]
