"""Sources of sentences and their translations: rows with two columns, or two text files with matching lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from firstlight.data.options import SourceKind
from firstlight.data.sources import (
    HUB_ID,
    Source,
    check_path,
    find_source,
    hash_of,
    is_text_pair,
    language_file,
    local_folder,
)
from firstlight.errors import UserError
from firstlight.files.lines import read_lines
from firstlight.files.rows import READERS, SPLITS, Layout, Row
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
    where = _local_place(options)
    files = {} if where is None else _text_files(where, endings, only_split)
    if not files:
        return find_source(options, sample=SAMPLE, only_split=only_split)
    stems = {split: _stem(path, endings[0]) for split, path in files.items()}
    both = {f"{split} {ending}": language_file(stem, ending) for split, stem in stems.items() for ending in endings}
    layout = Layout(encoding=options.encoding)
    return ParallelFiles(SourceKind.local, str(where), hash_of(both), files, layout, endings=endings)


def _local_place(options: PairOptions) -> Path | None:
    """Return the path at which to look for text files, or None if the options name another source."""
    if options.source not in (SourceKind.auto, SourceKind.local):
        return None
    return Path(options.path) if options.path is not None else local_folder(options.name)


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


def check_pair_path(options: PairOptions) -> None:
    """Raise UserError if a path is not a possible source, before anything heavy is imported."""
    endings = (options.source_column, options.target_column)
    if options.path is None or is_text_pair(Path(options.path), endings):
        return
    for ending in endings:
        stem = options.path.removesuffix(f".{ending}")
        if stem != options.path and is_text_pair(Path(stem), endings):
            raise UserError(f"data.path={options.path} is one of two files; name the common part, {stem}")
    if not Path(options.path).exists() and not HUB_ID.fullmatch(options.path):
        raise UserError(
            f"data.path={options.path}: the file or folder does not exist, nor do {options.path}."
            f"{options.source_column} and {options.path}.{options.target_column}"
        )
    check_path(options.path, options.source)
