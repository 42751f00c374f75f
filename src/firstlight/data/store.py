"""Encoded rows of all data, which are encoded once and stored on disk."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data import cache
from firstlight.data.options import DataOptions
from firstlight.data.sources import hash_of

SPLITS = ("train", "validation", "test")
FACTS = "facts.json"


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


def stored(options: DataOptions, source: Any, given: Any, fill: Callable[[Path], object], **depends_on: Any) -> Path:
    """Return the folder of the cache with encoded data. `fill` writes it unless the cache has it.

    given: the tokenizers of a trained network, or None; depends_on: all that changes the encoding besides them, the
    source, the tokenizer's options, and the options that choose the rows of the splits.
    """
    word_list = options.tokenizer.word_list and Path(options.tokenizer.word_list)
    depends_on |= {
        "source": source.fingerprint,
        "split": [options.validation_fraction, options.test_fraction, options.split_seed],
        "rows": [options.deduplicate, options.max_train_rows],
        "tokenizer": asdict(options.tokenizer) | {"kind": options.tokenizer.kind.value},
        "word_list": hash_of({"": word_list}) if word_list and word_list.is_file() else None,
        "given": [tokenizer and tokenizer.to_json() for tokenizer in given],
    }
    folder = Path(options.cache_dir) / "encoded" / key_of(depends_on)
    cache.provide(folder, fill, f"Encoding {source.where}")
    return folder


def key_of(depends_on: dict[str, Any]) -> str:
    """Return a short hash of values in plain types."""
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:24]


def write(folder: Path, facts: dict[str, Any], **arrays: NDArray[Any]) -> None:
    """Write arrays and facts in plain types."""
    for name, array in arrays.items():
        cache.save_array(folder / f"{name}.npy", array)
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts and the arrays. Those of ids stay on disk in a private mapping, which torch may write to."""
    arrays: dict[str, Any] = {
        path.stem: np.load(path, mmap_mode="c" if path.stem.endswith("ids") else None) for path in folder.glob("*.npy")
    }
    return json.loads((folder / FACTS).read_text(encoding="utf-8")), arrays
