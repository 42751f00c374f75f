"""Texts and their labels as arrays of numbers, which are encoded once and stored on disk."""

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstlight.data import store
from firstlight.data.labels import LEFT_OUT, canonical, reader_of, reader_of_choices, targets_of
from firstlight.data.options import DataOptions, Labels, ReviewOptions, ReviewTextOptions, TextOptions
from firstlight.data.row_options import ChoiceRows, by_row, groups_of
from firstlight.data.sources import Source
from firstlight.data.store import SPLITS, Encoded, number_of, overlaps, take_fold
from firstlight.errors import UserError
from firstlight.files.rows import MissingColumnError, Row
from firstlight.text import tokenizers
from firstlight.text.options import TokenizerKind
from firstlight.text.ragged import RaggedIds
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import Text, Tokenizer

VERSION = 5  # increase it when the encoding changes, so that the cache is not reused
LARGE = 2**26  # bytes of files that are read several times and encoded by several processes
ROWS_AT_ONCE = 2**15
KEYS = ("text_column", "label_column", "choice_columns")  # options that name columns, of which some may be absent


@dataclass(frozen=True, eq=False)
class EncodedTexts(Encoded):
    """All rows of a source, split after split, in the order in which they were read.

    ids: the tokens of every row, or of every answer of every row of multiple choice; labels: (rows,) int, an index into
    label_names, or (0,) if the options have no labels; first_lines: the distinct labels of the source as text, each
    with its first line in every split; meanings: the index of each distinct label in label_names; choices: the layout
    of rows of multiple choice, else None.
    """

    ids: RaggedIds
    labels: NDArray[np.int64]
    tokenizer: Any
    label_names: list[str] = field(default_factory=list)
    first_lines: dict[str, dict[str, int]] = field(default_factory=dict)
    meanings: dict[str, int] = field(default_factory=dict)
    choices: ChoiceRows | None = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each row, (rows,), or of each answer with its context, (rows, choices)."""
        return by_row(self.ids.lengths, self.choices)

    def select(self, rows: NDArray[np.int64]) -> RaggedIds:
        """Return the tokens of some rows, (n,), or of all of their answers."""
        if self.choices is not None:
            rows = by_row(np.arange(len(self.ids)), self.choices)[rows].ravel()
        return self.ids.select(rows)


def encode(
    source: Source, options: TextOptions, tokenizer: Tokenizer | None = None, label_names: list[str] | None = None
) -> EncodedTexts:
    """Return the encoded texts of a source, which is read and checked, or opened from the cache.

    The labels are read only if the options are those of labeled texts.

    tokenizer, label_names: those of a trained network that reads this data; None learns them from the training rows.
    Raises UserError with file and line.
    """
    labeled = options if isinstance(options, ReviewOptions) else None
    depends_on = {
        "columns": [VERSION, options.text_column, options.text_columns],
        "kept": options.max_train_rows and type(options).__name__,
        "labels": labeled and [labeled.label_column, labeled.labels is Labels.classes, labeled.lowest_label],
        "label_names": label_names,
    }

    encode_all = partial(_encode, source, options, tokenizer, label_names)
    facts, arrays, folder = store.stored(options, source, [tokenizer], encode_all, **depends_on)
    ids, used = RaggedIds(store.open_ids(folder, np.int32), arrays["offsets"]), tokenizer_of_json(facts["tokenizer"])
    encoded = EncodedTexts(arrays["splits"], facts["overlaps"], ids, arrays["labels"], used, first_lines=facts["lines"])
    if labeled is None:
        return encoded
    names, meanings = _read_labels(encoded.first_lines, source, labeled, label_names)
    ordered = list(map(str, labeled.class_names or ()))
    if label_names is None and labeled.choices is None and sorted(ordered) == sorted(names):
        names, meanings = ordered, {label: ordered.index(names[number]) for label, number in meanings.items()}
    labels = np.array(list(meanings.values()), dtype=np.int64)[encoded.labels]
    return replace(encoded, labels=labels, label_names=names, meanings=meanings, choices=labeled.choices)


def _read_labels(
    first_lines: dict[str, dict[str, int]], source: Source, options: ReviewOptions, label_names: list[str] | None
) -> tuple[list[str], dict[str, int]]:
    """Return the names of the labels, and the index of each distinct label. Raises UserError with file and line."""
    column, lowest = options.label_column, options.lowest_label
    if options.choices is not None:
        reader = reader_of_choices(column, options.text_columns[-options.choices.num_choices :], lowest)
    else:
        learns = options.labels is Labels.classes and label_names is None
        values = [label for label, lines in first_lines.items() if not learns or "train" in lines]
        reader = reader_of(column, options.labels, lowest, values, label_names)
    places = {label: source.place(*next(iter(lines.items()))) for label, lines in first_lines.items()}
    meanings = {label: reader.read(label, place) for label, place in places.items()}
    return list(label_names if options.choices is not None and label_names else reader.names), meanings


def _encode(
    source: Source, options: TextOptions, tokenizer: Tokenizer | None, label_names: list[str] | None, folder: Path
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Write the ids of the texts to a folder, and return their facts and the other arrays.

    A label is the index of its text in first_lines. Each pass over a large source holds only a part of it in memory.
    """
    if tokenizer is None and "train" not in source.splits:
        raise UserError(f"{source.where} has no train split; add a file such as train.jsonl")
    labeled = options if isinstance(options, ReviewOptions) else None
    columns, choices = options.text_columns, options.choices
    is_large = sum(path.stat().st_size for path in source.files.values() if path.is_file()) > LARGE
    kept: list[Text] = []  # all texts, unless the source is large
    labels, numbers, first_lines = list[int](), array("q"), dict[str, dict[str, int]]()
    splits: list[int] = []

    def text_of(values: Mapping[str, Any]) -> Text:
        return tuple(values[column] for column in columns) if len(columns) > 1 else values[columns[0]]

    def texts() -> Iterable[Text]:
        rows = (row for split in source.splits for row in source.rows(split, columns))
        return kept or (text_of(row.values) for row in rows)

    index_of: dict[str, int] = {}
    for split in source.splits:
        for line, values in rows_of_columns(source, split, options, KEYS, columns):
            for answer in [] if choices is None else columns[-choices.num_choices :]:
                if not values[answer].strip():
                    problem = f"{source.place(split, line)}: the answer in column {answer} is empty"
                    raise UserError(f"{problem}; fill it in, or remove the row")
            text = text_of(values)
            numbers.append(number_of(text))
            if not is_large:
                kept.append(text)
            if labeled:
                label = canonical(values[labeled.label_column])
                labels.append(index_of.setdefault(label, len(index_of)))
                first_lines.setdefault(label, {}).setdefault(split, line)
            splits.append(SPLITS.index(split))
    split_array, label_array = np.array(splits, dtype=np.int64), np.array(labels, dtype=np.int64)
    read, names = np.zeros_like(split_array), list[str]()
    if labeled:
        if labeled.labels is Labels.classes and label_names is None and splits.count(0) == 1:
            raise UserError(f"{source.where} has only 1 training row; add rows, of 2 or more classes")
        names, meanings = _read_labels(first_lines, source, labeled, label_names)
        read = np.array(list(meanings.values()))[label_array]
    groups = None
    if options.folds is not None and (column := getattr(options, "group_column", None)) is not None:
        groups = np.array(groups_of(source, column, range(len(splits))))
    carve_out(split_array, read, options, groups)
    sentence = overlaps(numbers, split_array, remove=options.deduplicate)
    if tokenizer is None:
        rows = np.flatnonzero(split_array == 0)
        if labeled and labeled.max_train_rows is not None:
            rows = rows[targets_of(read[rows], labeled.labels, names) != LEFT_OUT]
        is_counted = np.isin(np.arange(len(splits)), training_rows(rows, options))
        tokenizer = _train_tokenizer(compress(texts(), is_counted), options, is_large=is_large)
    lengths = [np.zeros(1, dtype=np.int64)]
    single = texts() if choices is None else choices.pairs(texts())
    with (folder / store.IDS_FILE).open("wb") as file:
        for part in _mapped(tokenizer.encode_batch, single, is_large=is_large):
            lengths.append(part.lengths)
            file.write(part.ids.astype(np.int32).tobytes())
    facts = {"tokenizer": tokenizer.to_json(), "lines": first_lines, "overlaps": sentence}
    return facts, {"splits": split_array, "offsets": np.concatenate(lengths).cumsum(), "labels": label_array}


