"""Where data comes from and how it is batched, as options. Imports nothing heavy."""

import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Literal, TypeVar

from firstlight.choices import accept_names, refuse_unknown
from firstlight.spelling import declare, spelled
from firstlight.text.options import NUM_BYTES, NUM_MARKS, TokenizerKind, TokenizerOptions


class SourceKind(Enum):
    """Which source to read; auto looks for a local copy, then the Hub or the web, then generates a sample."""

    auto = "auto"
    hub = "hub"
    local = "local"
    sample = "sample"


class SampleKind(Enum):
    """Which generated texts stand in for labelled ones: reviews with stars, or negative and positive ones."""

    reviews = "reviews"
    movies = "movies"


class Labels(Enum):
    """What is predicted: negative or positive (3 stars left out), the stars, or whatever classes the data has."""

    binary = "binary"
    stars = "stars"
    classes = "classes"


class Truncation(Enum):
    """What is kept of a text longer than the context: its head, its tail, or the first and the last half."""

    head = "head"
    tail = "tail"
    head_tail = "head_tail"


class Balance(Enum):
    """What is done about classes of unequal size: nothing, weights in the loss, or equal sampling."""

    none = "none"
    weights = "weights"
    sampling = "sampling"


class Preparation(Enum):
    """What is made of a text file: nothing, the plays of a Gutenberg edition, or one document of each line."""

    text = "text"
    plays = "plays"
    lines = "lines"


class Split(Enum):
    """Which part of a text is for validation: its end, or whole passages at random."""

    sequential = "sequential"
    passages = "passages"


@dataclass
class ReviewTextOptions:
    """Reviews, of which the texts are read."""

    source: SourceKind = SourceKind.auto
    name: str = "amazon_reviews"  # the folder below $FIRSTLIGHT_DATA or data/
    hub: str = "SetFit/amazon_reviews_multi_en"  # the Hub data set of source=hub and source=auto
    path: str | None = None  # a file, a folder of split files, or a Hub id of your own
    sample: SampleKind = SampleKind.reviews  # what source=sample generates
    text_column: str = "text"
    label_column: str = "label"
    labels: Labels = Labels.binary
    lowest_label: int = 0  # the label of one star; 1 where the file counts stars from 1
    class_names: list[str] | None = None  # names for labels=classes, in the order of the labels
    validation_fraction: float = 0.1  # taken from the training rows where the source has no validation split
    test_fraction: float = 0.1  # likewise
    split_seed: int = 0
    max_train_rows: int | None = None

    tokenizer: TokenizerOptions = field(default_factory=TokenizerOptions)
    context_length: int = 50
    truncation: Truncation = Truncation.head

    batch_size: int = 32
    evaluation_batch_size: int = 256
    bucket_by_length: bool = False  # batches of reviews of like length: less padding, another order
    balance: Balance = Balance.none
    num_workers: int = 0
    device_resident: bool = True  # keep the ids on the accelerator where they fit

    seed: int = 1
    cache_dir: str = "logs/cache"

    def __post_init__(self) -> None:
        accept_names(self, "data.")
        self.tokenizer = tokenizer_options(self.tokenizer)
        check_name(self.name)
        check_batches(self)
        check_rows(self)
        if self.tokenizer.kind is TokenizerKind.char:
            raise ValueError("tokenizer=char is for generators; use tokenizer=word or tokenizer=subword for reviews")
        if self.class_names is not None and self.labels is not Labels.classes:
            raise ValueError(f"data.class_names needs data.labels=classes, not {self.labels.value}")
        if self.source is SourceKind.sample and self.path is not None:
            raise ValueError(f"data.source=sample reads nothing, so data.path={self.path} must be removed")

    @property
    def has_ordered_classes(self) -> bool:
        """Whether being off by one class is better than by two, as with stars."""
        return self.labels is Labels.stars


@dataclass
class ReviewOptions(ReviewTextOptions):
    """Reviews and their labels."""

    evidence: bool = False  # features of each word: the mean class of the training texts with it, and with a pair
    evidence_pairs: int = 50_000  # pairs of words that are counted, those in the most texts
    evidence_shrinkage: float = 5.0  # texts; how strongly the mean of few texts is drawn towards 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence_pairs < 1:
            raise ValueError(f"data.evidence_pairs={self.evidence_pairs} must be at least 1")
        if not 0 < self.evidence_shrinkage < math.inf:
            raise ValueError(f"data.evidence_shrinkage={self.evidence_shrinkage} must be a finite number above 0")


