"""Labelled texts as arrays of numbers, encoded once and kept on disk."""

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data.labels import LabelReader
from firstlight.data.options import PairOptions, ReviewOptions
from firstlight.data.sources import Source
from firstlight.errors import UserError
from firstlight.text.options import TokenizerKind
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import Tokenizer, load_word_list, train_subword_tokenizer, train_word_tokenizer

log = logging.getLogger(__name__)

VERSION = 1  # raise it whenever the same input would be encoded otherwise
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """All rows of a source, split after split, in the order in which they were read.

    ids: the tokens of every row; labels: (rows,) int; splits: (rows,) int, an index into SPLITS.
    """

    ids: RaggedIds
    labels: NDArray[np.int64]
    splits: NDArray[np.int64]
    tokenizer: Tokenizer
    label_names: list[str]

    def rows_of(self, split: str) -> NDArray[np.int64]:
        """The row numbers of a split: (n,)."""
        return np.flatnonzero(self.splits == SPLITS.index(split))


def encode(
    source: Source, options: ReviewOptions, tokenizer: Tokenizer | None = None, label_names: list[str] | None = None
) -> EncodedTexts:
    """Read, check and encode a source, or take it from the cache.

    A tokenizer and label names are given where a trained network is to read other data; else they are learned from the
    training rows. Raises UserError naming file and line.
    """
    folder = Path(options.cache_dir) / "encoded" / _cache_key(source, options, tokenizer, label_names)
    if not folder.is_dir():
        log.info("Encoding %s", source.where)
        encoded = _encode(source, options, tokenizer, label_names)
        write_folder(folder, lambda temporary: _save(encoded, temporary))
    return _load(folder)


def _encode(
    source: Source, options: ReviewOptions, tokenizer: Tokenizer | None, label_names: list[str] | None
) -> EncodedTexts:
    if tokenizer is None and "train" not in source.splits:
        raise UserError(f"{source.where} has no train split; add a file such as train.jsonl")
    texts: list[str] = []
    raw_labels: list[object] = []
    places: list[tuple[str, int]] = []
    splits: list[int] = []
    for split in source.splits:
        for line, values in source.rows(split, [options.text_column, options.label_column]):
            text = values[options.text_column]
            if not isinstance(text, str):
                raise UserError(f"{source.place(split, line)}: column {options.text_column} holds {text!r}, not a text")
            texts.append(text)
            raw_labels.append(values[options.label_column])
            places.append((split, line))
            splits.append(SPLITS.index(split))
    reader = LabelReader(options.labels, options.label_column, options.lowest_label, label_names or ())
    if label_names is None:
        reader = reader.learn(raw for raw, (split, _) in zip(raw_labels, places, strict=True) if split == "train")
    labels = np.array([reader.read(raw, source.place(*place)) for raw, place in zip(raw_labels, places, strict=True)])
    split_array = np.array(splits)
    carve_out(split_array, labels, options)
    if tokenizer is None:
        tokenizer = _train_tokenizer(
            [text for text, split in zip(texts, split_array, strict=True) if split == 0], options
        )
    return EncodedTexts(tokenizer.encode_batch(texts), labels, split_array, tokenizer, list(reader.names))


def _train_tokenizer(texts: list[str], options: ReviewOptions) -> Tokenizer:
    wanted = options.tokenizer
    if wanted.word_list is not None:
        return load_word_list(Path(wanted.word_list), punctuation=wanted.punctuation)
    if wanted.kind is TokenizerKind.subword:
        assert wanted.max_size is not None
        return train_subword_tokenizer(texts, vocab_size=wanted.max_size)
    tokenizer, _ = train_word_tokenizer(
        texts,
        min_document_frequency=wanted.min_document_frequency,
        max_size=wanted.max_size,
        punctuation=wanted.punctuation,
    )
    return tokenizer


def carve_out(splits: NDArray[np.int64], labels: NDArray[np.int64], options: ReviewOptions | PairOptions) -> None:
    """Where the source has no validation or test split, take it from the training rows, a share of every class."""
    random = np.random.default_rng(options.split_seed)
    train = splits == SPLITS.index("train")
    fractions = {"test": options.test_fraction, "validation": options.validation_fraction}
    missing = {name: fraction for name, fraction in fractions.items() if not (splits == SPLITS.index(name)).any()}
    for label in np.unique(labels[train]):
        members = random.permutation(np.flatnonzero(train & (labels == label)))
        taken = 0
        for name, fraction in missing.items():
            count = round(len(members) * fraction)
            splits[members[taken : taken + count]] = SPLITS.index(name)
            taken += count


def _cache_key(
    source: Source, options: ReviewOptions, tokenizer: Tokenizer | None, label_names: list[str] | None
) -> str:
    """A name for everything that the encoding depends on."""
    word_list = options.tokenizer.word_list
    depends_on = {
        "version": VERSION,
        "source": source.fingerprint,
        "columns": [options.text_column, options.label_column],
        "labels": ["classes" if options.labels.value == "classes" else "stars", options.lowest_label, label_names],
        "split": [options.validation_fraction, options.test_fraction, options.split_seed],
        "tokenizer": asdict(options.tokenizer) | {"kind": options.tokenizer.kind.value},
        "word_list": _digest(Path(word_list)) if word_list and Path(word_list).is_file() else None,
        "given": tokenizer.to_json() if tokenizer is not None else None,
    }
    return key_of(depends_on)


def key_of(depends_on: dict[str, Any]) -> str:
    """A short name for what something depends on, in plain types: another one for whatever differs."""
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:24]


def drawn(rows: NDArray[np.int64], most: int | None, seed: int) -> NDArray[np.int64]:
    """At most so many of the rows, drawn at random, in their order; all of them where most is None. (n,)."""
    if most is None:
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))
    return np.sort(rows[order[:most]])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _save(encoded: EncodedTexts, folder: Path) -> None:
    np.save(folder / "ids.npy", encoded.ids.ids)
    np.save(folder / "offsets.npy", encoded.ids.offsets)
    np.save(folder / "labels.npy", encoded.labels)
    np.save(folder / "splits.npy", encoded.splits)
    (folder / "tokenizer.json").write_text(encoded.tokenizer.to_json(), encoding="utf-8")
    (folder / "labels.json").write_text(json.dumps(encoded.label_names), encoding="utf-8")


def _load(folder: Path) -> EncodedTexts:
    """The ids stay on disk and are read where they are needed; a private mapping, so that torch may take them."""
    return EncodedTexts(
        RaggedIds(np.load(folder / "ids.npy", mmap_mode="c"), np.load(folder / "offsets.npy")),
        np.load(folder / "labels.npy"),
        np.load(folder / "splits.npy"),
        Tokenizer.from_json((folder / "tokenizer.json").read_text(encoding="utf-8")),
        json.loads((folder / "labels.json").read_text(encoding="utf-8")),
    )


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a temporary folder and rename it; where another process was faster, keep what it wrote."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".writing-"))
    try:
        write(temporary)
        temporary.chmod(0o755)
        os.rename(temporary, folder)  # noqa: PTH104  (Path.rename hides that the target may exist)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
