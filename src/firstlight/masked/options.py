"""The options of masked language models and of their data. This module does not import torch."""

from dataclasses import dataclass
from typing import Any, ClassVar

from firstlight.choices import require
from firstlight.data.options import WholeTextOptions
from firstlight.networks.config import TransformerConfig, check_convolution
from firstlight.networks.variants import Activation, NormKind
from firstlight.spelling import declare

SHARE_OF_PLACES = 15  # percentage of the tokens that the output layer scores in training


@dataclass
class MaskedConfig(TransformerConfig):
    """Options of a `MaskedLanguageModel`: those of `TransformerConfig` and the following.

    Args:
        convolution: Width of a convolution over the embeddings, an odd number of tokens such as 3; None: no
            convolution.
        tie_embeddings: Whether the embedding and the output layer share one matrix, which saves parameters.
        head_layer: Whether a linear layer, the activation function and a norm precede the output layer, as in BERT.
        head_bias: Whether the output layer has a bias.

    Raises:
        ValueError: if a value is out of range or values contradict each other; the message names the key and the
            fix.

    Example:
        >>> from firstlight.masked.options import MaskedConfig
        >>> config = MaskedConfig(dim=32, num_heads=4, norm="pre")
        >>> config.causal, config.tie_embeddings
        (False, True)
    """

    network_class: ClassVar[str] = "firstlight.masked.network:MaskedLanguageModel"

    convolution: int | None = None
    tie_embeddings: bool = True
    head_layer: bool = False
    head_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_convolution(self.convolution)
        problem = "model.causal=true hides the words after a [MASK], which the network needs to fill it in"
        require(not self.causal, f"{problem}; set model.causal=false, or use a generator")
        if self.head_layer and self.activation is Activation.swiglu:
            raise ValueError("model.head_layer=true has no gate for model.activation=swiglu; use gelu")
        problem = "model.norm_kind=over_words applies to classifiers and translators, not to masked language models"
        require(self.norm_kind is not NormKind.over_words, f"{problem}; set model.norm_kind=layer")

    def inputs(self, token_ids: Any, features: Any) -> tuple[Any, ...]:  # noqa: ARG002
        places = token_ids.flatten()[: -(-token_ids.shape[1] * SHARE_OF_PLACES // 100)]
        return token_ids, None, places


@dataclass
class MaskedReviewOptions(WholeTextOptions):
    """Options of texts with masked words for a masked language model.

    Args:
        mask_fraction: Share of the tokens of a text that the network has to predict; at least one token in each text.
    """

    mask_fraction: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.mask_fraction < 1, f"data.mask_fraction={self.mask_fraction} must lie between 0 and 1")


declare("data", MaskedReviewOptions)
