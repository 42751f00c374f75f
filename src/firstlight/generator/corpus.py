"""A text of any length as arrays of ids, which are encoded once and stored on disk."""

import hashlib
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data import cache, store
from firstlight.data.encoding import carve_out
from firstlight.data.options import SourceKind
from firstlight.data.sources import TEXT, Source, UnreachableError, check_path, hash_of, local_source, named_source
from firstlight.data.store import SPLITS, Encoded, number_of, overlaps
from firstlight.errors import RunError, UserError
from firstlight.files.lines import read_text
from firstlight.files.rows import text_files
from firstlight.generator import plays
from firstlight.generator.options import CharacterOptions, Preparation, Split
from firstlight.text.options import TokenizerKind
from firstlight.text.ragged import RaggedIds
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.statistics import text_statistics
from firstlight.text.text_tokenizers import BytePairTokenizer, CharacterTokenizer, TextTokenizer, TextWordTokenizer

VERSION = 6  # increase it when the preparation or the encoding changes, so that the cache is not reused
CHARACTERS_AT_ONCE = 2**20

Pieces = Callable[[], Iterable[str]]  # returns the pieces of a text from its beginning, whenever it is called


@dataclass(frozen=True, eq=False)
class Corpus(Encoded):
    """An encoded text: one document for each split, or many documents if each line is one.

    ids: the tokens of every document, split after split; statistics: the number of characters, and for plays the
    others of `text_statistics`.
    """

    ids: RaggedIds
    tokenizer: TextTokenizer
    statistics: dict[str, Any]


def encode_text(source: Source, options: CharacterOptions, tokenizer: TextTokenizer | None = None) -> Corpus:
    """Return a text, prepared, split and encoded, or opened from the cache. Raises UserError.

    tokenizer: the tokenizer of a trained network that reads this text; None trains one on the training part.
    """
    is_extracted = options.preparation is Preparation.plays and source.kind is not SourceKind.sample
    version = [VERSION, plays.VERSION if is_extracted else None, options.max_train_rows and options.context_length]
    preparation = [*version, options.preparation.value, options.separator, options.split.value]

    encode = partial(_encode, source, options, tokenizer)
    facts, arrays, folder = store.stored(options, source, [tokenizer], encode, text=preparation)
    found: Any = tokenizer_of_json(facts.pop("tokenizer"))
    ids = RaggedIds(store.open_ids(folder, id_type(found.vocab_size)), arrays["offsets"])
    return Corpus(ids=ids, splits=arrays["splits"], tokenizer=found, **facts)


