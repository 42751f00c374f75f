"""The options of the data: its source, its encoding and its batches. This module imports nothing heavy."""

import math
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from firstlight.choices import accept_names, require
from firstlight.data.row_options import ChoiceRows, FoldOptions, RowOptions
from firstlight.spelling import declare
from firstlight.text.options import TokenizerKind, TokenizerOptions, tokenizer_options

SHORTEST_PAIR = 5  # tokens: three marks and two words


class SourceKind(Enum):
    """The source of the data. `auto` tries a local copy, then the Hub or the web, and then a generated sample."""

    auto = "auto"
    hub = "hub"
    local = "local"
    sample = "sample"


class SampleKind(Enum):
    """The generated sample: reviews with 1 to 5 stars, short reviews with two classes, premises and hypotheses, short
    stories with four endings, or pairs of sentences that are similar or different."""

    reviews = "reviews"
    movies = "movies"
    entailment = "entailment"
    choices = "choices"
    similarity = "similarity"


class Labels(Enum):
    """The classes to predict: negative and positive without 3 stars, 1 to 5 stars, or the labels themselves."""

    binary = "binary"
    stars = "stars"
    classes = "classes"


class Truncation(Enum):
    """The tokens to keep of a text longer than the context: the first, the last, or half from either end."""

    head = "head"
    tail = "tail"
    head_tail = "head_tail"

    def tokens_of_head(self, kept: Any) -> Any:
        """Return how many of the tokens that are kept are the first ones of a longer text. kept: a number or array."""
        return {"head": kept, "tail": 0 * kept, "head_tail": (kept + 1) // 2}[self.value]


class Balance(Enum):
    """The treatment of classes of unequal size: none, or class weights in the loss."""

    none = "none"
    weights = "weights"


@dataclass
class DataOptions(FoldOptions):
    """Options of all data: its source, its splits and its tokens.

    Args:
        source: Where to look for the data: local (below $FIRSTLIGHT_DATA or data/), hub (the Hugging Face Hub, or
            data.url for a text), sample (generated data), or auto, which tries them in this order.
        path: Your own data.
        max_train_rows: Number of training rows to use, also for the vocabulary; null: all. For a generator: the number
            of documents, or of windows of a text. Lower it for quick trials and learning curves.
        name: Folder of the data set below $FIRSTLIGHT_DATA or data/, used if data.path is null.
        validation_fraction: Share of the training rows, or of a text, used for validation if the data has no validation
            split; between 0 and 0.5.
        test_fraction: Share of the training rows, or of a text, used for the test if the data has no test split;
            between 0 and 0.5. For a text, 0 is no test split.
        split_seed: Seed of the draw of these two splits and of data.max_train_rows.
        separator: Character between the columns of a CSV file, such as a semicolon; null: recognized in the header.
        encoding: Encoding of text files, such as cp1252 or latin-1; a byte-order mark in a file replaces it.
        deduplicate: Whether rows that are also in a later split (train, validation, test) are removed.
        tokenizer: The tokenizer, which is trained on the training rows: its kind (word, subword or char), or its
            options.
        context_length: The largest number of tokens of a row that the network reads.
        evaluation_batch_size: Number of rows in a validation or test batch; it changes the speed and not the results.
        seed: The seed of the order of the training batches.
        cache_dir: The folder for encoded data and downloads.
    """

    has_test: ClassVar[bool] = True  # whether test_fraction must be above 0

    source: SourceKind = SourceKind.auto
    path: str | None = None
    max_train_rows: int | None = None

    _: KW_ONLY  # `--help data` names the following options without their descriptions
    name: str | None = None
    validation_fraction: float = 0.1
    test_fraction: float = 0.1
    split_seed: int = 0
    separator: str | None = None
    encoding: str = "utf-8"
    deduplicate: bool = False
    tokenizer: TokenizerOptions = field(default_factory=TokenizerOptions)
    context_length: int = 64
    evaluation_batch_size: int = 256
    seed: int = 1
    cache_dir: str = "logs/cache"

    def __post_init__(self) -> None:
        accept_names(self, "data.")
        self.check_folds()
        self.tokenizer = tokenizer_options(self.tokenizer)
        self.separator = checked_separator(self.separator, self.encoding)
        name: Any = self.name
        if name is not None and (not isinstance(name, str) or Path(name).is_absolute() or ".." in Path(name).parts):
            raise ValueError(f"data.name={name} must be the name of a folder below $FIRSTLIGHT_DATA or data/")
        for name in ("batch_size", "batch_tokens", "evaluation_batch_size", "context_length", "max_train_rows"):
            value = getattr(self, name, None)
            require(value is None or value >= 1, f"data.{name}={value} must be at least 1")
        for name in ("validation_fraction", "test_fraction"):
            share, may_be_0 = getattr(self, name), name == "test_fraction" and not self.has_test
            allowed = "be at least 0 and below 0.5" if may_be_0 else "lie between 0 and 0.5"
            require(0 < share < 0.5 or (may_be_0 and share == 0), f"data.{name}={share} must {allowed}")
        if self.source is SourceKind.sample and self.path is not None:
            raise ValueError(f"data.path={self.path}: data.source=sample does not read a file; remove data.path")


@dataclass
class TextOptions(DataOptions):
    """Options of rows with a text.

    Args:
        path: Your own data: a CSV, TSV, JSONL or Parquet file, a text file with a text in each line, a folder with a
            file for each split, or an identifier on the Hub.
        text_column: Column with the texts, or for a classifier two columns with pairs of texts, as in
            'data.text_column=[premise,hypothesis]'; quote a name with spaces or commas twice, as in
            "data.text_column='review, text'".
        batch_size: Number of texts, or of windows of text, in a training batch; larger batches are faster and need a
            higher learning rate.
        hub: Identifier of the data set on the Hugging Face Hub, used if data.path is null.
        sample: Texts that data.source=sample generates: reviews with stars, short reviews in place of film reviews
            (movies), premises and hypotheses (entailment), stories with four endings (choices), or pairs of sentences
            that are similar or not (similarity).
    """

    path: str | None = None
    text_column: str | list[str] = "text"
    batch_size: int = 32

    _: KW_ONLY
    name: str = "amazon_reviews"
    hub: str = "SetFit/amazon_reviews_multi_en"
    sample: SampleKind = SampleKind.reviews
    context_length: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_columns()
        if self.tokenizer.kind is TokenizerKind.char:
            raise ValueError("tokenizer=char requires a generator; use tokenizer=word or tokenizer=subword for reviews")

    @property
    def text_columns(self) -> list[str]:
        """The column with the texts, or the two columns with pairs of texts."""
        return [self.text_column] if isinstance(self.text_column, str) else list(self.text_column)

    @property
    def choices(self) -> ChoiceRows | None:
        """The layout of rows of multiple choice; None if the rows have no answers to choose from."""
        return None

    @property
    def reads_pairs(self) -> bool:
        """Whether each row has a pair of texts."""
        return self.choices is None and len(self.text_columns) == 2

    def _check_columns(self) -> None:
        """Raise ValueError unless `text_column` is one name."""
        self.text_column = names = _names(self.text_column)
        problem = f"data.text_column={_listed(names)}: only a classifier reads pairs; name one column"
        require(isinstance(names, str), problem)


@dataclass
class ReviewTextOptions(TextOptions):
    """Options of texts for a generator, whose windows contain complete texts."""


@dataclass
class WholeTextOptions(TextOptions):
    """Options of texts of which each is a row of a batch, padded to the longest one.

    Args:
        truncation: Part of a text that is kept if it is longer than context_length: its head, its tail, or half of each
            (head_tail).
        bucket_by_length: Whether texts of similar length form a batch, which saves time on padding and changes the
            order of training.
    """

    truncation: Truncation = Truncation.head

    _: KW_ONLY
    bucket_by_length: bool = False


@dataclass
class ReviewOptions(WholeTextOptions, RowOptions):
    """Options of labeled texts, such as reviews, for a classifier.

    Args:
        path: Your own data: a CSV, TSV, JSONL or Parquet file, a folder with a file for each split, or an identifier on
            the Hub.
        label_column: Column with the labels.
        labels: Meaning of the labels: stars (five ordered classes), binary (1-2 stars against 4-5), or classes (any
            distinct values).
        class_names: Names of the classes for data.labels=classes, in the order of the sorted labels, or the labels
            themselves in another order; null: the sorted labels.
        balance: Treatment of classes of unequal size: none, or weights (in the loss).
        lowest_label: Label of one star in the file, or number of the first of data.choice_columns; set it to 1 if the
            file counts from 1.
        choice_columns: Two or more columns with possible answers to the text of data.text_column, as in
            'data.choice_columns=[a,b,c]'. data.label_column has the name or the number of the correct one; null: no
            answers.
        random_span: Whether a text longer than context_length is cut to a new random span of it in each epoch of the
            training; data.truncation cuts the texts of validation and test.
        both_orders: Whether pairs of texts are read in both orders and the two representations are added, for relations
            that do not depend on the order, such as similarity.
        target_encoding: Whether to use target encoding of words and pairs of words: the network also reads the mean
            class of the training texts that contain each of them.
        target_encoding_pairs: Number of pairs of neighboring words that data.target_encoding counts; those that occur
            in the most texts.
        target_encoding_shrinkage: Strength, in texts, with which data.target_encoding draws means towards 0.
    """

    path: str | None = None
    label_column: str = "label"
    labels: Labels = Labels.binary
    class_names: list[str] | None = None
    balance: Balance = Balance.none

    _: KW_ONLY
    lowest_label: int = 0
    choice_columns: list[str] | None = None
    random_span: bool = False
    both_orders: bool = False
    target_encoding: bool = False
    target_encoding_pairs: int = 50_000
    target_encoding_shrinkage: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_names is not None and self.labels is not Labels.classes:
            raise ValueError(f"data.class_names requires data.labels=classes, not {self.labels.value}")
        if self.choices is None and self.both_orders and not self.reads_pairs:
            example = "'data.text_column=[sentence1,sentence2]'"
            raise ValueError(f"data.both_orders=true requires pairs of texts; name two columns, as in {example}")
        for key in ("target_encoding", "random_span"):
            if getattr(self, key) and (self.reads_pairs or self.choices is not None):
                raise ValueError(f"data.{key}=true requires single texts; name one data.text_column")
        pairs, shrinkage = self.target_encoding_pairs, self.target_encoding_shrinkage
        require(pairs >= 1, f"data.target_encoding_pairs={pairs} must be at least 1")
        require(0 < shrinkage < math.inf, f"data.target_encoding_shrinkage={shrinkage} must be a finite number above 0")
        self.check_rows(self.text_columns)
        if self.fold_group is not None and self.folds is None:
            raise ValueError(f"data.fold_group={self.fold_group} requires data.folds; set it to the number of parts")

    @property
    def text_columns(self) -> list[str]:
        """The columns with the texts. With `choice_columns`, those of the context come before those of the answers."""
        return [*super().text_columns, *(self.choice_columns or ())]

    @property
    def choices(self) -> ChoiceRows | None:
        if self.choice_columns is None:
            return None
        return ChoiceRows(len(super().text_columns), len(self.choice_columns))

    def _check_columns(self) -> None:
        """Raise ValueError unless the columns are those of texts, of pairs, or of contexts with answers."""
        if self.choice_columns is None:
            self.text_column = names = _names(self.text_column)
            example = "as in 'data.text_column=[premise,hypothesis]'"
            problem = f"data.text_column={_listed(names)} must be a column, or two different columns, {example}"
            require(isinstance(names, str) or (len(names) == 2 and names[0] != names[1]), problem)
        else:
            self._check_choices(self.choice_columns)
        if len(self.text_columns) > 1 and self.context_length < SHORTEST_PAIR:
            problem = f"context_length={self.context_length} is too short for pairs of texts"
            raise ValueError(f"{problem}; set it to {SHORTEST_PAIR} or more")

    def _check_choices(self, columns: list[str]) -> None:
        """Raise ValueError for options that do not apply to multiple choice."""
        self.text_column, answers = _names(self.text_column), _names(columns)
        given = f"data.choice_columns={_listed(answers)}"
        if isinstance(answers, str) or len(answers) < 2:
            raise ValueError(f"{given} must be two or more columns, as in 'data.choice_columns=[ending_a,ending_b]'")
        self.choice_columns = answers
        are_different = bool(self.text_column) and len(set(self.text_columns)) == len(self.text_columns)
        both = f"data.text_column={_listed(self.text_column)} and {given}"
        require(are_different, f"{both} must be different columns; remove one of them")
        is_of_classes = self.labels is Labels.classes
        require(is_of_classes, f"{given} requires data.labels=classes, not {self.labels.value}")
        for key in ("both_orders", "target_encoding"):
            require(not getattr(self, key), f"{given} does not apply to data.{key}=true; set it to false")


for _options in (ReviewOptions, ReviewTextOptions):
    declare("data", _options)


def checked_separator(separator: str | None, encoding: str) -> str | None:
    """Return the character between columns. Raises ValueError for several characters and for an unknown encoding."""
    try:
        has_ascii_lines = "\n".encode(encoding) == b"\n"
    except LookupError:
        has_ascii_lines = False
    require(has_ascii_lines, f"data.encoding={encoding} must be an encoding such as utf-8 or cp1252")
    separator = "\t" if separator == "\\t" else separator
    require(separator is None or len(separator) == 1, f"data.separator={separator} must be one character")
    return separator


def _names(columns: Any) -> str | list[str]:
    """Return the name of a column, or a list of names. A name may be given as a number."""
    return [str(column) for column in columns] if isinstance(columns, list | tuple) else str(columns)


def _listed(columns: str | list[str]) -> str:
    return columns if isinstance(columns, str) else f"[{','.join(columns)}]"
