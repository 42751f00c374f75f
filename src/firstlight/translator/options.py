"""Options of the translators, as typed dataclasses that check their values. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from firstlight.networks.config import TransformerConfig, check_at_least
from firstlight.networks.variants import NormKind


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

    num_decoder_layers: int | None = None
    tie_embeddings: bool = False
    share_embeddings: bool = False
    head_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_decoder_layers is not None:
            check_at_least("model.num_decoder_layers", self.num_decoder_layers, 1)
        if self.context_length < 2:
            raise ValueError(f"context_length={self.context_length} must be at least 2, for one word and the end")
        if self.causal:
            raise ValueError(
                "model.causal=true does not apply to translation: the encoder is never causal, the decoder always; "
                "set it to false"
            )

    @property
    def network(self) -> str:
        return "firstlight.translator.network:EncoderDecoder"

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
