"""Options of the generators, as typed dataclasses that check their values. Imports no torch."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from firstlight.networks.config import TransformerConfig, check_at_least


@dataclass
class GeneratorConfig(TransformerConfig):
    """Options of a `Generator`: those of `TransformerConfig` and the following.

    Args:
        causal: Whether a token attends only to itself and to earlier tokens. With False, each token also sees the token
            that it has to predict, as in an experiment of post 2.
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

    causal: bool = True
    tie_embeddings: bool = False
    _: KW_ONLY
    head_bias: bool = True
    num_loops: int = 1
    causal_convolution: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.context_length < 2:
            raise ValueError(f"context_length={self.context_length} must be at least 2 for a generator")
        check_at_least("model.num_loops", self.num_loops, 1)
        if self.causal_convolution is not None:
            check_at_least("model.causal_convolution", self.causal_convolution, 2)

    @property
    def network(self) -> str:
        return "firstlight.generator.network:Generator"