def _mapped(function: Callable[[list[Any]], Any], items: Iterable[Any], *, is_large: bool) -> Iterator[Any]:
    """Yield the results of a function for each ROWS_AT_ONCE items, in order. is_large: use several processes."""
    remaining = iter(items)
    parts = iter(lambda: list(islice(remaining, ROWS_AT_ONCE)), [])
    if not is_large:
        yield from map(function, parts)
        return
    from joblib.externals.loky import cpu_count, get_reusable_executor

    processes, waiting = get_reusable_executor(), deque[Any]()
    for part in parts:
        waiting.append(processes.submit(function, part))
        if len(waiting) > 2 * cpu_count():
            yield waiting.popleft().result()
    yield from (each.result() for each in waiting)
    processes.shutdown()  # which gives their memory back


def rows_of_columns(
    source: Source, split: str, options: Any, keys: Sequence[str], of_texts: Sequence[str]
) -> Iterator[Row]:
    """Yield the rows of a split with the columns that some options name, such as `text_column`.

    of_texts: the columns with texts. Raises UserError if a column is missing, with the option to set, and if one of
    these has another value than a text.
    """
    key_of_column: dict[str, str] = {}
    for key in keys:
        named = getattr(options, key, None) or ()
        key_of_column |= dict.fromkeys([named] if isinstance(named, str) else named, key)
    try:
        for row in source.rows(split, list(key_of_column)):
            for column in of_texts:
                if not isinstance(row.values[column], str):
                    place, value = source.place(split, row.line), row.values[column]
                    raise UserError(f"{place}: column {column} holds {value!r}, not a text")
            yield row
    except MissingColumnError as error:
        raise UserError(f"{error}; set data.{key_of_column[error.column]}") from None


