"""Encoded rows of all data, which are encoded once and stored on disk."""

import hashlib
import json
import logging
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data import cache
from firstlight.data.options import DataOptions
from firstlight.data.row_options import FoldRows, refuse_unknown_groups
from firstlight.errors import UserError
from firstlight.text.tokenizers import Text

log = logging.getLogger(__name__)

SPLITS = ("train", "validation", "test")
NAMES = ("training", "validation", "test")  # of the splits, in messages
FACTS = "facts.json"
IDS_FILE = "ids.bin"  # written in parts, of which only one is in memory


@dataclass(frozen=True, eq=False)
class Encoded:
    """Encoded rows of a source, or documents of a text.

    splits: (rows,) int, an index into SPLITS; overlaps: a sentence on rows that are in several splits, or "".
    """

    splits: NDArray[np.int64]
    overlaps: str

    def rows_of(self, split: str) -> NDArray[np.int64]:
        """Return the row numbers of a split, (n,)."""
        return np.flatnonzero(self.splits == SPLITS.index(split))


def stored(
    options: DataOptions,
    source: Any,
    given: Any,
    encode: Callable[[Path], tuple[dict[str, Any], dict[str, NDArray[Any]]]],
    **depends_on: Any,
) -> tuple[dict[str, Any], dict[str, Any], Path]:
    """Return the facts and the arrays of encoded data, and their folder in the cache.

    The arrays of ids stay on disk in a private mapping, which torch may write to.

    given: the tokenizers of a trained network, or None; encode: returns the facts, in plain types, and the arrays. It
    may write other files into the folder that it gets. It is called unless the cache has the data; depends_on: all that
    changes the encoding besides the tokenizers, the source, the tokenizer's options, and the options that choose the
    rows of the splits.
    """
    if options.folds is not None:
        depends_on["folds"] = [options.folds, options.fold, options.fold_rows.value, options.fold_seed]
        of_groups = [getattr(options, name, None) for name in ("group_column", "fold_group")]
        depends_on["folds"] += of_groups if any(of_groups) else []
    depends_on |= {
        "source": [source.fingerprint, *source.layout],
        "split": [options.validation_fraction, options.test_fraction, options.split_seed],
        "rows": [options.deduplicate, options.max_train_rows],
        "tokenizer": asdict(options.tokenizer) | {"kind": options.tokenizer.kind.value},
        "given": [tokenizer and tokenizer.to_json() for tokenizer in given],
    }

    def fill(new: Path) -> None:
        facts, arrays = encode(new)
        for name, array in arrays.items():
            cache.save_array(new / f"{name}.npy", array)
        (new / FACTS).write_text(json.dumps(facts), encoding="utf-8")

    folder = Path(options.cache_dir) / "encoded" / key_of(depends_on)
    cache.provide(folder, fill, f"Encoding {source.where}")
    modes: dict[Path, Any] = {path: "c" if path.stem.endswith("ids") else None for path in folder.glob("*.npy")}
    arrays = {path.stem: np.load(path, mmap_mode=mode) for path, mode in modes.items()}
    return json.loads((folder / FACTS).read_text(encoding="utf-8")), arrays, folder


def open_ids(folder: Path, kind: type[np.integer]) -> NDArray[np.integer]:
    """Return the token ids of a folder that `stored` returned, (tokens,). They are read from the disk when needed."""
    file = folder / IDS_FILE
    return np.memmap(file, kind, mode="c") if file.stat().st_size else np.empty(0, kind)


