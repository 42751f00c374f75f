"""The options of translators and of their data. This module does not import torch."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

from firstlight.choices import require
from firstlight.data.options import DataOptions
from firstlight.networks.config import TransformerConfig, check_at_least
from firstlight.networks.variants import NormKind
from firstlight.spelling import declare
from firstlight.text.options import NUM_BYTES, NUM_MARKS, TokenizerKind, TokenizerOptions


@dataclass
class EncoderDecoderConfig(TransformerConfig):
    """Options of an `EncoderDecoder`: those of `TransformerConfig` and the following.

    `num_layers` is the number of blocks of the encoder.

    Args:
        num_decoder_layers: Number of blocks of the decoder; None: as many as the encoder has (num_layers).
        tie_embeddings: Whether the embedding of the target and the output layer share one matrix, which saves
            parameters.
        share_embeddings: Whether source and target share one embedding; it requires one vocabulary for both languages.
        head_bias: Whether the output layer has a bias.

    Raises:
        ValueError: if a value is out of range or values contradict each other; the message names the key and the
            fix.

    Example:
        >>> from firstlight.networks import EncoderDecoderConfig
        >>> EncoderDecoderConfig(num_layers=2).resolved_num_decoder_layers
        2
    """

    network_class: ClassVar[str] = "firstlight.translator.network:EncoderDecoder"

    num_decoder_layers: int | None = None
    tie_embeddings: bool = False
    share_embeddings: bool = False
    head_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_decoder_layers is not None:
            check_at_least("model.num_decoder_layers", self.num_decoder_layers, 1)
        length = self.context_length
        require(length > 1, f"context_length={length} must be at least 2, for one word and the end")
        problem = "model.causal=true does not apply to translation: the encoder is never causal, the decoder always"
        require(not self.causal, f"{problem}; set it to false")

    def network_arguments(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return (sizes["source_vocab_size"], sizes["vocab_size"])

    def inputs(self, token_ids: Any, features: Any) -> tuple[Any, ...]:  # noqa: ARG002
        return token_ids, token_ids

    @property
    def of_decoder(self) -> "EncoderDecoderConfig":
        """The options of the decoder's blocks: these, but with LayerNorm in place of a norm over the words."""
        return replace(self, norm_kind=NormKind.layer) if self.norm_kind is NormKind.over_words else self

    @property
    def resolved_num_decoder_layers(self) -> int:
        """The number of blocks of the decoder."""
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers


@dataclass
class PairOptions(DataOptions):
    """Options of sentences and their translations for a translator.

    Args:
        path: Your own data: a CSV, TSV, JSONL or Parquet file, a folder with a file for each split, the common name of
            two text files (corpus for corpus.en and corpus.de), or an identifier on the Hub.
        source_column: Column with the sentences to translate; for two text files, the ending of the file's name.
        target_column: Column with the translations; for two text files, the ending of the file's name.
        max_train_rows: Number of training pairs to use, before data.skip_too_long leaves out some; null: all.
        batch_tokens: Size of a training batch in tokens: the number of pairs times the length of the longest sentence,
            padding included.
        hub: Identifier of the data set on the Hugging Face Hub, used if data.path is null.
        skip_too_long: Whether training pairs longer than context_length are left out; false: such a pair is an error.
        shared_vocabulary: Whether both languages share one vocabulary; set it to false for languages with different
            scripts.
        context_length: The largest number of tokens in a sentence. The end of a translation counts as a token.
    """

    path: str | None = None
    source_column: str = "en"
    target_column: str = "de"
    max_train_rows: int | None = None
    batch_tokens: int = 2000

    _: KW_ONLY
    name: str = "multi30k"
    hub: str = "bentrevett/multi30k"
    skip_too_long: bool = False
    tokenizer: TokenizerOptions = field(default_factory=lambda: TokenizerOptions(kind=TokenizerKind.subword))
    shared_vocabulary: bool = True
    context_length: int = 64
    evaluation_batch_size: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source_column == self.target_column:
            raise ValueError(f"data.source_column and data.target_column are both {self.source_column}; change one")
        if self.tokenizer.kind is TokenizerKind.char:
            raise ValueError("tokenizer=char makes sentences too long; use tokenizer=subword or word for translation")
        size = self.tokenizer.max_size
        if self.tokenizer.kind is TokenizerKind.subword and size is not None and size < NUM_BYTES + NUM_MARKS:
            problem = f"tokenizer.max_size={size} is too small for 256 bytes and 4 marks"
            raise ValueError(f"{problem}; set it to {NUM_BYTES + NUM_MARKS} or more")


declare("data", PairOptions)
