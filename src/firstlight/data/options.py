"""The options of the data: its source, its encoding and its batches. This module imports nothing heavy."""

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
    """The source of the data. `auto` tries a local copy, then the Hub or the web, and then a generated sample."""

    auto = "auto"
    hub = "hub"
    local = "local"
    sample = "sample"


class SampleKind(Enum):
    """The generated sample of labelled texts: reviews with 1 to 5 stars, or film reviews with two classes."""

    reviews = "reviews"
    movies = "movies"


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


class Balance(Enum):
    """The treatment of classes of unequal size: none, class weights in the loss, or equal sampling."""

    none = "none"
    weights = "weights"
    sampling = "sampling"


class Preparation(Enum):
    """The preparation of a text file: none, the plays of a Gutenberg edition, or one document per line."""

    text = "text"
    plays = "plays"
    lines = "lines"


class Split(Enum):
    """The part of a text for validation: its end, or passages drawn at random."""

    sequential = "sequential"
    passages = "passages"


@dataclass
class ReviewTextOptions:
    """Options of the texts of reviews, without what only a classifier needs."""

    source: SourceKind = SourceKind.auto
    """Where to look for the data. `auto` tries a local copy, then the Hub, and then the generated sample."""
    name: str = "amazon_reviews"
    """The folder of the data set below `$FIRSTLIGHT_DATA` or `data/`. It is used if `path` is null."""
    hub: str = "SetFit/amazon_reviews_multi_en"
    """The identifier of the data set on the Hugging Face Hub. It is used if `path` is null."""
    path: str | None = None
    """Your data: a CSV, TSV, JSONL or Parquet file, a folder of such files, or an identifier on the Hub."""
    sample: SampleKind = SampleKind.reviews
    """The generated sample that `source=sample` reads and that `source=auto` falls back to."""
    text_column: str = "text"
    """The name of the column with the texts."""
    label_column: str = "label"
    """The name of the column with the labels."""
    labels: Labels = Labels.binary
    """The classes to predict: negative and positive (without 3 stars), 1 to 5 stars, or the distinct labels."""
    lowest_label: int = 0
    """The label that means one star. Set it to 1 if the file counts stars from 1."""
    class_names: list[str] | None = None
    """Names for the classes of `labels=classes`, in the order of the sorted labels."""
    validation_fraction: float = 0.1
    """The share of every class for validation if there is no validation split, between 0 and 0.5."""
    test_fraction: float = 0.1
    """The share of every class for testing if there is no test split, between 0 and 0.5."""
    split_seed: int = 0
    """The seed that draws the rows of these shares and of `max_train_rows`."""
    max_train_rows: int | None = None
    """The number of training rows to use. Null uses all of them."""
    tokenizer: TokenizerOptions = field(default_factory=TokenizerOptions)
    """The options of the tokenizer, which is trained on the training texts."""
    context_length: int = 50
    """The largest number of tokens of a text that the network reads."""
    truncation: Truncation = Truncation.head
    """The tokens to keep of a text longer than `context_length`."""
    batch_size: int = 32
    """The number of texts in a training batch."""
    evaluation_batch_size: int = 256
    """The number of texts in a validation, test or prediction batch."""
    bucket_by_length: bool = False
    """Whether to put texts of similar length into a batch. This reduces padding."""
    balance: Balance = Balance.none
    """The treatment of classes of unequal size: none, class weights in the loss, or equal sampling."""
    num_workers: int = 0
    """The number of processes that load batches. 0 loads them in the main process."""
    device_resident: bool = True
    """Whether to keep all token ids on the accelerator if they take less than a quarter of its free memory."""
    seed: int = 1
    """The seed of the order of the training batches."""
    cache_dir: str = "logs/cache"
    """The folder for encoded texts and downloads."""

    def __post_init__(self) -> None:
        accept_names(self, "data.")
        self.tokenizer = tokenizer_options(self.tokenizer)
        check_name(self.name)
        check_batches(self)
        check_rows(self)
        if self.tokenizer.kind is TokenizerKind.char:
            raise ValueError("tokenizer=char requires a generator; use tokenizer=word or tokenizer=subword for reviews")
        if self.class_names is not None and self.labels is not Labels.classes:
            raise ValueError(f"data.class_names requires data.labels=classes, not {self.labels.value}")
        if self.source is SourceKind.sample and self.path is not None:
            raise ValueError(f"data.path={self.path}: data.source=sample does not read a file; remove data.path")

    @property
    def has_ordered_classes(self) -> bool:
        """Whether the classes have an order, as stars have."""
        return self.labels is Labels.stars