def _train_tokenizer(rows: Iterable[Text], options: TextOptions, *, is_large: bool) -> Tokenizer:
    wanted, pairs = options.tokenizer, options.reads_pairs or options.choices is not None
    texts: Iterable[str] = chain.from_iterable([row] if isinstance(row, str) else row for row in rows)
    is_subword, marks = wanted.kind is TokenizerKind.subword, bool(wanted.punctuation)
    count = tokenizers.word_frequency if is_subword else partial(tokenizers.document_frequency, punctuation=marks)
    frequency: Counter[str] = Counter()
    for part in _mapped(count, texts, is_large=is_large):
        frequency.update(part)
    if is_subword:
        assert wanted.max_size is not None
        return tokenizers.subword_tokenizer(frequency, wanted.max_size, pairs=pairs)
    sizes = (wanted.min_document_frequency, wanted.max_size)
    return tokenizers.word_tokenizer(frequency, *sizes, punctuation=marks, pairs=pairs)


def carve_out(
    splits: NDArray[np.int64], labels: NDArray[np.int64], options: DataOptions, groups: NDArray[Any] | None = None
) -> None:
    """Move a share of every class from the training rows to a missing validation or test split, in place.

    With `options.folds`, the test split is a fold. groups: the names of the groups that folds do not divide.
    """
    if options.folds is not None:
        take_fold(splits, labels, options, groups)
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


def drawn(rows: NDArray[np.int64], most: int | None, seed: int) -> NDArray[np.int64]:
    """Return at most `most` of the rows, drawn at random, in their order: (n,). None returns all rows."""
    if most is None:
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))
    return np.sort(rows[order[:most]])


def training_rows(rows: NDArray[np.int64], options: TextOptions) -> NDArray[np.int64]:
    """Return the training rows that `max_train_rows` keeps: drawn ones, but for a generator the first ones: (n,)."""
    if isinstance(options, ReviewTextOptions):
        return rows[: options.max_train_rows]
    return drawn(rows, options.max_train_rows, options.split_seed)
