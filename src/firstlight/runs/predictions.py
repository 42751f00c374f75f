"""The file `predictions/<split>.npz` of a run: what it predicted for each text. It has no pickles and is small."""

import hashlib
import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.files.atomic import write_atomically
from firstlight.files.regular import regular


@dataclass(frozen=True, eq=False)
class Predictions:
    """Losses and hits of a run on the units of a split: texts, sentence pairs, or pieces of a long text.

    rows: (units,) the number of each unit in its data, ascending. losses: (units,) the summed loss in nats. tokens:
    (units,) the number of predictions in each unit, which is 1 for a classifier. correct: (units,) the number of right
    predictions. targets, predicted: (units,) the classes of a classifier; None for other kinds. groups: (units,) the
    names of `data.group_column`; None without it. key: a hash of the units and their targets; only predictions with
    equal keys can be paired.
    """

    rows: NDArray[np.int64]
    losses: NDArray[np.float32]
    tokens: NDArray[np.int64]
    correct: NDArray[np.int64]
    key: str
    targets: NDArray[np.int64] | None = None
    predicted: NDArray[np.int64] | None = None
    groups: NDArray[np.str_] | None = None

    @property
    def is_of_classes(self) -> bool:
        """Whether each unit is one text with one class."""
        return self.predicted is not None

    @property
    def auc(self) -> float | None:
        """The area under the ROC curve of the second of two classes; None if a class has no text."""
        assert self.targets is not None
        is_second = self.targets == 1
        scores = np.where(is_second, np.exp(-self.losses), -np.expm1(-self.losses))  # the probabilities of the second
        first, second = np.sort(scores[~is_second]), scores[is_second]
        if not len(first) or not len(second):
            return None
        below, not_above = (np.searchsorted(first, second, side) for side in ("left", "right"))
        return float((below + not_above).mean() / (2 * len(first)))

    def values(self, metric: str) -> NDArray[np.float64] | None:
        """Return the mean of each unit, (units,), whose mean weighted by tokens is the metric; None for other metrics.

        A perplexity and bits per character are functions of the loss, whose values they return.
        """
        name = metric.rpartition("/")[2]
        if name in ("loss", "perplexity", "bits_per_character"):
            return self.losses / self.tokens.astype(np.float64)
        if name == "accuracy":
            return self.correct / self.tokens.astype(np.float64)
        if name == "mean_absolute_error" and self.predicted is not None and self.targets is not None:
            return np.abs(self.predicted - self.targets).astype(np.float64)
        return None


FOLDER = "predictions"  # in a run's folder
PLACES = (f"{FOLDER}/{{}}.npz", "evaluate/{}/predictions.npz")  # by the split: of a training, of `evaluate --split`
MOST_BYTES = 2**28  # of the arrays of a file
DAMAGES = (  # what zipfile and NumPy raise for files that are not such archives
    *(OSError, ValueError, KeyError, TypeError, EOFError, SyntaxError, OverflowError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
COUNTS = ("rows", "tokens", "correct", "targets", "predicted")


class UnreadablePredictions(Exception):  # noqa: N818 (the file is damaged; the report does not fail)
    """A file of predictions is damaged. The message names the file and the damage."""


def key_of(rows: NDArray[np.int64], tokens: NDArray[np.int64], checksums: NDArray[np.int64]) -> str:
    """Return a hash of the units of a split. checksums: (units,) the targets of each unit, or their sums."""
    digest = hashlib.sha256()
    for numbers in (rows, tokens, checksums):
        digest.update(np.ascontiguousarray(numbers, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def write_predictions(path: Path, predictions: Predictions) -> None:
    """Write a file of predictions, completely or not at all. The losses are rounded to 11 bits."""
    arrays: dict[str, NDArray[np.generic]] = {"losses": _rounded(predictions.losses), "key": np.array(predictions.key)}
    for name in COUNTS:
        numbers = getattr(predictions, name)
        if numbers is not None:
            arrays[name] = numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
    if predictions.groups is not None:
        arrays["groups"] = predictions.groups
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]  # numpy declares its option allow_pickle first
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, content.getvalue())


def _rounded(losses: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the losses with 11 significant bits, an error of at most 0.05 %, which compress to half of the size."""
    mantissa, exponent = np.frexp(losses)
    return np.ldexp(np.round(mantissa * 2048) / 2048, exponent).astype(np.float32)


def read_predictions(path: Path) -> Predictions | None:
    """Return the predictions of a file; None if it does not exist. Raises UnreadablePredictions if it is damaged."""
    where = f"{path.parent.name}/{path.name}"
    try:
        content = io.BytesIO(regular(path).read_bytes())
        with zipfile.ZipFile(content) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                raise UnreadablePredictions(f"{where} is larger than {MOST_BYTES:,} bytes")
        with np.load(content, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
            return _checked(found)
    except FileNotFoundError:
        return None
    except DAMAGES as error:
        raise UnreadablePredictions(f"{where} cannot be read ({' '.join(str(error).split())})") from error


def _checked(arrays: dict[str, NDArray[np.generic]]) -> Predictions:
    """Return the predictions of arrays. Raises KeyError or ValueError if one is missing or has another size or type."""
    counts = {name: arrays[name] for name in COUNTS if name in arrays}
    losses = arrays["losses"]
    groups = arrays["groups"].astype(str) if "groups" in arrays else None
    sizes = {array.shape for array in (losses, *counts.values(), *([] if groups is None else [groups]))}
    is_numbers = losses.dtype.kind == "f" and all(array.dtype.kind in "iu" for array in counts.values())
    if len(sizes) != 1 or losses.ndim != 1 or not len(losses) or not is_numbers:
        raise ValueError("its arrays are not lists of numbers of one length")
    tokens = counts["tokens"]
    if not np.isfinite(losses).all() or (tokens < 1).any() or (counts["correct"] > tokens).any():  # type: ignore[operator]
        raise ValueError("its numbers are impossible")
    whole: dict[str, Any] = {name: array.astype(np.int64) for name, array in counts.items()}
    return Predictions(losses=losses.astype(np.float32), key=str(arrays["key"]), groups=groups, **whole)