def folds_of(labels: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the number of the fold of each row, (rows,). Each fold has the same share of every class.

    labels: (rows,) the class of each row. Only the equality of classes matters, not their numbers.
    """
    random = np.random.default_rng(seed)
    _, first, classes = np.unique(labels, return_index=True, return_inverse=True)
    order = [random.permutation(np.flatnonzero(classes == each)) for each in np.argsort(first)]
    found = np.empty(len(labels), np.int64)
    found[np.concatenate(order)] = np.arange(len(labels)) % folds
    return found


def folds_of_groups(labels: NDArray[np.int64], groups: NDArray[Any], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the number of the fold of each row, (rows,). The rows of a group are in the same fold.

    The folds have similar shares of every class and similar sizes, as far as the groups allow it. labels, groups:
    (rows,) the class and the group of each row. Raises UserError if there are fewer groups than folds.
    """
    if (count := len(np.unique(groups))) < folds:
        raise UserError(f"data.folds={folds} must be at most the number of groups of data.group_column, {count}")
    from sklearn.model_selection import StratifiedGroupKFold  # takes half a second

    found = np.empty(len(labels), np.int64)
    if np.unique(labels, return_counts=True)[1].max() < folds:
        labels = np.zeros_like(labels)  # the classes are too small to be divided
    divided = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for fold, (_, rows) in enumerate(divided.split(labels, labels, groups)):
        found[rows] = fold
    sizes = np.bincount(found, minlength=folds)
    if sizes.min() == 0:
        raise UserError(f"data.folds={folds}: the {count} groups are too unequal for so many folds; lower it")
    if sizes.max() > 2 * sizes.min():
        log.warning("The folds have %s to %s rows, because no group is divided", f"{sizes.min():,}", f"{sizes.max():,}")
    return found


def take_fold(
    splits: NDArray[np.int64], labels: NDArray[np.int64], options: DataOptions, groups: NDArray[Any] | None = None
) -> None:
    """Make one fold the test split, in place. Raises UserError if there are fewer rows or groups than folds.

    splits: (rows,) indices into SPLITS; labels: (rows,) the class of each row. groups: (rows,) the names of the groups
    that are not divided, or of which only `options.fold_group` is; None without groups.
    """
    assert options.folds is not None
    train, test = SPLITS.index("train"), SPLITS.index("test")
    if options.fold_rows is FoldRows.all:
        splits[:] = train
    splits[splits == test] = -1  # in no split
    rows = np.flatnonzero(splits == train)
    if groups is not None and (divided := getattr(options, "fold_group", None)):
        refuse_unknown_groups("fold_group", [divided], groups[rows])
        rows, groups = rows[groups[rows] == divided], None
    if len(rows) < options.folds:
        raise UserError(f"data.folds={options.folds} must be at most the number of rows, {len(rows)}")
    if groups is None:
        found = folds_of(labels[rows], options.folds, options.fold_seed)
    else:
        found = folds_of_groups(labels[rows], groups[rows], options.folds, options.fold_seed)
    splits[rows[found == options.fold]] = test


def key_of(depends_on: dict[str, Any]) -> str:
    """Return a short hash of values in plain types."""
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:24]


def overlaps(rows: Iterable[int], splits: NDArray[np.int64], *, remove: bool) -> str:
    """Return a sentence with the number of rows in several splits and what to do, or "" if there are none.

    Rows are the same if they differ only in case, spaces or Unicode form, whatever their labels.

    rows: their numbers, as `number_of` returns them; splits: (rows,), indices into SPLITS; remove: remove
    the validation rows that are also test rows and the training rows that are also in one of both, in place. The test
    split never changes, and rows that occur several times in one split are kept. Raises UserError if no training row is
    left.
    """
    numbers = np.fromiter(rows, dtype=np.int64)
    parts, has_training = [], (splits == 0).any()
    for split, other in ((2, 1), (2, 0), (1, 0)):
        is_both = (splits == other) & np.isin(numbers, numbers[splits == split])
        if remove:
            splits[is_both] = -1  # in no split
        elif is_both.any():
            own = numbers[splits == split]
            count = np.isin(own, numbers[is_both]).sum()
            parts.append(f"{count:,} of {len(own):,} {NAMES[split]} rows are also {NAMES[other]} rows")
    if has_training and not (splits == 0).any():
        raise UserError("data.deduplicate=true removes every training row; set it to false")
    return "; ".join([*parts, "set data.deduplicate=true to remove them from the earlier split"] if parts else [])


def number_of(row: Text) -> int:
    """Return a number of 64 bits, which is the same for rows that differ only in case, spaces and Unicode form."""
    return hash(normal(row))


def normal(row: Text) -> str:
    """Return a row as one text that does not depend on case, spaces and Unicode form."""
    text = row if isinstance(row, str) else "\0".join(row)
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())
