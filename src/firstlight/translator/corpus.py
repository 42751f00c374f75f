"""Sentences and their translations: their sources, rows with two columns or two text files, and their encoding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstlight.data import store
from firstlight.data.encoding import carve_out, drawn, rows_of_columns
from firstlight.data.options import SourceKind
from firstlight.data.sources import Source, find_source, hash_of, is_text_pair, language_file, local_folder
from firstlight.errors import UserError
from firstlight.files.lines import read_lines
from firstlight.files.rows import READERS, SPLITS, Layout, Row
from firstlight.text.ragged import RaggedIds
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import SentenceTokenizer, tidy
from firstlight.translator.options import PairOptions

SAMPLE = "pairs"


@dataclass(frozen=True)
class ParallelFiles(Source):
    """Source of pairs from text files such as train.en and train.de, whose lines correspond.

    files: the files of the source language by split; endings: the extensions of both languages, which are also the
    names of the columns.
    """

    endings: tuple[str, str] = field(default=("en", "de"))

    def rows(self, split: str, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the pairs of lines of a split. Raises UserError if one file has more lines."""
        first, second = (language_file(_stem(self.files[split], self.endings[0]), ending) for ending in self.endings)
        line = 0
        for ours, theirs in zip_longest(*(read_lines(path, self.layout.encoding) for path in (first, second))):
            if ours is None or theirs is None:
                more, less = (second, first) if ours is None else (first, second)
                raise UserError(f"{more}:{line + 1}: {less} has only {line} lines; each line requires a translation")
            line = ours[0]
            values = {ending: text for ending, (_, text) in zip(self.endings, (ours, theirs), strict=True)}
            yield Row(line, {column: values[column] for column in columns})


def find_pairs(options: PairOptions, *, only_split: str = "train") -> Source:
    """Return the source that the options name. Raises UserError.

    only_split: the split of a single file or of a single pair of files.
    """
    endings = (options.source_column, options.target_column)
    where = None  # the path of the text files
    if options.source in (SourceKind.auto, SourceKind.local):
        where = Path(options.path) if options.path is not None else local_folder(options.name)
    files = {} if where is None else _text_files(where, endings, only_split)
    if not files:
        return find_source(options, sample=SAMPLE, only_split=only_split)
    stems = {split: _stem(path, endings[0]) for split, path in files.items()}
    both = {f"{split} {ending}": language_file(stem, ending) for split, stem in stems.items() for ending in endings}
    layout = Layout(encoding=options.encoding)
    return ParallelFiles(SourceKind.local, str(where), hash_of(both), files, layout, endings=endings)


def _text_files(where: Path, endings: tuple[str, str], only_split: str) -> dict[str, Path]:
    """Return the files of the source language by split, or {} if there are no pairs of text files.

    Raises UserError if a split lacks one language or has two pairs of files.
    """
    if not where.is_dir():
        return {only_split: language_file(where, endings[0])} if is_text_pair(where, endings) else {}
    stems = {_stem(path, ending) for ending in endings for path in where.glob(f"*.{ending}") if path.is_file()}
    found: dict[str, Path] = {}
    for stem in sorted(stem for stem in stems if stem.name.lower() in SPLITS):
        split, sides = SPLITS[stem.name.lower()], [language_file(stem, ending) for ending in endings]
        there = [side for side in sides if side.is_file()]
        if len(there) == 1:
            [missing] = set(sides) - set(there)
            raise UserError(f"{there[0]} has no {missing} next to it; add it, or remove the file")
        if split in found:
            raise UserError(f"{where}: {found[split].name} and {sides[0].name} are both the {split} split; remove one")
        found[split] = sides[0]
    others = [path.name for path in sorted(where.iterdir()) if path.stem in SPLITS and path.suffix.lower() in READERS]
    if found and others:
        raise UserError(f"{where} has {next(iter(found.values())).name} and {others[0]}; keep one kind of files")
    return {split: found[split] for split in dict.fromkeys(SPLITS.values()) if split in found}


def _stem(path: Path, ending: str) -> Path:
    """Return a path without its extension, the inverse of `language_file`. It may have a dot: train.tok.en."""
    return path.with_name(path.name.removesuffix(f".{ending}"))