@dataclass
class CharacterOptions:
    """A text to be continued, character by character or in pieces of words."""

    source: SourceKind = SourceKind.auto
    name: str | None = None  # the folder below $FIRSTLIGHT_DATA or data/, with one .txt file in it
    url: str | None = None  # where the file is published: downloaded once by source=auto and source=hub
    path: str | None = None  # a text file of your own
    preparation: Preparation = Preparation.text
    separator: str = "."  # stands between the documents of preparation=lines
    split: Split = Split.sequential
    validation_fraction: float = 0.05
    test_fraction: float = 0.0
    split_seed: int = 0
    max_train_rows: int | None = None  # documents, or windows of the context's length

    tokenizer: TokenizerOptions = field(default_factory=lambda: TokenizerOptions(kind=TokenizerKind.char))
    context_length: int = 64

    batch_size: int = 32
    evaluation_batch_size: int = 256
    num_workers: int = 0
    device_resident: bool = True  # keep the ids on the accelerator where they fit

    seed: int = 1
    cache_dir: str = "logs/cache"

    def __post_init__(self) -> None:
        accept_names(self, "data.")
        self.tokenizer = tokenizer_options(self.tokenizer)
        check_name(self.name)
        check_batches(self)
        if not 0 < self.validation_fraction < 0.5:
            raise ValueError(f"data.validation_fraction={self.validation_fraction} must lie between 0 and 0.5")
        if not 0 <= self.test_fraction < 0.5:
            raise ValueError(f"data.test_fraction={self.test_fraction} must be at least 0 and below 0.5")
        if len(self.separator) != 1:
            raise ValueError(f"data.separator={self.separator} must be one character")
        if self.preparation is Preparation.lines and self.separator == self.tokenizer.unknown_symbol:
            raise ValueError(f"data.separator={self.separator} is tokenizer.unknown_symbol too; change one of them")
        size = self.tokenizer.max_size
        if self.tokenizer.kind is TokenizerKind.subword and size is not None and size < NUM_BYTES:
            raise ValueError(f"tokenizer.max_size={size} cannot hold the 256 bytes; set it to {NUM_BYTES} or more")
        if self.tokenizer.kind is TokenizerKind.subword and not self.separator.isascii():
            raise ValueError(f"data.separator={self.separator} is several bytes to tokenizer=subword; take ASCII")
        if self.tokenizer.kind is TokenizerKind.word:
            raise ValueError("tokenizer=word loses the text; use tokenizer=char or tokenizer=subword for generators")
        if self.source is SourceKind.sample and self.path is not None:
            raise ValueError(f"data.source=sample reads nothing, so data.path={self.path} must be removed")
        if self.path is None and self.name is None and self.source is not SourceKind.sample:
            raise ValueError("data.path is not set; name a text file, as in data.path=my_novel.txt")


