"""The options of generators and of their texts. This module does not import torch."""

from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import ClassVar

from firstlight.choices import require
from firstlight.data.options import DataOptions, SourceKind
from firstlight.networks.config import TransformerConfig, check_at_least
from firstlight.spelling import declare
from firstlight.text.options import NUM_BYTES, TokenizerKind, TokenizerOptions


@dataclass
class GeneratorConfig(TransformerConfig):
    """Options of a `Generator`: those of `TransformerConfig` and the following.

    Args:
        causal: Whether a token attends only to itself and to earlier tokens. With False, each token also sees the token
            that it has to predict, as in an experiment of post 2 (plays).
        tie_embeddings: Whether the embedding and the output layer share one matrix, which saves parameters.
        head_bias: Whether the output layer has a bias.
        num_loops: Number of times that the blocks are applied in sequence with the same weights; 1: once.
        causal_convolution: Width of a convolution over a token and the tokens before it, ahead of each sublayer, at
            least 2; None: no convolution.

    Raises:
        ValueError: if a value is out of range or values contradict each other; the message names the key and the
            fix.

    Example:
        >>> from firstlight.networks import GeneratorConfig
        >>> config = GeneratorConfig(dim=32, num_heads=4, num_layers=3, context_length=64, positions="learned")
        >>> config.causal
        True
    """

    reads_windows: ClassVar[bool] = True
    network_class: ClassVar[str] = "firstlight.generator.network:Generator"

    causal: bool = True
    tie_embeddings: bool = False
    _: KW_ONLY
    head_bias: bool = True
    num_loops: int = 1
    causal_convolution: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.context_length > 1, f"context_length={self.context_length} must be at least 2 for a generator")
        check_at_least("model.num_loops", self.num_loops, 1)
        if self.causal_convolution is not None:
            check_at_least("model.causal_convolution", self.causal_convolution, 2)


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
class CharacterOptions(DataOptions):
    """Options of a text for a generator of characters, subwords or words.

    Args:
        path: Your own data: a text file in UTF-8 or data.encoding, also in .gz or .zip, or a folder of .txt files.
        preparation: Treatment of the file: text (unchanged), plays (the plays of a Gutenberg edition of Shakespeare) or
            lines (each line is a document, such as a name).
        split: Part of the text used for validation: its end (sequential) or random passages between blank lines
            (passages).
        batch_size: Number of windows in a training batch; larger batches are faster and need a higher learning rate.
        name: Folder below $FIRSTLIGHT_DATA or data/ with one .txt file, used if data.path is null.
        url: Address of the text file on the web; it is downloaded once and then read from the cache.
        separator: Character between the documents of data.preparation=lines; it must not occur in them.
        context_length: The number of tokens in a window, which is the largest number of tokens that the network reads.
        stateful_window: Number of tokens in a window for a recurrent network, such as an LSTM, that keeps its state
            from window to window; null: windows of context_length, which are read without a state.
    """

    has_test: ClassVar[bool] = False

    path: str | None = None
    preparation: Preparation = Preparation.text
    split: Split = Split.sequential
    batch_size: int = 32

    _: KW_ONLY
    name: str | None = None
    url: str | None = None
    separator: str = "."
    validation_fraction: float = 0.05
    test_fraction: float = 0.0
    tokenizer: TokenizerOptions = field(default_factory=lambda: TokenizerOptions(kind=TokenizerKind.char))
    context_length: int = 64
    stateful_window: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preparation is Preparation.lines and self.separator == self.tokenizer.unknown_symbol:
            raise ValueError(f"data.separator={self.separator} equals tokenizer.unknown_symbol; change one of them")
        if self.folds is not None and self.preparation is not Preparation.lines:
            problem = f"data.folds={self.folds} requires separate rows, not data.preparation={self.preparation.value}"
            raise ValueError(f"{problem}; leave it out, or set data.preparation=lines")
        self._check_tokenizer()
        if self.stateful_window is not None and self.stateful_window < 1:
            raise ValueError(f"data.stateful_window={self.stateful_window} must be at least 1, or null")
        if self.path is None and self.name is None and self.source is not SourceKind.sample:
            raise ValueError("data.path is not set; set it to a text file, as in data.path=my_novel.txt")

    def _check_tokenizer(self) -> None:
        """Raise ValueError for options that do not apply to a tokenizer that keeps every character."""
        kind, size = self.tokenizer.kind, self.tokenizer.max_size
        if kind is TokenizerKind.char:
            return
        if size is not None and size < NUM_BYTES:
            raise ValueError(f"tokenizer.max_size={size} is too small for 256 bytes; set it to {NUM_BYTES} or more")
        if not self.separator.isascii():
            raise ValueError(f"data.separator={self.separator} must be ASCII for tokenizer={kind.value}; change it")
        if kind is TokenizerKind.word and not self.tokenizer.punctuation:
            raise ValueError("tokenizer.punctuation=false removes marks, but a generator keeps them; set it to true")


declare("data", CharacterOptions)