VERSION = 3  # increase it when the encoding changes, so that the cache is not reused
SIDES = ("source", "target")


class PairTokenizers(NamedTuple):
    """The tokenizers of the source and of the target, which are the same object if the vocabulary is shared."""

    source: SentenceTokenizer
    target: SentenceTokenizer


@dataclass(frozen=True, eq=False)
class EncodedPairs(store.Encoded):
    """All pairs of a source, split after split, in the order in which they were read.

    source, target: the ids of both sides without marks; places: (pairs, 2) int, the split of the file of each pair, and
    its line.
    """

    source: RaggedIds
    target: RaggedIds
    places: NDArray[np.int64]
    tokenizers: PairTokenizers


def encode_pairs(source: Source, options: PairOptions, tokenizers: PairTokenizers | None = None) -> EncodedPairs:
    """Return the encoded pairs of a source, which is read and checked, or opened from the cache.

    tokenizers: those of a trained network that reads this data; None learns them from the training pairs. Raises
    UserError with file and line.
    """
    columns = [VERSION, options.source_column, options.target_column, options.shared_vocabulary]
    facts, arrays, _ = store.stored(
        options, source, tokenizers or (), lambda _: _encode(source, options, tokenizers), pairs=columns
    )
    ids = {side: RaggedIds(arrays[f"{side}_ids"], arrays[f"{side}_offsets"]) for side in SIDES}
    found = tokenizers_of(*facts["tokenizers"])
    return EncodedPairs(arrays["splits"], facts["overlaps"], **ids, places=arrays["places"], tokenizers=found)


def _encode(
    source: Source, options: PairOptions, tokenizers: PairTokenizers | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and the arrays of the encoded pairs."""
    if tokenizers is None and "train" not in source.splits:
        raise UserError(f"{source.where} has no train split; add a file such as train.jsonl")
    columns = (options.source_column, options.target_column)
    texts: tuple[list[str], list[str]] = ([], [])
    places: list[tuple[int, int]] = []
    for split in source.splits:
        for line, values in rows_of_columns(source, split, options, ["source_column", "target_column"], columns):
            for column, side in zip(columns, texts, strict=True):
                side.append(_checked(values[column], column, source, split, line))
            places.append((store.SPLITS.index(split), line))
    splits = np.array([split for split, _ in places])
    carve_out(splits, np.zeros_like(splits), options)
    sentence = store.overlaps(map(store.number_of, zip(*texts, strict=True)), splits, remove=options.deduplicate)
    if tokenizers is None:
        rows = drawn(np.flatnonzero(splits == 0), options.max_train_rows, options.split_seed)
        training = [[side[row] for row in rows] for side in texts]
        if options.shared_vocabulary:
            shared = SentenceTokenizer.train(training[0] + training[1], options.tokenizer)
            tokenizers = PairTokenizers(shared, shared)
        else:
            tokenizers = PairTokenizers(*(SentenceTokenizer.train(side, options.tokenizer) for side in training))
    arrays = {"splits": splits, "places": np.array(places)}
    for name, tokenizer, sentences in zip(SIDES, tokenizers, texts, strict=True):
        ids = tokenizer.encode_batch(sentences)
        arrays |= {f"{name}_ids": ids.ids, f"{name}_offsets": ids.offsets}
    return {"overlaps": sentence, "tokenizers": [tokenizer.to_json() for tokenizer in tokenizers]}, arrays


def _checked(text: str, column: str, source: Source, split: str, line: int) -> str:
    """Return the text of one side without extra spaces. Raises UserError if it is empty."""
    if not (text := tidy(text)):
        raise UserError(f"{source.place(split, line)}: column {column} is empty; fill it in, or remove the pair")
    return text


def tokenizers_of(source: str, target: str) -> PairTokenizers:
    """Return the tokenizers from their JSON. The same JSON gives one object for both."""
    readers: dict[str, Any] = {text: tokenizer_of_json(text) for text in (source, target)}
    return PairTokenizers(readers[source], readers[target])