@dataclass
class PairOptions:
    """Sentences and their translations."""

    source: SourceKind = SourceKind.auto
    name: str = "multi30k"  # the folder below $FIRSTLIGHT_DATA or data/
    hub: str = "bentrevett/multi30k"  # the Hub data set of source=hub and source=auto
    path: str | None = None  # a file, a folder of split files, files such as train.en and train.de, or a Hub id
    source_column: str = "en"  # of rows the column, of pairs of text files the ending
    target_column: str = "de"
    validation_fraction: float = 0.1  # taken from the training rows where the source has no validation split
    test_fraction: float = 0.1  # likewise
    split_seed: int = 0
    max_train_rows: int | None = None
    skip_too_long: bool = False  # leave training pairs out that exceed the context; else they are an error

    tokenizer: TokenizerOptions = field(default_factory=lambda: TokenizerOptions(kind=TokenizerKind.subword))
    shared_vocabulary: bool = True  # one for both languages, or one for each
    context_length: int = 64

    batch_tokens: int = 2000  # sentences times the length of the longest of them, padding included
    evaluation_batch_size: int = 128  # sentences
    num_workers: int = 0
    device_resident: bool = True  # keep the ids on the accelerator where they fit

    seed: int = 1
    cache_dir: str = "logs/cache"

    def __post_init__(self) -> None:
        accept_names(self, "data.")
        self.tokenizer = tokenizer_options(self.tokenizer)
        check_name(self.name)
        check_batches(self)
        check_rows(self)
        if self.source_column == self.target_column:
            raise ValueError(f"data.source_column and data.target_column are both {self.source_column}; change one")
        if self.tokenizer.kind is TokenizerKind.char:
            raise ValueError("tokenizer=char makes sentences too long; use tokenizer=subword or word for translation")
        if self.tokenizer.word_list is not None:
            raise ValueError("tokenizer.word_list holds simplified words; remove it, for translation keeps case")
        size = self.tokenizer.max_size
        if self.tokenizer.kind is TokenizerKind.subword and size is not None and size < NUM_BYTES + NUM_MARKS:
            raise ValueError(
                f"tokenizer.max_size={size} cannot hold the 256 bytes and 4 marks; set it to {NUM_BYTES + NUM_MARKS} "
                "or more"
            )
        if self.source is SourceKind.sample and self.path is not None:
            raise ValueError(f"data.source=sample reads nothing, so data.path={self.path} must be removed")


for _options in (ReviewOptions, CharacterOptions, PairOptions):
    declare("data", _options)

Function = TypeVar("Function", bound=Callable[..., Any])
Options = TypeVar("Options", bound="ReviewTextOptions | CharacterOptions | PairOptions")


def options_from(kind: type[Options], given: dict[str, Any], owner: str) -> Options:
    """The options of a data module. Raises TypeError for one that it does not have. owner: what takes them."""
    refuse_unknown(given, [each.name for each in fields(kind)], owner)
    try:
        return kind(**given)
    except ValueError as error:
        raise ValueError(spelled(str(error))) from None


def takes(kind: type[ReviewTextOptions | CharacterOptions | PairOptions]) -> Callable[[Function], Function]:
    """A decorator for an `__init__(self, **options)`: its signature shows the options, their choices and defaults."""
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for each in fields(kind):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        annotation: Any = each.type
        if isinstance(default, Enum):
            annotation, default = Literal[tuple(type(default).__members__)], default.name
        elif isinstance(default, TokenizerOptions):
            annotation, default = TokenizerOptions | dict[str, Any] | str, default.kind.name
        parameters.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    def sign(init: Function) -> Function:
        init.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return init

    return sign


def tokenizer_options(given: Any) -> TokenizerOptions:
    """The options of a tokenizer, given as such, as a dict of them, or as the tokenizer's kind alone."""
    if isinstance(given, str | TokenizerKind):
        return TokenizerOptions(kind=given)  # type: ignore[arg-type]  # a name is accepted too
    return TokenizerOptions(**given) if isinstance(given, dict) else given


def check_name(name: str | None) -> None:
    """Raise ValueError for the name of a data set that leads out of the folder of data sets, or of the cache."""
    if name is not None and (not isinstance(name, str) or Path(name).is_absolute() or ".." in Path(name).parts):
        raise ValueError(f"data.name={name} must be the name of a folder below $FIRSTLIGHT_DATA or data/")


def check_rows(options: ReviewTextOptions | PairOptions) -> None:
    """Raise ValueError for a share that cannot be taken from the training rows."""
    for name in ("validation_fraction", "test_fraction"):
        if not 0 < getattr(options, name) < 0.5:
            raise ValueError(f"data.{name}={getattr(options, name)} must lie between 0 and 0.5")


def check_batches(options: ReviewTextOptions | CharacterOptions | PairOptions) -> None:
    """Raise ValueError for a number that makes no batches."""
    for name in ("batch_size", "batch_tokens", "evaluation_batch_size", "context_length"):
        if getattr(options, name, 1) < 1:
            raise ValueError(f"data.{name}={getattr(options, name)} must be at least 1")
    if options.num_workers < 0:
        raise ValueError(f"data.num_workers={options.num_workers} must be at least 0")
    if options.max_train_rows is not None and options.max_train_rows < 1:
        raise ValueError(f"data.max_train_rows={options.max_train_rows} must be at least 1")