def _encode(
    source: Source, options: CharacterOptions, tokenizer: TextTokenizer | None, folder: Path
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Write the ids of a text to a folder, and return its facts and arrays.

    Each of several passes over the text holds only a part of it in memory.
    """
    pieces, statistics = _prepared(source, options)
    lengths = np.fromiter(map(len, pieces()), dtype=np.int64)
    if not lengths.sum():
        raise UserError(f"{source.where}: the file has no text; name another file")
    split_of_piece, cuts = _split(lengths, options)
    is_many = options.preparation is Preparation.lines
    sentence = overlaps(map(number_of, pieces()), split_of_piece, remove=options.deduplicate) if is_many else ""

    def parts(split: str) -> Iterator[str]:
        return _of_split(pieces(), split_of_piece, cuts, SPLITS.index(split))

    if tokenizer is None:
        tokenizer = _train_tokenizer(_kept(parts("train"), options), options)
    counts: list[int] = []  # the number of ids of each document
    splits: list[int] = []
    with (folder / store.IDS_FILE).open("wb") as file:
        for number, split in enumerate(SPLITS):
            written = [count for chunk in _chunks(parts(split)) for count in _write(file, chunk, tokenizer)]
            if not is_many:
                written = [sum(written)] if written else []
            counts += written
            splits += [number] * len(written)
    statistics = {"characters": int(lengths.sum())} | statistics
    facts = {"statistics": statistics, "overlaps": sentence, "tokenizer": tokenizer.to_json()}
    offsets = np.cumsum([0, *counts], dtype=np.int64)
    return facts, {"offsets": offsets, "splits": np.array(splits, dtype=np.int64)}


def _prepared(source: Source, options: CharacterOptions) -> tuple[Pieces, dict[str, Any]]:
    """Return the pieces of a text that a split does not divide, and its statistics."""
    if options.preparation is Preparation.lines:
        return lambda: _documents(source, options.separator), {}
    if options.preparation is Preparation.plays:
        text = "".join(source.lines())
        if source.kind is not SourceKind.sample:  # a sample consists of plays only
            text = plays.extract_plays(text)
        return lambda: _passages(text.splitlines(keepends=True)), text_statistics(text)
    return lambda: _passages(source.lines()), {}


def prepared_text(source: Source, options: CharacterOptions) -> str:
    """Return all of a text as it is encoded, with each document on a line."""
    pieces, _ = _prepared(source, options)
    end = "\n" if options.preparation is Preparation.lines else ""
    return "".join(piece + end for piece in pieces())


def _documents(source: Source, separator: str) -> Iterator[str]:
    """Yield the lines that are not blank, stripped."""
    for number, line in enumerate(source.lines(), start=1):
        document = line.strip()
        if separator in document:
            problem = f"the line contains the separator {separator!r}"
            raise UserError(f"{source.where}:{number}: {problem}; set data.separator")
        if document:
            yield document


def _passages(lines: Iterable[str]) -> Iterator[str]:
    """Yield each passage with the blank lines after it. A very long passage is divided."""
    passage: list[str] = []
    size = 0
    is_over = False
    for line in lines:
        is_blank = not line.strip()
        if passage and ((is_over and not is_blank) or size > CHARACTERS_AT_ONCE):
            yield "".join(passage)
            passage, size = [], 0
        passage.append(line)
        size += len(line)
        is_over = is_blank
    if passage:
        yield "".join(passage)


def _split(lengths: NDArray[np.int64], options: CharacterOptions) -> tuple[NDArray[np.int64], list[int]]:
    """Return the split of each piece as an index into SPLITS, and the cuts of a sequential split in characters."""
    total = int(lengths.sum())
    if options.preparation is not Preparation.lines and options.split is Split.sequential:
        test = round(total * options.test_fraction)
        validation = round(total * options.validation_fraction)
        return np.zeros(len(lengths), np.int64), [total - validation - test, total - test]
    weights = np.ones_like(lengths) if options.preparation is Preparation.lines else lengths
    if options.folds is not None:
        splits = np.zeros(len(lengths), np.int64)
        carve_out(splits, splits.copy(), options)
        return splits, []
    order = np.random.default_rng(options.split_seed).permutation(len(lengths))
    share = np.cumsum(weights[order]) / weights.sum()
    splits = np.zeros(len(lengths), np.int64)
    splits[order[share <= options.test_fraction + options.validation_fraction]] = SPLITS.index("validation")
    splits[order[share <= options.test_fraction]] = SPLITS.index("test")
    return splits, []


def _of_split(pieces: Iterable[str], splits: NDArray[np.int64], cuts: list[int], number: int) -> Iterator[str]:
    """Yield the pieces of one split, or, for a sequential split, the parts between two cuts."""
    if not cuts:
        yield from (piece for piece, split in zip(pieces, splits, strict=True) if split == number)
        return
    begin, end = [*pairwise([0, *cuts, sys.maxsize])][number]
    position = 0
    for piece in pieces:
        part = piece[max(begin - position, 0) : max(end - position, 0)]
        position += len(piece)
        if part:
            yield part


def _kept(parts: Iterable[str], options: CharacterOptions) -> Iterable[str]:
    """Return the parts of the training text that `max_train_rows` keeps, of which the vocabulary is made.

    A token has at least one character, so the windows have at least the characters that are returned. Without
    an unknown symbol, a vocabulary of characters is made of the complete training text.
    """
    most, is_char = options.max_train_rows, options.tokenizer.kind is TokenizerKind.char
    if most is None or (is_char and options.tokenizer.unknown_symbol is None):
        return parts
    if options.preparation is Preparation.lines:
        return islice(parts, most)
    return ["".join(islice(chain.from_iterable(parts), most * options.context_length + 1))]


def _train_tokenizer(parts: Iterable[str], options: CharacterOptions) -> TextTokenizer:
    wanted = options.tokenizer
    if wanted.kind is TokenizerKind.subword:
        assert wanted.max_size is not None
        return BytePairTokenizer.train(parts, wanted.max_size)
    if wanted.kind is TokenizerKind.word:
        return TextWordTokenizer.train(parts, wanted.max_size, wanted.min_document_frequency)
    separators = [options.separator] if options.preparation is Preparation.lines else []
    return CharacterTokenizer.train(chain(parts, separators), wanted.unknown_symbol)


def _chunks(parts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the parts in lists of about CHARACTERS_AT_ONCE characters."""
    chunk: list[str] = []
    size = 0
    for part in parts:
        chunk.append(part)
        size += len(part)
        if size >= CHARACTERS_AT_ONCE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _write(file: Any, chunk: list[str], tokenizer: TextTokenizer) -> list[int]:
    """Append the ids of some parts to a file and return the number of ids of each part."""
    encoded = tokenizer.encode_batch(chunk)
    ids = encoded.ids.astype(id_type(tokenizer.vocab_size))
    file.write(ids.tobytes())  # numpy's tofile does not report a full disk
    return encoded.lengths.tolist()


def id_type(vocab_size: int) -> type[np.uint8] | type[np.int32]:
    """Return the smallest type of ids that torch can index with."""
    return np.uint8 if vocab_size <= np.iinfo(np.uint8).max + 1 else np.int32


PATIENCE = 5.0  # seconds to wait for the next byte
AGENT = {"User-Agent": "firstlight"}
ADDRESS = r"https?://[\w.@:%-]+(/[!-~]*)?"


def find_text(options: CharacterOptions) -> Source:
    """Return the source that the options name. Raises UserError."""
    if options.path is not None:
        check_path(options.path)
        return _local(options, Path(options.path))
    sample = "names" if options.preparation is Preparation.lines else "plays"
    return named_source(options, "url", sample, partial(_local, options), lambda url: _download(url, options))


def _local(options: CharacterOptions, path: Path) -> Source:
    """Return the source of a text file, or of a folder whose .txt files are one text."""
    files = text_files(path)
    if not files:
        raise UserError(f"{path} has no .txt file; set data.path to a file, or to a folder of .txt files")
    next(read_text(files[0], options.encoding), None)  # raises UserError early if the file cannot be read
    where = path if len(files) > 1 else files[0]
    return local_source(options, where, {TEXT: where})


def _download(url: str, options: CharacterOptions) -> Source:
    """Return the file at a URL, which is downloaded once and stored in the cache."""
    folder = Path(options.cache_dir) / "downloads" / f"{options.name}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    path = folder / "text.txt"
    cache.provide(folder, lambda new: new.joinpath(path.name).write_bytes(_fetch(url)), f"Downloading {url}")
    return Source(SourceKind.hub, url, hash_of({TEXT: path}), {TEXT: path})


def _fetch(url: str) -> bytes:
    """Return the bytes at a URL. Raises UnreachableError without an answer, RunError for an incomplete one."""
    if not re.fullmatch(ADDRESS, url, re.ASCII):
        raise UserError(f"data.url={url} must be https:// or http://, a host and a path; a local file is data.path")
    try:
        request = urllib.request.Request(url, headers=AGENT)  # noqa: S310  (checked above)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            content: bytes = answer.read()
    except (urllib.error.HTTPError, HTTPException) as error:
        raise RunError(f"data.url={url} cannot be downloaded ({error}); set data.url, or data.path") from error
    except OSError as error:  # unknown host, no route, or timeout
        raise UnreachableError(str(error)) from error
    if not content:
        raise RunError(f"data.url={url} is an empty file; set data.url, or data.path")
    return content