@dataclass
class ReviewOptions(ReviewTextOptions):
    """Options of labelled texts, such as reviews, for a classifier."""

    evidence: bool = False
    """Whether to add features to each token: the mean class of the training texts with a word or pair of words."""
    evidence_pairs: int = 50_000
    """The number of pairs of neighboring words to count. The pairs in the most texts are kept."""
    evidence_shrinkage: float = 5.0
    """How strongly the mean of few texts is shrunk towards 0, as a number of texts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence_pairs < 1:
            raise ValueError(f"data.evidence_pairs={self.evidence_pairs} must be at least 1")
        if not 0 < self.evidence_shrinkage < math.inf:
            raise ValueError(f"data.evidence_shrinkage={self.evidence_shrinkage} must be a finite number above 0")


@dataclass
class CharacterOptions:
    """Options of a text for a generator of characters or subwords."""

    source: SourceKind = SourceKind.auto
    """Where to look for the text. `auto` tries a local copy, then the web, and then the generated sample."""
    name: str | None = None
    """The folder below `$FIRSTLIGHT_DATA` or `data/` with one .txt file. It is used if `path` is null."""
    url: str | None = None
    """The address of the text file on the web. The file is downloaded once by `source=auto` and `source=hub`."""
    path: str | None = None
    """Your text file, in UTF-8."""
    preparation: Preparation = Preparation.text
    """The preparation of the file: none, the plays of a Gutenberg edition of Shakespeare, or a document per line."""
    separator: str = "."
    """The character between the documents of `preparation=lines`."""
    split: Split = Split.sequential
    """The part of the text for validation: its end, or passages drawn at random. Blank lines separate passages."""
    validation_fraction: float = 0.05
    """The share of the text used for validation, between 0 and 0.5."""
    test_fraction: float = 0.0
    """The share of the text used for testing, from 0 to below 0.5."""
    split_seed: int = 0
    """The seed that draws the passages or documents of these shares."""
    max_train_rows: int | None = None
    """The number of training documents, or of windows of `context_length` tokens. Null uses all of them."""
    tokenizer: TokenizerOptions = field(default_factory=lambda: TokenizerOptions(kind=TokenizerKind.char))
    """The options of the tokenizer, which is trained on the training part of the text."""
    context_length: int = 64
    """The number of tokens in a window, which is the largest number of tokens that the network reads."""
    batch_size: int = 32
    """The number of windows in a training batch."""
    evaluation_batch_size: int = 256
    """The number of windows in a validation or test batch."""
    num_workers: int = 0
    """The number of processes that load batches. 0 loads them in the main process."""
    device_resident: bool = True
    """Whether to keep all token ids on the accelerator if they take less than a quarter of its free memory."""
    seed: int = 1
    """The seed of the training windows."""
    cache_dir: str = "logs/cache"
    """The folder for encoded texts and downloads."""

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
            raise ValueError(f"data.separator={self.separator} equals tokenizer.unknown_symbol; change one of them")
        size = self.tokenizer.max_size
        if self.tokenizer.kind is TokenizerKind.subword and size is not None and size < NUM_BYTES:
            raise ValueError(f"tokenizer.max_size={size} is too small for 256 bytes; set it to {NUM_BYTES} or more")
        if self.tokenizer.kind is TokenizerKind.subword and not self.separator.isascii():
            raise ValueError(f"data.separator={self.separator} must be ASCII for tokenizer=subword; change one of them")
        if self.tokenizer.kind is TokenizerKind.word:
            raise ValueError("tokenizer=word changes the text; use tokenizer=char or tokenizer=subword for generators")
        if self.source is SourceKind.sample and self.path is not None:
            raise ValueError(f"data.path={self.path}: data.source=sample does not read a file; remove data.path")
        if self.path is None and self.name is None and self.source is not SourceKind.sample:
            raise ValueError("data.path is not set; set it to a text file, as in data.path=my_novel.txt")


@dataclass
class PairOptions:
    """Options of sentences and their translations for a translator."""

    source: SourceKind = SourceKind.auto
    """Where to look for the data. `auto` tries a local copy, then the Hub, and then the generated sample."""
    name: str = "multi30k"
    """The folder of the data set below `$FIRSTLIGHT_DATA` or `data/`. It is used if `path` is null."""
    hub: str = "bentrevett/multi30k"
    """The identifier of the data set on the Hugging Face Hub. It is used if `path` is null."""
    path: str | None = None
    """Your data: a table file, a folder, an identifier on the Hub, or `corpus` for corpus.en and corpus.de."""
    source_column: str = "en"
    """The name of the column with the source sentences. For two text files, their extension, as in `train.en`."""
    target_column: str = "de"
    """The name of the column with the translations. For two text files, their extension, as in `train.de`."""
    validation_fraction: float = 0.1
    """The share of the training pairs for validation if there is no validation split, between 0 and 0.5."""
    test_fraction: float = 0.1
    """The share of the training pairs for testing if there is no test split, between 0 and 0.5."""
    split_seed: int = 0
    """The seed that draws the pairs of these shares and of `max_train_rows`."""
    max_train_rows: int | None = None
    """The number of training pairs to draw at random. Null uses all of them."""
    skip_too_long: bool = False
    """Whether to leave out training pairs longer than `context_length`. Otherwise such a pair is an error."""
    tokenizer: TokenizerOptions = field(default_factory=lambda: TokenizerOptions(kind=TokenizerKind.subword))
    """The options of the tokenizers, which are trained on the training pairs."""
    shared_vocabulary: bool = True
    """Whether both languages use one vocabulary. Otherwise each language has its own."""
    context_length: int = 64
    """The largest number of tokens in a sentence. The end of a translation counts as a token."""
    batch_tokens: int = 2000
    """The size of a training batch in tokens: the number of pairs times the length of the longest sentence."""
    evaluation_batch_size: int = 128
    """The number of pairs in a validation, test or prediction batch."""
    num_workers: int = 0
    """The number of processes that load batches. 0 loads them in the main process."""
    device_resident: bool = True
    """Whether to keep all token ids on the accelerator if they take less than a quarter of its free memory."""
    seed: int = 1
    """The seed of the order of the training batches."""
    cache_dir: str = "logs/cache"
    """The folder for encoded pairs and downloads."""

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
            raise ValueError("tokenizer.word_list has lower-case words, but translation keeps case; remove it")
        size = self.tokenizer.max_size
        if self.tokenizer.kind is TokenizerKind.subword and size is not None and size < NUM_BYTES + NUM_MARKS:
            raise ValueError(
                f"tokenizer.max_size={size} is too small for 256 bytes and 4 marks; "
                f"set it to {NUM_BYTES + NUM_MARKS} or more"
            )
        if self.source is SourceKind.sample and self.path is not None:
            raise ValueError(f"data.path={self.path}: data.source=sample does not read a file; remove data.path")


for _options in (ReviewOptions, CharacterOptions, PairOptions):
    declare("data", _options)

Function = TypeVar("Function", bound=Callable[..., Any])
Options = TypeVar("Options", bound="ReviewTextOptions | CharacterOptions | PairOptions")


def options_from(kind: type[Options], given: dict[str, Any], owner: str) -> Options:
    """Return the options of the data module `owner`. Raises TypeError for an unknown one, ValueError for a value."""
    refuse_unknown(given, [each.name for each in fields(kind)], owner)
    try:
        return kind(**given)
    except ValueError as error:
        raise ValueError(spelled(str(error))) from None


def takes(kind: type[ReviewTextOptions | CharacterOptions | PairOptions]) -> Callable[[Function], Function]:
    """Return a decorator that gives `__init__(self, **options)` a signature with the options and their defaults."""
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
    """Return the options of a tokenizer, given as `TokenizerOptions`, as a dict, or as the kind of the tokenizer."""
    if isinstance(given, str | TokenizerKind):
        return TokenizerOptions(kind=given)  # type: ignore[arg-type]  # a name is accepted too
    return TokenizerOptions(**given) if isinstance(given, dict) else given


def check_name(name: str | None) -> None:
    """Raise ValueError if the name of a data set is a path outside of the folder of data sets."""
    if name is not None and (not isinstance(name, str) or Path(name).is_absolute() or ".." in Path(name).parts):
        raise ValueError(f"data.name={name} must be the name of a folder below $FIRSTLIGHT_DATA or data/")


def check_rows(options: ReviewTextOptions | PairOptions) -> None:
    """Raise ValueError if a share of the training rows is out of range."""
    for name in ("validation_fraction", "test_fraction"):
        if not 0 < getattr(options, name) < 0.5:
            raise ValueError(f"data.{name}={getattr(options, name)} must lie between 0 and 0.5")


def check_batches(options: ReviewTextOptions | CharacterOptions | PairOptions) -> None:
    """Raise ValueError if a size of the batches or a number of rows or workers is out of range."""
    for name in ("batch_size", "batch_tokens", "evaluation_batch_size", "context_length"):
        if getattr(options, name, 1) < 1:
            raise ValueError(f"data.{name}={getattr(options, name)} must be at least 1")
    if options.num_workers < 0:
        raise ValueError(f"data.num_workers={options.num_workers} must be at least 0")
    if options.max_train_rows is not None and options.max_train_rows < 1:
        raise ValueError(f"data.max_train_rows={options.max_train_rows} must be at least 1")
