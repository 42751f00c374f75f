"""Pairs of sentences as arrays of ids, which are encoded once and stored on disk."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstlight.data import cache, overlaps
from firstlight.data.encoding import SPLITS, carve_out, drawn, key_of, rows_of_columns
from firstlight.data.options import PairOptions
from firstlight.data.sources import Source
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.sentence_tokenizers import SentenceTokenizer, tidy

VERSION = 2  # increase it when the encoding changes, so that the cache is not reused
SIDES = ("source", "target")


class PairTokenizers(NamedTuple):
    """The tokenizers of the source and of the target, which are the same object if the vocabulary is shared."""

    source: SentenceTokenizer
    target: SentenceTokenizer


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """All pairs of a source, split after split, in the order in which they were read.

    source, target: the ids of both sides without marks; splits: (pairs,) int, an index into SPLITS; places: (pairs, 2)
    int, the split of the file of each pair, and its line; overlaps: a sentence on pairs that are in several splits, or
    "".
    """

    source: RaggedIds
    target: RaggedIds
    splits: NDArray[np.int64]
    places: NDArray[np.int64]
    tokenizers: PairTokenizers
    overlaps: str

    def rows_of(self, split: str) -> NDArray[np.int64]:
        """Return the row numbers of a split, (n,)."""
        return np.flatnonzero(self.splits == SPLITS.index(split))


def encode_pairs(source: Source, options: PairOptions, tokenizers: PairTokenizers | None = None) -> EncodedPairs:
    """Return the encoded pairs of a source, which is read and checked, or opened from the cache.

    tokenizers: those of a trained network that reads this data; None learns them from the training pairs. Raises
    UserError with file and line.
    """
    folder = Path(options.cache_dir) / "encoded" / _cache_key(source, options, tokenizers)
    cache.provide(folder, lambda new: _save(_encode(source, options, tokenizers), new), f"Encoding {source.where}")
    return _load(folder)


def _encode(source: Source, options: PairOptions, tokenizers: PairTokenizers | None) -> EncodedPairs:
    if tokenizers is None and "train" not in source.splits:
        raise UserError(f"{source.where} has no train split; add a file such as train.jsonl")
    columns = (options.source_column, options.target_column)
    texts: tuple[list[str], list[str]] = ([], [])
    places: list[tuple[int, int]] = []
    for split in source.splits:
        for line, values in rows_of_columns(source, split, options, ["source_column", "target_column"]):
            for column, side in zip(columns, texts, strict=True):
                side.append(_checked(values[column], column, source, split, line))
            places.append((SPLITS.index(split), line))
    splits = np.array([split for split, _ in places])
    carve_out(splits, np.zeros_like(splits), options)
    sentence = overlaps.found(zip(*texts, strict=True), splits, remove=options.deduplicate)
    if tokenizers is None:
        rows = drawn(np.flatnonzero(splits == 0), options.max_train_rows, options.split_seed)
        training = [[side[row] for row in rows] for side in texts]
        if options.shared_vocabulary:
            shared = SentenceTokenizer.train(training[0] + training[1], options.tokenizer)
            tokenizers = PairTokenizers(shared, shared)
        else:
            tokenizers = PairTokenizers(*(SentenceTokenizer.train(side, options.tokenizer) for side in training))
    source_ids, target_ids = tokenizers.source.encode_batch(texts[0]), tokenizers.target.encode_batch(texts[1])
    return EncodedPairs(source_ids, target_ids, splits, np.array(places), tokenizers, sentence)


def _checked(text: object, column: str, source: Source, split: str, line: int) -> str:
    """Return the text of one side without extra spaces. Raises UserError if it is empty or not a text."""
    if not isinstance(text, str):
        raise UserError(f"{source.place(split, line)}: column {column} holds {text!r}, not a text")
    if not (text := tidy(text)):
        raise UserError(f"{source.place(split, line)}: column {column} is empty; fill it in, or remove the pair")
    return text


def _cache_key(source: Source, options: PairOptions, tokenizers: PairTokenizers | None) -> str:
    """Return a name that depends on everything that changes the encoding."""
    depends_on = {
        "version": VERSION,
        "source": source.fingerprint,
        "columns": [options.source_column, options.target_column],
        "split": [options.validation_fraction, options.test_fraction, options.split_seed],
        "tokenizer": asdict(options.tokenizer) | {"kind": options.tokenizer.kind.value},
        "shared": options.shared_vocabulary,
        "rows": [options.deduplicate, options.max_train_rows],
        "given": [tokenizer.to_json() for tokenizer in tokenizers] if tokenizers is not None else None,
    }
    return "pairs-" + key_of(depends_on)


def _save(encoded: EncodedPairs, folder: Path) -> None:
    for side, ids, tokenizer in zip(SIDES, (encoded.source, encoded.target), encoded.tokenizers, strict=True):
        cache.save_array(folder / f"{side}_ids.npy", ids.ids)
        cache.save_array(folder / f"{side}_offsets.npy", ids.offsets)
        (folder / f"{side}_tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    cache.save_array(folder / "splits.npy", encoded.splits)
    cache.save_array(folder / "places.npy", encoded.places)
    (folder / "overlaps.txt").write_text(encoded.overlaps, encoding="utf-8")


def _load(folder: Path) -> EncodedPairs:
    """Open encoded pairs. The ids stay on disk in a private mapping, which torch may write to."""
    source, target = (
        RaggedIds(np.load(folder / f"{side}_ids.npy", mmap_mode="c"), np.load(folder / f"{side}_offsets.npy"))
        for side in SIDES
    )
    texts = [(folder / f"{side}_tokenizer.json").read_text(encoding="utf-8") for side in SIDES]
    splits, places = np.load(folder / "splits.npy"), np.load(folder / "places.npy")
    sentence = (folder / "overlaps.txt").read_text(encoding="utf-8")
    return EncodedPairs(source, target, splits, places, tokenizers_of(*texts), sentence)


def tokenizers_of(source: str, target: str) -> PairTokenizers:
    """Return the tokenizers from their JSON. The same JSON gives one object for both."""
    reader = SentenceTokenizer.from_json(source)
    return PairTokenizers(reader, reader if source == target else SentenceTokenizer.from_json(target))
